"""The status of a ProvisioningRequest: its conditions, and where its places are.

The conditions and reasons are cluster-autoscaler's, so that Kueue understands them. The places and
their end are in `provisioningClassDetails`, written together with the condition that accepts the
request: from these details a new process holds the same places again. Every write requires the
resource version that it was made from.

Source  kubernetes/autoscaler cluster-autoscaler/provisioningrequest/conditions
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

import msgspec

from asched.core.cluster.cluster import Cluster
from asched.core.framework.effects import Patch
from asched.core.model.kinds import PROVISIONING_REQUEST
from asched.core.model.provisioning import (
    ACCEPTED,
    BOOKING_EXPIRED,
    FAILED,
    PROVISIONED,
    ProvisioningRequest,
)
from asched.core.model.timestamp import micro_time, microseconds, rfc3339

IS_ACCEPTED: Final = "Accepted"
FOUND: Final = "CapacityIsFound"
NOT_FOUND: Final = "CapacityIsNotFound"
NO_PODS: Final = "FailedToCreatePods"
EXPIRED: Final = "Expired"
TIME_IS_UP: Final = "CapacityReservationTimeExpired"
#: Conditions and reasons of asched.
CONSUMED: Final = "CapacityIsConsumed"
LOST: Final = "CapacityIsLost"

UNTIL: Final = "heldUntil"
PLACES: Final = "places-"
#: The API allows 32,768 characters a detail, and 64 of them.
DETAIL_CHARS: Final = 32_000
#: The API allows as many for a condition's message.
MESSAGE_CHARS: Final = 32_768


class RequestCondition(NamedTuple):
    """The wanted value of one condition."""

    type: str
    status: str
    reason: str
    message: str


#: The first condition of every accepted request.
IS_OURS: Final = RequestCondition(
    ACCEPTED, "True", IS_ACCEPTED, "ProvisioningRequest is accepted by asched"
)


class Where(NamedTuple):
    """`times` places of a pod set on a node."""

    pod_set: int
    node: str
    times: int


class DesiredStatus(msgspec.Struct, frozen=True):
    """The wanted status. `details` None: nothing is held any more."""

    conditions: tuple[RequestCondition, ...]
    details: Mapping[str, str] | None = None


def found(details: Mapping[str, str]) -> DesiredStatus:
    message = f"Capacity is found in the cluster and held until {details[UNTIL]}"
    return DesiredStatus((IS_OURS, RequestCondition(PROVISIONED, "True", FOUND, message)), details)


def not_found(why: str, reason: str = NOT_FOUND) -> DesiredStatus:
    message = f"Capacity is not found, asched will look again: {why}"[:MESSAGE_CHARS]
    return DesiredStatus((IS_OURS, RequestCondition(PROVISIONED, "False", reason, message)))


def failed(why: str, reason: str = NOT_FOUND) -> DesiredStatus:
    return DesiredStatus((IS_OURS, RequestCondition(FAILED, "True", reason, why[:MESSAGE_CHARS])))


def over(reason: str, message: str) -> DesiredStatus:
    return DesiredStatus((RequestCondition(BOOKING_EXPIRED, "True", reason, message),))


def details_of(places: Iterable[Where], until_s: float) -> dict[str, str]:
    """As text: `0/node-a*2,1/node-b`; no name of a node has any of these signs."""
    words = [f"{w.pod_set}/{w.node}" + (f"*{w.times}" if w.times > 1 else "") for w in places]
    details = {UNTIL: micro_time(round(until_s * 1e6) * 1000)}
    line: list[str] = []
    size, number = 0, 0
    for word in words:
        if size + len(word) > DETAIL_CHARS:
            details[f"{PLACES}{number}"] = ",".join(line)
            line, size, number = [], 0, number + 1
        line.append(word)
        size += len(word) + 1
    details[f"{PLACES}{number}"] = ",".join(line)
    return details


def read(details: Mapping[str, str] | None) -> tuple[list[Where], float] | None:
    """(places, until when); None if these are not ours, or not whole."""
    try:
        given = details or {}
        until_s = microseconds(given[UNTIL]) / 1e6
        places = []
        number = 0
        while (line := given.get(f"{PLACES}{number}")) is not None:
            places += [_where(word) for word in line.split(",") if word]
            number += 1
    except (KeyError, ValueError):
        return None
    return (places, until_s) if number else None


def _where(word: str) -> Where:
    pod_set, _, rest = word.partition("/")
    node, _, count = rest.partition("*")
    times = int(count or 1)
    if times < 1:  # other clients may write the status
        raise ValueError(word)
    return Where(int(pod_set), node, times)


def says(request: ProvisioningRequest, wanted: DesiredStatus) -> bool:
    """Whether a request has the wanted status already."""
    for condition in wanted.conditions:
        old = request.condition(condition.type)
        if old is None or (old.status, old.reason, old.message) != condition[1:]:
            return False
    details = request.status.provisioning_class_details
    return (details or None) == (wanted.details or None)


def patch_of(cluster: Cluster, request: ProvisioningRequest, wanted: DesiredStatus) -> Patch:
    """The patch of the status; refused with 409 if the object has changed meanwhile."""
    now = rfc3339(cluster.wall_clock_s)
    by_type = {c.type: c for c in request.status.conditions or ()}
    conditions: dict[str, dict[str, Any]] = {
        c.type: {
            "type": c.type,
            "status": c.status,
            "observedGeneration": c.observed_generation,
            "lastTransitionTime": c.last_transition_time or now,
            "reason": c.reason,
            "message": c.message,
        }
        for c in by_type.values()
    }
    for condition in wanted.conditions:
        before = by_type.get(condition.type)
        is_same = before is not None and before.status == condition.status
        since = before.last_transition_time if before is not None and is_same else now
        conditions[condition.type] = {
            "type": condition.type,
            "status": condition.status,
            "observedGeneration": request.metadata.generation,
            "lastTransitionTime": since or now,
            "reason": condition.reason,
            "message": condition.message,
        }
    gone = dict.fromkeys(request.status.provisioning_class_details or ())
    details = {**gone, **(wanted.details or {})}
    status: dict[str, Any] = {"conditions": list(conditions.values())}
    if details:
        status["provisioningClassDetails"] = details
    metadata = request.metadata
    return Patch(
        kind=cluster.spoken(PROVISIONING_REQUEST),
        namespace=metadata.namespace,
        name=metadata.name,
        body={
            "metadata": {"uid": metadata.uid, "resourceVersion": metadata.resource_version},
            "status": status,
        },
        subresource="status",
    )
