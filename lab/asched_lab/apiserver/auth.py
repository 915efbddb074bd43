"""Authentication and authorization: bearer tokens, and RBAC read from the stored roles.

A server without tokens treats every client as administrator. With tokens, an unknown one is 401;
none at all is the user system:anonymous, or 401 where anonymous requests are off. Token and access
reviews follow the same rules; they are not stored.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from asched_lab.apiserver import bodies, crud, validation
from asched_lab.apiserver.call import Call, Reply, User, answer
from asched_lab.apiserver.context import Context
from asched_lab.apiserver.refusals import (
    FieldError,
    bad_request,
    bad_value,
    invalid_kind,
    may_not,
    may_not_path,
    method_not_allowed,
    unauthorized,
)
from asched_lab.apiserver.resources import SERVICE_ACCOUNTS, Resource, find

JsonObject = dict[str, Any]

MASTERS: Final = "system:masters"
ADMIN: Final = User("kubernetes-admin", (MASTERS, "system:authenticated"))
ANONYMOUS: Final = User("system:anonymous", ("system:unauthenticated",))
CLUSTER_ROLES: Final = find("clusterroles")
CLUSTER_BINDINGS: Final = find("clusterrolebindings")
ROLES: Final = find("roles")
BINDINGS: Final = find("rolebindings")
#: Users are not stored; the name is needed to refuse impersonation.
USERS: Final = Resource(
    "", "v1", "users", "User", namespaced=False, short_names=(), categories=(), verbs=()
)


class Authenticator:
    """Tokens and their users; service account tokens are added while the server runs."""

    def __init__(self, tokens: Mapping[str, User] | None, *, anonymous: bool) -> None:
        self.tokens = dict(tokens or {})
        self.open = tokens is None
        self.anonymous = anonymous
        #: Tokens of service accounts: token -> (user, token id).
        self.issued: dict[str, tuple[User, str]] = {}

    def user(self, authorization: str) -> User:
        """The user of an Authorization header. Raises ApiError 401."""
        if self.open:
            return ADMIN
        if not authorization:
            if self.anonymous:
                return ANONYMOUS
            raise unauthorized()
        scheme, _, token = authorization.partition(" ")
        known = self.lookup(token.strip())
        if scheme.lower() != "bearer" or known is None:
            raise unauthorized()
        return known

    def impersonated(self, user: User, name: str, groups: tuple[str, ...]) -> User:
        """The user that an administrator impersonates. Raises ApiError 403 for other callers."""
        if MASTERS not in user.groups:
            raise may_not(USERS, name, user.name, "impersonate", "", "")
        return User(name, (*groups, "system:authenticated"))

    def lookup(self, token: str) -> User | None:
        if token in self.issued:
            return self.issued[token][0]
        return self.tokens.get(token)


@dataclass(frozen=True, slots=True)
class Question:
    """An action to authorize: on a resource, or on a bare path."""

    verb: str
    group: str = ""
    resource: str = ""
    name: str = ""
    namespace: str = ""
    path: str = ""


def check(
    ctx: Context, user: User, verb: str, res: Resource, namespace: str, name: str, sub: str
) -> None:
    """Raises ApiError 403 unless `user` may."""
    if MASTERS in user.groups:
        return
    what = f"{res.plural}/{sub}" if sub else res.plural
    question = Question(verb, res.group, what, name, namespace)
    if allowed_by(ctx, user, question) is None:
        raise may_not(res, name, user.name, verb, sub, namespace)


def check_path(ctx: Context, call: Call) -> None:
    """Raises ApiError 403 unless the caller may use a path that is not a resource."""
    if MASTERS in call.user.groups:
        return
    verb = call.method.lower()
    question = Question(verb, path=call.path)
    if allowed_by(ctx, call.user, question) is None:
        raise may_not_path(call.user.name, verb, call.path)


def allowed_by(ctx: Context, user: User, question: Question) -> str | None:
    """The rule that allows it, as text ('' for masters), or None."""
    if MASTERS in user.groups:
        return ""
    for binding, rules, where in bindings_of(ctx, question.namespace):
        subject = subject_of(binding, user)
        if subject and any(rule_allows(rule, question) for rule in rules):
            role = binding["roleRef"]
            return (
                f'RBAC: allowed by {where} "{binding["metadata"]["name"]}" of {role["kind"]}'
                f' "{role["name"]}" to {subject}'
            )
    return None


def rules_for(ctx: Context, user: User, namespace: str) -> Iterator[JsonObject]:
    """Every rule that applies to `user` in a namespace, or without one."""
    if MASTERS in user.groups:
        yield {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}
        yield {"verbs": ["*"], "nonResourceURLs": ["*"]}
    for binding, rules, _ in bindings_of(ctx, namespace):
        if subject_of(binding, user):
            yield from rules


def bindings_of(ctx: Context, namespace: str) -> Iterator[tuple[JsonObject, list[JsonObject], str]]:
    """Every binding that applies in a namespace, with the rules of its role and its kind."""
    for record in ctx.store.table(CLUSTER_BINDINGS.storage).records.values():
        yield record.obj, rules_of(ctx, record.obj["roleRef"], ""), "ClusterRoleBinding"
    if not namespace:
        return
    table = ctx.store.table(BINDINGS.storage)
    for key in table.range(namespace):
        obj = table.records[key].obj
        yield obj, rules_of(ctx, obj["roleRef"], namespace), "RoleBinding"


def rules_of(ctx: Context, ref: JsonObject, namespace: str) -> list[JsonObject]:
    res = ROLES if ref["kind"] == "Role" else CLUSTER_ROLES
    role = ctx.get(res, namespace if res is ROLES else "", ref["name"])
    return (role.obj.get("rules") or []) if role is not None else []


def subject_of(binding: JsonObject, user: User) -> str:
    """The subject of a binding that matches this user, as text; '' if there is none."""
    for subject in binding.get("subjects") or ():
        kind, name = subject["kind"], subject["name"]
        if kind == "ServiceAccount":
            name = f"system:serviceaccount:{subject.get('namespace', '')}:{name}"
        if (kind == "Group" and name in user.groups) or (kind != "Group" and name == user.name):
            return f'{kind} "{name}"'
    return ""


def rule_allows(rule: JsonObject, question: Question) -> bool:
    verbs = rule.get("verbs") or ()
    if question.verb not in verbs and "*" not in verbs:
        return False
    if question.path:
        return any(
            url in {"*", question.path}
            or (url.endswith("*") and question.path.startswith(url[:-1]))
            for url in rule.get("nonResourceURLs") or ()
        )
    groups = rule.get("apiGroups") or ()
    if question.group not in groups and "*" not in groups:
        return False
    resources = rule.get("resources") or ()
    any_sub = f"*/{question.resource.partition('/')[2]}"
    if not {question.resource, "*", any_sub}.intersection(resources):
        return False
    names = rule.get("resourceNames") or ()
    return not names or question.name in names


AUDIENCE: Final = "https://kubernetes.default.svc"
LIFETIME_S_MIN: Final = 600
LIFETIME_S: Final = 3600
AUTHENTICATION: Final = "authentication.k8s.io"
AUTHORIZATION: Final = "authorization.k8s.io"
BAD_TOKEN: Final = "invalid bearer token"  # noqa: S105  an error text
ASK_ONE: Final = "exactly one of nonResourceAttributes or resourceAttributes must be specified"


def handle_review(ctx: Context, call: Call, res: Resource) -> Reply:
    validation.check_write_options("CreateOptions", call.query)
    raw, _ = bodies.load(call, res.kind)
    bodies.check_kind(raw, res)
    spec = raw.get("spec") or {}
    if not isinstance(spec, dict):
        raise bodies.cannot_handle(res, "json: cannot unmarshal spec into Go struct field")
    review: JsonObject = {"kind": res.kind, "apiVersion": res.api_version, "metadata": {}}
    match res.kind:
        case "TokenReview":
            review |= {"spec": spec, "status": token_status(ctx, spec)}
        case "SelfSubjectReview":
            review["metadata"] = {"creationTimestamp": ctx.now()}
            review["status"] = {"userInfo": user_info(call.user)}
        case "SelfSubjectRulesReview":
            review |= {"spec": spec, "status": rules_status(ctx, call.user, spec)}
        case "SelfSubjectAccessReview":
            check_attributes(spec)
            review |= {"spec": spec, "status": access_status(ctx, call.user, spec)}
        case "SubjectAccessReview" | "LocalSubjectAccessReview":
            check_attributes(spec)
            if not spec.get("user") and not spec.get("groups"):
                why = "at least one of user or group must be specified"
                raise invalid_review([bad_value("spec.user", spec.get("user", ""), why)])
            about = User(spec.get("user", ""), tuple(spec.get("groups") or ()))
            review |= {"spec": spec, "status": access_status(ctx, about, spec)}
        case _:
            raise method_not_allowed()
    return answer(review, status=201)


def invalid_review(complaints: list[FieldError]) -> Exception:
    return invalid_kind(AUTHORIZATION, "", "", complaints)


def check_attributes(spec: JsonObject) -> None:
    given = [name for name in ("resourceAttributes", "nonResourceAttributes") if spec.get(name)]
    if not given:
        raise invalid_review([bad_value("spec.resourceAttributes", None, ASK_ONE)])
    if len(given) > 1:
        complaint = bad_value("spec.nonResourceAttributes", spec["nonResourceAttributes"], ASK_ONE)
        raise invalid_review([complaint])


def question_of(spec: JsonObject) -> Question:
    path = spec.get("nonResourceAttributes")
    if path:
        return Question(path.get("verb", ""), path=path.get("path", ""))
    attributes = spec["resourceAttributes"]
    resource, sub = attributes.get("resource", ""), attributes.get("subresource", "")
    return Question(
        attributes.get("verb", ""),
        attributes.get("group", ""),
        f"{resource}/{sub}" if sub else resource,
        attributes.get("name", ""),
        attributes.get("namespace", ""),
    )


def access_status(ctx: Context, user: User, spec: JsonObject) -> JsonObject:
    reason = allowed_by(ctx, user, question_of(spec))
    status: JsonObject = {"allowed": reason is not None}
    if reason:
        status["reason"] = reason
    return status


def rules_status(ctx: Context, user: User, spec: JsonObject) -> JsonObject:
    """All rules of a user in a namespace."""
    rules = list(rules_for(ctx, user, spec.get("namespace", "")))
    paths = [rule for rule in rules if rule.get("nonResourceURLs")]
    return {
        "resourceRules": [rule for rule in rules if rule.get("resources")],
        "nonResourceRules": paths,
        "incomplete": False,
    }


def user_info(user: User) -> JsonObject:
    info: JsonObject = {"username": user.name, "uid": user.uid, "groups": list(user.groups)}
    return {name: value for name, value in info.items() if value}


def token_status(ctx: Context, spec: JsonObject) -> JsonObject:
    token = spec.get("token", "")
    if not token:
        raise bad_request("token is required for TokenReview in authentication")
    user = ctx.auth.lookup(token)
    if user is None:
        return {"user": {}, "error": BAD_TOKEN}
    wanted = spec.get("audiences") or [AUDIENCE]
    if AUDIENCE not in wanted:
        listed = " ".join(f'"{audience}"' for audience in wanted)
        why = f'token audiences ["{AUDIENCE}"] is invalid for the target audiences [{listed}]'
        return {"user": {}, "error": f"[{BAD_TOKEN}, {why}]"}
    info = user_info(user)
    if token in ctx.auth.issued:
        info["extra"] = {
            "authentication.kubernetes.io/credential-id": [f"JTI={ctx.auth.issued[token][1]}"]
        }
    return {"authenticated": True, "user": info, "audiences": [AUDIENCE]}


def handle_token_request(ctx: Context, call: Call, namespace: str, name: str) -> Reply:
    """A new token for a service account; it is valid until the server stops."""
    account = crud.existing(ctx, SERVICE_ACCOUNTS, namespace, name).obj["metadata"]
    raw, _ = bodies.load(call, "TokenRequest")
    spec = raw.get("spec") or {}
    lifetime_s = spec.get("expirationSeconds") or LIFETIME_S
    if lifetime_s < LIFETIME_S_MIN:
        why = "may not specify a duration less than 10 minutes"
        complaint = bad_value("spec.expirationSeconds", lifetime_s, why)
        raise invalid_kind(AUTHENTICATION, "TokenRequest", "", [complaint])
    token_id = ctx.new_uid()
    groups = ("system:serviceaccounts", f"system:serviceaccounts:{namespace}")
    user = User(
        f"system:serviceaccount:{namespace}:{name}",
        (*groups, "system:authenticated"),
        account["uid"],
    )
    token = f"sa-{ctx.new_uid()}"
    ctx.auth.issued[token] = (user, token_id)
    request = {
        "kind": "TokenRequest",
        "apiVersion": f"{AUTHENTICATION}/v1",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "uid": account["uid"],
            "creationTimestamp": ctx.now(),
        },
        "spec": {
            "audiences": spec.get("audiences") or [AUDIENCE],
            "expirationSeconds": lifetime_s,
            "boundObjectRef": spec.get("boundObjectRef"),
        },
        "status": {"token": token, "expirationTimestamp": ctx.later(lifetime_s)},
    }
    return answer(request, status=201)
