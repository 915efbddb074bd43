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

from asched.batch.provisioning.book import PODS_MAX
from asched.core.cluster.cluster import Cluster
from asched.core.cluster.pod_groups import COSCHEDULING_LABEL
from asched.core.cluster.pods import PodInfo
from asched.core.config.args import CheckAndHoldArgs
from asched.core.framework.effects import Patch
from asched.core.model.kinds import POD_TEMPLATE, PROVISIONING_REQUEST
from asched.core.model.meta import ObjectMeta
from asched.core.model.pod import Pod, PodSpec
from asched.core.model.provisioning import (
    ACCEPTED,
    BOOKING_EXPIRED,
    FAILED,
    PROVISIONED,
    PodTemplate,
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
        kind=cluster.spoken(PROVISIONING_REQUEST),
        namespace=metadata.namespace,
        name=metadata.name,
        body={
            "metadata": {"uid": metadata.uid, "resourceVersion": metadata.resource_version},
            "status": status,
        },
        subresource="status",
    )


# The hypothetical pods of a ProvisioningRequest, made from its templates.
#
# Only scheduling rules see these pods: no group counts them, and they do not exist in the API.
# Templates with requirements that counting a pod on its node cannot hold are refused, with the name
# of the template. So are templates that keep pods of other namespaces away, since a PodTemplate
# does not pass the admission of pods.
#
# Bounds  PODS_MAX pods a request.

#: No admission has checked the priority of a template: hypothetical pods have the lowest priority,
#: and so respect every nomination.
LEAST: Final = -(1 << 31)
HOLD_SECONDS: Final = "holdSeconds"
NO_RETRY: Final = "noRetry"
VALID_UNTIL_SECONDS: Final = "ValidUntilSeconds"
PARAMETERS: Final = (HOLD_SECONDS, NO_RETRY, VALID_UNTIL_SECONDS)
AWAY: Final = "podAntiAffinity with namespaces or namespaceSelector"
#: The highest value of a parameter in seconds.
DIGITS_MAX: Final = 10
#: As long as cluster-autoscaler tries.
VALID_S: Final = 7 * 86_400


class UnusableRequestError(Exception):
    """A request cannot be served: never, or until the template `lacks` exists."""

    def __init__(self, message: str, *, lacks: str = "") -> None:
        super().__init__(message)
        #: the key of a template that does not exist
        self.lacks = lacks


class Terms(NamedTuple):
    """The parameters of a request: seconds, and whether it is tried again."""

    hold_s: float
    valid_s: float
    is_tried_again: bool


def terms_of(request: ProvisioningRequest, args: CheckAndHoldArgs) -> Terms:
    """Raises UnusableRequestError."""
    given = request.spec.parameters or {}
    unknown = sorted(given.keys() - set(PARAMETERS))
    if unknown:
        raise UnusableRequestError(
            f"unknown parameter {unknown[0]!r}: this class knows {', '.join(PARAMETERS)}"
        )
    hold_s = _seconds(given, HOLD_SECONDS, args.hold_s, args.hold_s)
    valid_s = _seconds(given, VALID_UNTIL_SECONDS, VALID_S, VALID_S)
    retry = given.get(NO_RETRY, "false")
    if retry not in ("true", "false"):
        raise UnusableRequestError(f'parameter {NO_RETRY!r} must be "true" or "false": {retry!r}')
    return Terms(hold_s, valid_s, retry == "false")


def _seconds(given: Mapping[str, str], name: str, default: int, most: int) -> float:
    text = given.get(name)
    if text is None:
        return default
    is_number = text.isascii() and text.isdigit() and len(text) <= DIGITS_MAX
    if not is_number or not 1 <= int(text) <= most:
        raise UnusableRequestError(f"parameter {name!r} must be seconds, 1 to {most}: {text!r}")
    return int(text)


def examples(cluster: Cluster, request: ProvisioningRequest) -> list[tuple[PodInfo, int]]:
    """A pod of each pod set, and the number of its pods. Raises UnusableRequestError."""
    namespace, found = request.metadata.namespace, []
    total = sum(pod_set.count for pod_set in request.spec.pod_sets)
    if not request.spec.pod_sets or any(pods.count < 1 for pods in request.spec.pod_sets):
        raise UnusableRequestError("every pod set must count a pod at least")
    if total > PODS_MAX:
        raise UnusableRequestError(f"{total} pods: no more than {PODS_MAX} are held for a request")
    for index, pod_set in enumerate(request.spec.pod_sets):
        name = pod_set.pod_template_ref.name
        template: PodTemplate | None = cluster.stored(POD_TEMPLATE, f"{namespace}/{name}")
        if template is None:
            raise UnusableRequestError(
                f'podtemplates "{name}" not found', lacks=f"{namespace}/{name}"
            )
        info = cluster.classes.info_of(_pod(request, template, index))
        if info.cls.host_ports:
            raise UnusableRequestError(
                f'podtemplates "{name}" has host ports, which are not held: only the admission of'
                " a pod decides whether it may have them"
            )
        found.append((info, pod_set.count))
    schedulers = {info.pod.spec.scheduler_name for info, _ in found}
    if len(schedulers) > 1:
        raise UnusableRequestError(
            f"its templates name several schedulers: {', '.join(sorted(schedulers))}"
        )
    return found


def numbered(like: PodInfo, request: ProvisioningRequest, pod_set: int, number: int) -> PodInfo:
    """A pod of a set, with a name and uid of its own."""
    name = f"{request.metadata.name}-{pod_set}-{number}"
    uid = f"{request.metadata.uid}/{pod_set}-{number}"
    metadata = msgspec.structs.replace(like.pod.metadata, name=name, uid=uid)
    return PodInfo(msgspec.structs.replace(like.pod, metadata=metadata), like.cls)


def _pod(request: ProvisioningRequest, template: PodTemplate, index: int) -> Pod:
    spec, metadata = template.template.spec, template.template.metadata
    _refuse(template.metadata.name, spec)
    labels = {k: v for k, v in (metadata.labels or {}).items() if k != COSCHEDULING_LABEL}
    return Pod(
        ObjectMeta(
            name=f"{request.metadata.name}-{index}",
            namespace=request.metadata.namespace,
            uid=f"{request.metadata.uid}/{index}",
            labels=labels or None,
            creation_timestamp=request.metadata.creation_timestamp,
        ),
        msgspec.structs.replace(
            spec,
            node_name="",
            priority=LEAST,
            scheduling_gates=None,
            scheduling_group=None,
            scheduler_name=spec.scheduler_name or "default-scheduler",
        ),
    )


def _refuse(name: str, spec: PodSpec) -> None:
    anti = spec.affinity.pod_anti_affinity if spec.affinity is not None else None
    terms = (anti.required if anti is not None else None) or ()
    held = "which cannot be held"
    for is_refused, why in (
        (spec.node_name, "names a node: there is no choice left"),
        (
            any(term.namespaces or term.namespace_selector is not None for term in terms),
            f"keeps pods of other namespaces away ({AWAY}), {held}",
        ),
        (spec.resource_claims, f"claims devices (resourceClaims), {held}"),
        (
            any(volume.ephemeral is not None for volume in spec.volumes or ()),
            f"has generic ephemeral volumes, {held}",
        ),
    ):
        if is_refused:
            raise UnusableRequestError(f'podtemplates "{name}" {why}')
