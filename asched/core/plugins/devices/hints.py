"""When a pod that DynamicResources rejected is worth another attempt.

A claim that lost its allocation frees devices for all pods; beyond that only the pod's own claims
matter, and only once all of them can be used. Upstream does not register for the `extra_events`:
claims that are deleted without being deallocated, deleted slices and classes, devices reserved for
pods whose binding failed.
"""

from collections.abc import Sequence
from typing import Final

from asched.core.cluster.changes import Action, Trigger
from asched.core.cluster.cluster import Cluster
from asched.core.dra.extended_requests import is_delegable
from asched.core.framework.registrations import Concerns, Hint, Registration
from asched.core.model.claim import ResourceClaim
from asched.core.model.kinds import (
    DEVICE_CLASS,
    DEVICE_TAINT_RULE,
    NODE,
    POD,
    RESOURCE_CLAIM,
    RESOURCE_SLICE,
)
from asched.core.model.pod import Pod
from asched.core.plugins.devices.claims import ClaimError, claims_of


def _names_devices(pod: Pod) -> bool:
    """Whether the pod names claims, or requests a resource that a device class could stand for."""
    spec = pod.spec
    if spec.resource_claims:
        return True
    for container in (*(spec.containers or ()), *(spec.init_containers or ())):
        for name in container.resources.requests or ():  # called for each deleted pod
            if is_delegable(name):
                return True
    return False


_ANY: Final = ("any",)
#: A deleted pod that requested no devices frees none.
OF_DEVICES: Final = Concerns(lambda _: _ANY, lambda old, _: _ANY if _names_devices(old) else ())


def _claims_sought(pod: Pod) -> list[tuple[str, str]]:
    """Keys of the claims that the pod names, and its uid for a claim generated for it: the
    controller sets the pod as owner, which is checked before the claim is used.
    """
    namespace = pod.metadata.namespace
    return [
        ("claim", f"{namespace}/{reference.resource_claim_name}")
        if reference.resource_claim_name is not None
        else ("owner", pod.uid)
        for reference in pod.spec.resource_claims or ()
    ]


def _claims_offered(
    old: ResourceClaim | None, new: ResourceClaim
) -> tuple[tuple[str, str], ...] | None:
    if _is_deallocated(old, new):  # any pod may use its devices
        return None
    owner = new.metadata.controller
    own = (("owner", owner.uid),) if owner is not None else ()
    return (("claim", new.metadata.key), *own)


def _is_deallocated(old: ResourceClaim | None, new: ResourceClaim) -> bool:
    was_allocated = old is not None and old.status.allocation is not None
    return was_allocated and new.status.allocation is None


#: Thousands of pods may wait for their generated claims, which appear one by one.
OF_CLAIMS: Final = Concerns(_claims_sought, _claims_offered)


class ClaimHints:
    """Hint functions; they read the cluster as it is after the change."""

    def __init__(self, cluster: Cluster, *, uses_taint_rules: bool = False) -> None:
        """`uses_taint_rules`: register for DRADeviceTaintRules, whose taints affect devices as
        slices do.
        """
        self._cluster = cluster
        self._uses_taint_rules = uses_taint_rules

    def registrations(self) -> Sequence[Registration]:
        appeared = Action.ADD | Action.UPDATE
        node = Action.ADD | Action.UPDATE_NODE_LABEL | Action.UPDATE_NODE_ALLOCATABLE
        generated = Action.UPDATE_POD_GENERATED_RESOURCE_CLAIM
        return (
            Registration(Trigger(NODE.resource, node)),
            Registration(Trigger(RESOURCE_CLAIM.resource, appeared), self.claim_changed, OF_CLAIMS),
            Registration(Trigger(POD.resource, generated), self.pod_changed),
            Registration(Trigger(DEVICE_CLASS.resource, appeared)),
            Registration(Trigger(RESOURCE_SLICE.resource, appeared)),
            *(
                (Registration(Trigger(DEVICE_TAINT_RULE.resource, Action.ALL)),)
                if self._uses_taint_rules
                else ()
            ),
        )

    def extra_events(self) -> Sequence[Registration]:
        return (
            Registration(Trigger(RESOURCE_CLAIM.resource, Action.DELETE), self.claim_gone),
            Registration(Trigger(RESOURCE_SLICE.resource, Action.DELETE)),
            Registration(Trigger(DEVICE_CLASS.resource, Action.DELETE)),
            Registration(Trigger(POD.resource, Action.DELETE), self.pod_gone, OF_DEVICES),
        )

    def claim_gone(self, pod: Pod, old: ResourceClaim, new: None) -> Hint:
        """Its devices are free, if it held any; the pod may get a new claim, if this one was left
        from its earlier attempt.
        """
        owner = old.metadata.controller
        is_own = owner is not None and owner.uid == pod.uid
        return Hint.QUEUE if is_own or old.status.allocation is not None else Hint.SKIP

    def pod_gone(self, pod: Pod, old: Pod, new: None) -> Hint:
        """Devices reserved for a pod that was not bound; those of a pod that ran stay with its
        claims, and a pod that requested none frees none.
        """
        known = self._cluster.pods_seen.get(old.key)
        if known is None or known.uid != old.uid:
            on_its_way = old.status.start_time is None
        else:
            on_its_way = not known.spec.node_name
        return Hint.QUEUE if on_its_way and _names_devices(old) else Hint.SKIP

    def claim_changed(self, pod: Pod, old: ResourceClaim | None, new: ResourceClaim) -> Hint:
        try:
            claims = claims_of(pod, self._cluster)
        except ClaimError:
            return Hint.SKIP
        if _is_deallocated(old, new):
            return Hint.QUEUE
        if all(claim.uid != new.uid for claim in claims):
            return Hint.SKIP
        return Hint.SKIP if old is not None and old.status == new.status else Hint.QUEUE

    def pod_changed(self, pod: Pod, old: Pod | None, new: Pod) -> Hint:
        if pod.uid != new.uid:
            return Hint.SKIP
        try:
            claims_of(new, self._cluster)
        except ClaimError:
            return Hint.SKIP
        return Hint.QUEUE
