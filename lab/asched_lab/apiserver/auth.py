"""Authentication and authorization: bearer tokens, and RBAC read from the stored roles.

A server without tokens treats every client as administrator. With tokens, an unknown one is 401;
none at all is the user system:anonymous, or 401 where anonymous requests are off. Reviews follow
the same rules.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from asched_lab.apiserver.call import Call, User
from asched_lab.apiserver.context import Context
from asched_lab.apiserver.resources import Resource, find
from asched_lab.apiserver.statuses import may_not, may_not_path, unauthorized

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
