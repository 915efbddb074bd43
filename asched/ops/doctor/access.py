"""`asched doctor`: identity, permissions, and the priority level of requests.

Rules   each right of `permissions.needed` is checked by a SelfSubjectAccessReview, or by a
        SubjectAccessReview for another account; the flow schema is found by the server's rule: of
        the matching ones the one with the lowest precedence, then by name.
Source  kubernetes/kubernetes v1.36 staging/src/k8s.io/apiserver/pkg/util/flowcontrol/rule.go
"""

import asyncio
from collections.abc import Iterable, Sequence
from typing import Final

from asched.kube.errors import ClientError
from asched.ops.doctor.notes import Finding, Identity, JsonObject, State, unreadable
from asched.ops.doctor.permissions import (
    ATTRIBUTE,
    COMPONENTS,
    GRANT,
    HARDWARE_COMPONENTS,
    LEADER_ELECTION,
    SCHEDULING,
    SERVING,
    NeededRight,
    Right,
)
from asched.ops.doctor.reader import ClusterReader, path_of

#: Where deploy/base grants the rights to the lease.
GRANTED_NAMESPACE: Final = "asched-system"
PERMISSIONS: Final = "permissions"
FLOW: Final = "flow control"
#: Priority levels that all controllers share.
SHARED_LEVELS: Final = frozenset({"workload-low", "global-default", "catch-all"})
#: Without these nothing is scheduled; without others the process runs and some pods fail.
#: A list that may not be read ends the start, for any kind.
VITAL: Final = frozenset({SCHEDULING, LEADER_ELECTION})


async def who(reader: ClusterReader) -> Identity:
    """The identity under which the API server knows us. Raises ClientError."""
    review = await _reviewed(reader, "authentication.k8s.io/v1", "SelfSubjectReview", {})
    user = review.get("userInfo") or {}
    return Identity(user.get("username") or "", tuple(user.get("groups") or ()))


async def may(reader: ClusterReader, right: Right, other: Identity | None) -> bool:
    """Whether we, or the other account, have a right. Raises ClientError."""
    plural, _, subresource = right.resource.partition("/")
    attributes = {
        "verb": right.verb,
        "group": right.group,
        "resource": plural,
        "subresource": subresource,
        "namespace": right.namespace,
        "name": right.name,
    }
    kind = "SelfSubjectAccessReview"
    spec: dict[str, object] = {"resourceAttributes": attributes}
    if other is not None:
        kind = "SubjectAccessReview"
        spec |= {"user": other.user, "groups": list(other.groups)}
    review = await _reviewed(reader, "authorization.k8s.io/v1", kind, spec)
    return bool(review.get("allowed"))


async def _reviewed(
    reader: ClusterReader, group_version: str, kind: str, spec: JsonObject
) -> JsonObject:
    """The status of a review. Raises ClientError."""
    body = {"apiVersion": group_version, "kind": kind, "spec": spec}
    made = await reader.post(f"{path_of(group_version)}/{kind.lower()}s", body)
    return dict(made.get("status") or {})


async def check_permissions(
    reader: ClusterReader, needs: Sequence[NeededRight], other: Identity | None
) -> list[Finding]:
    """One finding per plugin or part: has all its rights, or lacks some."""
    try:
        answers = await asyncio.gather(*(may(reader, need.right, other) for need in needs))
    except ClientError as error:
        return [unreadable(PERMISSIONS, "access reviews", error)]
    found = []
    for purpose in dict.fromkeys(need.purpose for need in needs):
        own = [
            (need, answer)
            for need, answer in zip(needs, answers, strict=True)
            if need.purpose == purpose
        ]
        missing = [need.right for need, answer in own if not answer]
        is_own = any(need.is_own for need, _ in own)
        found.append(_permission(purpose, len(own), missing, is_own=is_own))
    return found


