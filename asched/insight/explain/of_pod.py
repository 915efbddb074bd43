"""Changes of the pod: its tolerations, its requests, its spread constraints."""

from collections.abc import Iterator
from functools import cache, partial
from typing import Any, Final

import msgspec
import numpy as np

from asched import names
from asched.core.cluster.supposition import Supposition
from asched.core.dra.ledger import DeviceLedger
from asched.core.model.claim import EXACT_COUNT, DeviceRequest, ResourceClaim
from asched.core.model.kinds import RESOURCE_CLAIM
from asched.core.model.node import Node
from asched.core.model.pod import Container, Pod, PodSpec
from asched.core.model.requests import pod_requests, written
from asched.core.model.taint import NO_SCHEDULE, Taint, Toleration, spelt, tolerated
from asched.insight.explain.deciding import Deciding, smallest
from asched.insight.explain.obstacles import summed_up
from asched.insight.explain.suggestions import Way, suggestion, with_spec

TRIES_MAX: Final = 64
#: The taint by which a cordoned node is tolerated.
UNSCHEDULABLE: Final = Taint("node.kubernetes.io/unschedulable", "", NO_SCHEDULE)
#: Taints that state what is wrong with a node: it has to be mended or uncordoned, not tolerated.
STATES: Final = ("node.kubernetes.io/", "node.cloudprovider.kubernetes.io/")
DO_NOT_SCHEDULE: Final = "DoNotSchedule"


def tolerations(deciding: Deciding) -> Iterator[Way]:
    """Tolerations for each set of taints that excludes the pod from a node, the smallest first;
    without nodes that are cordoned or out of order.
    """
    own = deciding.pod.spec.tolerations or ()
    # A pod may have thousands of tolerations: each taint is checked against them once.
    keeps_off = cache(lambda taint: not tolerated(taint, own))
    refused = deciding.refusals(
        lambda name, _: name not in (names.TAINT_TOLERATION, names.NODE_UNSCHEDULABLE)
    )
    wanted: dict[tuple[Taint, ...], None] = {}
    for row in np.flatnonzero(~refused).tolist():
        taints = hard_taints(deciding.node(row))
        if any(taint.key.startswith(STATES) for taint in taints):
            continue
        if missing := tuple(filter(keeps_off, taints)):
            wanted[missing] = None
    for missing in sorted(wanted, key=len)[:TRIES_MAX]:
        more = tuple(Toleration(t.key, "Equal", t.value, t.effect) for t in missing)

        def tolerating(pod: Pod, more: tuple[Toleration, ...] = more) -> Pod:
            return with_spec(pod, tolerations=(*(pod.spec.tolerations or ()), *more))

        if deciding.fits(tolerating):
            details = {"tolerations": [msgspec.to_builtins(toleration) for toleration in more]}
            text = f"tolerate {summed_up(list(map(spelt, missing)))}"
            changed = tolerating(deciding.pod)
            yield Way(suggestion(deciding, "toleration", text, details, changed), tolerating)
            return


def hard_taints(node: Node) -> list[Taint]:
    """The taints that keep pods off a node, that of a cordon included."""
    hard = [taint for taint in node.spec.taints or () if taint.is_hard]
    if node.spec.unschedulable and UNSCHEDULABLE not in hard:
        hard.append(UNSCHEDULABLE)
    return hard


def requests(deciding: Deciding) -> Iterator[Way]:
    """A smaller request for one resource, in the container with the largest request."""
    for resource in deciding.info(deciding.pod).cls.requests:
        chosen = _largest(deciding.pod, resource)
        if chosen is None:
            continue
        index, amount = chosen
        asking = partial(_asking_less, resource=resource, index=index)
        by = deciding.smallest(1, amount, asking)
        if by is None:
            continue
        container = (deciding.pod.spec.containers or ())[index].name
        less, was, left = (written(resource, number) for number in (by, amount, amount - by))
        text = f"request {less} less {resource} in container {container} ({left} instead of {was})"
        details = {"resource": resource, "container": container, "from": was, "to": left}
        change = suggestion(deciding, "request", text, details, asking(deciding.pod, by))
        yield Way(change, partial(asking, by=by))


def _largest(pod: Pod, resource: str) -> tuple[int, int] | None:
    """(index, amount in milli-CPU or whole units) of the container with the largest request."""
    requested = [
        (_requested(container, resource), -index)
        for index, container in enumerate(pod.spec.containers or ())
        if resource in (container.resources.requests or ())
    ]
    amount, index = max(requested, default=(0, 0))
    return (-index, amount) if amount > 0 else None


def _asking_less(pod: Pod, by: int, resource: str, index: int) -> Pod:
    """The pod with a smaller request of a container."""
    containers = pod.spec.containers or ()
    own, amount = containers[index].resources, _requested(containers[index], resource) - by
    wanted = {**(own.requests or {}), resource: written(resource, amount)}
    resources = msgspec.structs.replace(own, requests=wanted)
    changed = msgspec.structs.replace(containers[index], resources=resources)
    return with_spec(pod, containers=(*containers[:index], changed, *containers[index + 1 :]))


