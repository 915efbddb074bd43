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
from asched.core.model.workload import Condition

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
#: The API allows 32,768 characters a detail, and 64 of them; a node's name has up to 253.
DETAIL_PLACES: Final = 120
#: The API allows as many for a condition's message.
MESSAGE_CHARS: Final = 32_768


def _wanted(type_: str, status: str, reason: str, message: str) -> Condition:
    return Condition(type_, status, reason=reason, message=message[:MESSAGE_CHARS])


#: The first condition of every accepted request.
IS_OURS: Final = _wanted(ACCEPTED, "True", IS_ACCEPTED, "ProvisioningRequest is accepted by asched")


class Where(NamedTuple):
    """`times` places of a pod set on a node."""

    pod_set: int
    node: str
    times: int


class DesiredStatus(msgspec.Struct, frozen=True):
    """The wanted status. `details` None: nothing is held any more."""

    conditions: tuple[Condition, ...]
    details: Mapping[str, str] | None = None


def found(details: Mapping[str, str], lost: int, places: int) -> DesiredStatus:
    """`lost`: how many of its places other pods took, or were on nodes that were removed."""
    message = f"Capacity is found in the cluster and held until {details[UNTIL]}"
    if lost:
        message += (
            f"; {lost} of its {places} places {'is' if lost == 1 else 'are'} lost, asched searches"
            " for others"
        )
    return DesiredStatus((IS_OURS, _wanted(PROVISIONED, "True", FOUND, message)), details)


def not_found(why: str, reason: str = NOT_FOUND) -> DesiredStatus:
    message = f"Capacity is not found, asched will look again: {why}"
    return DesiredStatus((IS_OURS, _wanted(PROVISIONED, "False", reason, message)))


def failed(why: str, reason: str = NOT_FOUND) -> DesiredStatus:
    return DesiredStatus((IS_OURS, _wanted(FAILED, "True", reason, why)))


def over(reason: str, message: str) -> DesiredStatus:
    return DesiredStatus((_wanted(BOOKING_EXPIRED, "True", reason, message),))


def details_of(places: Iterable[Where], until_s: float) -> dict[str, str]:
    """As text: `0/node-a*2,1/node-b`; no name of a node has any of these signs. `until_s` is since
    1970: the next process reads it.
    """
    words = [f"{w.pod_set}/{w.node}" + (f"*{w.times}" if w.times > 1 else "") for w in places]
    details = {UNTIL: micro_time(round(until_s * 1e6) * 1000)}
    for number, at in enumerate(range(0, max(len(words), 1), DETAIL_PLACES)):
        details[f"{PLACES}{number}"] = ",".join(words[at : at + DETAIL_PLACES])
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
        if old is None or any(
            getattr(old, name) != getattr(condition, name)
            for name in ("status", "reason", "message")
        ):
            return False
    details = request.status.provisioning_class_details
    return (details or None) == (wanted.details or None)


def patch_of(cluster: Cluster, request: ProvisioningRequest, wanted: DesiredStatus) -> Patch:
    """The patch of the status; refused with 409 if the object has changed meanwhile."""
    now = rfc3339(cluster.wall_clock_s)
    by_type = {c.type: c for c in request.status.conditions or ()}
    for condition in wanted.conditions:
        before = by_type.get(condition.type)
        is_same = before is not None and before.status == condition.status
        by_type[condition.type] = msgspec.structs.replace(
            condition,
            observed_generation=request.metadata.generation,
            last_transition_time=before.last_transition_time if before and is_same else now,
        )
    conditions = [
        {  # the API requires all of these, empty ones too
            "type": condition.type,
            "status": condition.status,
            "observedGeneration": condition.observed_generation,
            "lastTransitionTime": condition.last_transition_time or now,
            "reason": condition.reason,
            "message": condition.message,
        }
        for condition in by_type.values()
    ]
    gone = dict.fromkeys(request.status.provisioning_class_details or ())
    details = {**gone, **(wanted.details or {})}
    status: dict[str, Any] = {"conditions": conditions}
    if details:
        status["provisioningClassDetails"] = details
    metadata = request.metadata
    return Patch(
        kind=cluster.served_kind(PROVISIONING_REQUEST),
        namespace=metadata.namespace,
        name=metadata.name,
        body={
            "metadata": {"uid": metadata.uid, "resourceVersion": metadata.resource_version},
            "status": status,
        },
        subresource="status",
    )