def _permission(
    purpose: str, count: int, missing: Sequence[Right], *, is_own: bool = False
) -> Finding:
    if not missing:
        text = f"{purpose}: has {count} of {count} rights"
        return Finding(PERMISSIONS, State.OK, text)
    stops = purpose in VITAL or any(right.verb in ("list", "watch") for right in missing)
    listed = in_words(missing)
    if purpose == SERVING:
        cure = "apply deploy/base/rbac-serving.yaml"
        text = f"{purpose}: may not {listed}; no client is authorized to read /metrics"
        return Finding(PERMISSIONS, State.WARNING, text, cure)
    if is_own:
        cure = f"grant it: {ATTRIBUTE} of the plugin are the rules of a role for this account"
        if purpose in HARDWARE_COMPONENTS:
            folders = " and ".join(f"deploy/components/{n}" for n in HARDWARE_COMPONENTS[purpose])
            cure = f"add {folders} to the components of your overlay"
        text = f"{purpose}: may not {listed}; its pods may fail"
        return Finding(PERMISSIONS, State.WARNING, text, cure)
    state = State.PROBLEM if stops else State.WARNING
    if purpose in COMPONENTS:
        cure = f"add deploy/components/{COMPONENTS[purpose]} to the components of your overlay"
        return Finding(PERMISSIONS, state, f"{purpose}: may not {listed}", cure)
    cure = GRANT
    if purpose == LEADER_ELECTION and missing[0].namespace != GRANTED_NAMESPACE:
        cure = (
            f"grant it by a Role and a RoleBinding in namespace {missing[0].namespace}, as"
            f" deploy/base/rbac.yaml does in {GRANTED_NAMESPACE}; or name a lease that the account"
            " may write with --leader-elect-resource-namespace and --leader-elect-resource-name"
        )
    return Finding(PERMISSIONS, state, f"{purpose}: may not {listed}", cure)


def in_words(rights: Sequence[Right]) -> str:
    """Rights to the same objects in one phrase: `list, watch nodes; create pods/binding`."""
    verbs: dict[Right, list[str]] = {}
    for right in rights:
        verbs.setdefault(right._replace(verb=""), []).append(right.verb)
    return "; ".join(str(right._replace(verb=", ".join(said))) for right, said in verbs.items())


async def check_flow(
    reader: ClusterReader, identity: Identity, lease_namespace: str, *, is_elected: bool
) -> list[Finding]:
    """The priority levels of bindings and lease renewals."""
    try:
        schemas = await reader.items("/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas")
    except ClientError as error:
        return [unreadable(FLOW, "flowschemas", error)]
    if not schemas:
        text = "the server shows no FlowSchemas"
        return [Finding(FLOW, State.SKIPPED, text, "nothing to do if its flow control is off")]
    asked = {"bindings": Right("create", "", "pods/binding", "default")}
    if is_elected:
        group = "coordination.k8s.io"
        asked["lease renewals"] = Right("update", group, "leases", lease_namespace)
    return [_level(what, match(schemas, identity, right)) for what, right in asked.items()]


def _level(what: str, schema: JsonObject | None) -> Finding:
    if schema is None:
        cure = "restore the server's built-in FlowSchema catch-all"
        return Finding(FLOW, State.WARNING, f"{what} match no FlowSchema", cure)
    level = schema["spec"]["priorityLevelConfiguration"]["name"]
    text = f'{what} are served in level "{level}" by schema "{schema["metadata"]["name"]}"'
    if level not in SHARED_LEVELS:
        return Finding(FLOW, State.OK, text)
    text += ", which all controllers share"
    return Finding(FLOW, State.WARNING, text, "kubectl apply -f deploy/base/flow.yaml")


def match(schemas: Iterable[JsonObject], identity: Identity, right: Right) -> JsonObject | None:
    matching = [
        schema
        for schema in schemas
        if any(
            any(_is_subject(subject, identity) for subject in rule.get("subjects") or ())
            and any(_catches(part, right) for part in rule.get("resourceRules") or ())
            for rule in schema.get("spec", {}).get("rules") or ()
        )
    ]
    return min(
        matching,
        # 1000 is the server's default.
        key=lambda s: (s["spec"].get("matchingPrecedence", 1000), s["metadata"]["name"]),
        default=None,
    )


def _is_subject(subject: JsonObject, identity: Identity) -> bool:
    match subject.get("kind"):
        case "User":
            return subject["user"]["name"] in ("*", identity.user)
        case "Group":
            wanted = subject["group"]["name"]
            return wanted == "*" or wanted in identity.groups
        case "ServiceAccount":
            namespace, name = identity.service_account
            account = subject["serviceAccount"]
            return account["namespace"] == namespace and account["name"] in ("*", name)
    return False


def _catches(rule: JsonObject, right: Right) -> bool:
    def holds(field: str, value: str) -> bool:
        listed = rule.get(field) or ()
        return "*" in listed or value in listed

    if not (
        holds("verbs", right.verb)
        and holds("apiGroups", right.group)
        and holds("resources", right.resource)
    ):
        return False
    if right.namespace:
        return holds("namespaces", right.namespace)
    return bool(rule.get("clusterScope"))