def _requested(container: Container, resource: str) -> int:
    return pod_requests(Pod(spec=PodSpec(containers=(container,)))).get(resource, 0)


def skews(deciding: Deciding) -> Iterator[Way]:
    """A larger maxSkew for one hard constraint, up to the number of pods."""
    pod = deciding.pod
    constraints = pod.spec.topology_spread_constraints or ()
    loosest = len(deciding.cluster.placed) + 1

    for index, constraint in enumerate(constraints[:TRIES_MAX]):
        if constraint.when_unsatisfiable != DO_NOT_SCHEDULE:
            continue

        def loosened(pod: Pod, to: int, index: int = index) -> Pod:
            listed = list(pod.spec.topology_spread_constraints or ())
            listed[index] = msgspec.structs.replace(listed[index], max_skew=to)
            return with_spec(pod, topology_spread_constraints=tuple(listed))

        tightest = constraint.max_skew + 1
        found = deciding.smallest(tightest, max(loosest, tightest), loosened)
        if found is not None:
            text = f"allow maxSkew {found} on {constraint.topology_key} (now {constraint.max_skew})"
            details = {"constraint": index, "from": constraint.max_skew, "to": found}
            change = suggestion(deciding, "maxSkew", text, details, loosened(pod, found))
            yield Way(change, partial(loosened, to=found))


# --- devices -------------------------------------------------------------------------------------


def devices(deciding: Deciding) -> Iterator[Way]:
    """Fewer devices in one request of one of the pod's claims. Further pods have other claims."""
    for claim in _claims(deciding):
        for index, request in enumerate(claim.spec.devices.requests or ()):
            exactly = request.exactly
            if exactly is None or exactly.allocation_mode != EXACT_COUNT or exactly.count < 2:
                continue
            by = _by(deciding, claim, index, exactly.count)
            if by is None:
                continue
            left = exactly.count - by
            where = f"request {request.name} of claim {claim.metadata.name}"
            text = f"ask for {left} instead of {exactly.count} devices in {where}"
            details = {
                "claim": claim.metadata.name,
                "request": request.name,
                "deviceClassName": exactly.device_class_name,
                "from": exactly.count,
                "to": left,
            }
            fewer = _asking_for(claim, index, left)
            with deciding.cluster.supposing().seen(RESOURCE_CLAIM, fewer):
                change = suggestion(deciding, "device", text, details)
            see = partial(Supposition.seen, kind=RESOURCE_CLAIM, obj=fewer)
            yield Way(change, of_cluster=see)


def _claims(deciding: Deciding) -> Iterator[ResourceClaim]:
    """The pod's claims that exist and have no devices yet."""
    pod = deciding.pod
    made = {s.name: s.resource_claim_name for s in pod.status.resource_claim_statuses or ()}
    for asked in pod.spec.resource_claims or ():
        name = asked.resource_claim_name or made.get(asked.name)
        key = f"{pod.metadata.namespace}/{name}"
        claim = deciding.cluster.get(RESOURCE_CLAIM, key) if name else None
        if claim is not None and claim.status.allocation is None:
            yield claim


def _by(deciding: Deciding, claim: ResourceClaim, index: int, count: int) -> int | None:
    """By how many devices to reduce the request; None if not even one device fits. Each number
    costs a search of all nodes with devices, so the number of devices of one node is tried first.
    """

    def fits(by: int) -> bool:
        fewer = _asking_for(claim, index, count - by)
        with deciding.cluster.supposing().seen(RESOURCE_CLAIM, fewer):
            return deciding.fits()

    low, most = 1, _most_of_a_node(deciding)
    if most is not None:
        low = max(low, count - most)
        if low < count and fits(low):
            return low
        low += 1
    return smallest(low, count - 1, fits) if low < count else None


def _most_of_a_node(deciding: Deciding) -> int | None:
    """The most devices of one node; None if nodes or requests share devices."""
    cluster = deciding.cluster
    ledger = cluster.singleton(DeviceLedger)
    ledger.catch_up()
    names, most = ledger.inventory.have_own(), 0
    if names is None:
        return None
    for name in names:
        node = cluster.node_of(name)
        if node is not None:
            pools = ledger.inventory.pools_for(name, node.labels)
            if any(device.allows_multiple for pool in pools for device in pool.devices):
                return None
            most = max(most, sum(len(pool.devices) for pool in pools))
    return most


def _asking_for(claim: ResourceClaim, index: int, count: int) -> ResourceClaim:
    """The claim with another device count in a request."""
    replace: Any = msgspec.structs.replace
    listed: list[DeviceRequest] = list(claim.spec.devices.requests or ())
    exactly = replace(listed[index].exactly, count=count)
    listed[index] = replace(listed[index], exactly=exactly)
    asked = replace(claim.spec.devices, requests=tuple(listed))
    changed: ResourceClaim = replace(claim, spec=replace(claim.spec, devices=asked))
    return changed
