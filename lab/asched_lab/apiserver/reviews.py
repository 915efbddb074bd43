"""Kinds that are not stored: token and access reviews, and the tokens of service accounts."""

from typing import Any, Final

from asched_lab.apiserver import bodies, crud, validation
from asched_lab.apiserver.auth import Question, allowed_by, rules_for
from asched_lab.apiserver.call import Call, Reply, User, answer
from asched_lab.apiserver.context import Context
from asched_lab.apiserver.resources import SERVICE_ACCOUNTS, Resource
from asched_lab.apiserver.statuses import (
    FieldError,
    bad_request,
    bad_value,
    invalid_kind,
    method_not_allowed,
)

JsonObject = dict[str, Any]

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
