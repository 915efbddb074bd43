"""State of all devices, updated object by object, shared by all profiles.

    slices  ──> inventory     which pools a node sees; with the taints that rules put on devices
    claims  ──> taken         which devices are taken: allocated ones, and those in flight
    classes ──> by name, and by the extended resource they stand for

An allocation is *in flight* from Reserve until the API has it. It counts as taken all that time,
whatever versions of the claim the watch delivers meanwhile. Pods of one group share it: it stays as
long as one of them holds it, and each of them can write it.

Bounds  RESERVED_FOR_MAX pods hold one, the API's limit for a claim.
"""

from collections.abc import Collection, Iterable, Mapping
from typing import Final, NamedTuple

from asched.core.cluster.budget import FEW
from asched.core.cluster.change_logs import Reader
from asched.core.cluster.cluster import Cluster
from asched.core.cluster.pod_groups import group_key
from asched.core.config.gates import DEFAULT_GATES
from asched.core.dra.inventory import Inventory, Taken
from asched.core.dra.taint_rules import tainted
from asched.core.model.claim import (
    EXTENDED_RESOURCE_CLAIM,
    RESERVED_FOR_MAX,
    AllocationResult,
    DeviceClass,
    DeviceTaintRule,
    ResourceClaim,
    ResourceSlice,
)
from asched.core.model.kinds import DEVICE_CLASS, DEVICE_TAINT_RULE, RESOURCE_CLAIM, RESOURCE_SLICE
from asched.core.model.pod import Pod

IMPLICIT_PREFIX: Final = "deviceclass.resource.kubernetes.io/"
#: Steps of the budget for an object that changed, where many did.
TAKEN_STEPS: Final = 2.0

#: What is processed object by object, and what is read again as a whole.
_ONE_BY_ONE: Final = (RESOURCE_CLAIM.resource, RESOURCE_SLICE.resource)
_TOGETHER: Final = (DEVICE_CLASS.resource, DEVICE_TAINT_RULE.resource)


class InFlightAllocation(NamedTuple):
    """An allocation on its way to the API, and the uids of the pods that have it reserved: pods of
    `group`, or a single pod if "".
    """

    allocation: AllocationResult
    holders: dict[str, None]
    group: str


class DeviceLedger:
    """One per cluster (`cluster.singleton(DeviceLedger)`). Readers call `catch_up` first."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self.budget = cluster.budget
        self._changes = Reader(cluster.object_log)
        self._behind: dict[tuple[str, str], None] = {}  # changed, not processed yet
        self._uids: dict[str, str] = {}  # claim key -> uid as processed
        self._in_flight: dict[str, InFlightAllocation] = {}
        self._extended: dict[str, str] = {}  # pod uid -> key of its generated claim
        self._owners: dict[str, str] = {}  # and the other way round
        self._classes: Mapping[str, DeviceClass] = {}
        self._rules: tuple[DeviceTaintRule, ...] = ()
        self._slices: dict[str, ResourceSlice] = {}  # as stored by the API
        self.inventory = Inventory()
        self.taken = Taken()
        self.by_resource: dict[str, DeviceClass] = {}
        self.classes_version = 0
        #: of `config/versions.py`, and gates
        self.rules: Mapping[str, bool] = DEFAULT_GATES

    def follow(self, rules: Mapping[str, bool]) -> None:
        """Decide by these rules from now on; a process has one set of them."""
        self.rules = rules
        self.inventory.follow(rules)

    @property
    def version(self) -> tuple[int, int, int]:
        """Changes whenever the result of an allocation may change, apart from nodes."""
        return self.inventory.generation, self.taken.log.end, self.classes_version

    def catch_up(self, *, in_slices: bool = False) -> None:
        """Process what changed since the last call. `in_slices`: raises OutOfTurn where that is too
        much for one turn; then call it again.
        """
        self._note_changes()
        behind = self._behind
        is_charged = in_slices and len(behind) > FEW
        while behind:
            if is_charged:
                self.budget.charge(TAKEN_STEPS)
            resource, key = next(iter(behind))
            del behind[resource, key]
            self._take(resource, key)

    def catch_up_with_claims(self) -> None:
        """The same for claims alone."""
        self._note_changes()
        for resource, key in [item for item in self._behind if item[0] == RESOURCE_CLAIM.resource]:
            del self._behind[resource, key]
            self._take(resource, key)

    def _note_changes(self) -> None:
        entries = self._changes.unread()
        if entries is not None:
            for resource, key in entries:
                if resource in _ONE_BY_ONE:
                    self._behind[resource, key] = None
                elif resource in _TOGETHER:
                    self._behind[resource, ""] = None
            return
        claims, slices = self._cluster.all(RESOURCE_CLAIM), self._cluster.all(RESOURCE_SLICE)
        keys = {
            DEVICE_TAINT_RULE: ("",),
            RESOURCE_CLAIM: (*self._uids, *claims),
            RESOURCE_SLICE: (*self.inventory.names(), *slices),
            DEVICE_CLASS: ("",),
        }
        for kind, of_kind in keys.items():
            self._behind.update(dict.fromkeys((kind.resource, key) for key in of_kind))

    def _take(self, resource: str, key: str) -> None:
        """Process one changed object, or all of a kind."""
        if resource == RESOURCE_CLAIM.resource:
            self._claim(key, self._cluster.get(RESOURCE_CLAIM, key))
        elif resource == RESOURCE_SLICE.resource:
            self._slice(key)
        elif resource == DEVICE_CLASS.resource:
            self._classes = self._cluster.all(DEVICE_CLASS)
            self.by_resource = classes_by_resource(tuple(self._classes.values()))
            self.classes_version += 1
        else:
            self._read_rules()

    # --- questions -------------------------------------------------------------------------------

    @property
    def in_flight(self) -> Collection[str]:
        """Uids of the claims whose allocation is on its way to the API."""
        return self._in_flight.keys()

    def device_class(self, name: str) -> DeviceClass | None:
        return self._classes.get(name)

    def extended_claim_of(self, pod_uid: str) -> ResourceClaim | None:
        """The claim that was created for a pod's extended resources in an earlier attempt."""
        key = self._extended.get(pod_uid)
        found = self._cluster.get(RESOURCE_CLAIM, key) if key is not None else None
        return found if isinstance(found, ResourceClaim) else None

    # --- allocations in flight -------------------------------------------------------------------

    def reserve(self, uid: str, allocation: AllocationResult, pod: Pod | None = None) -> None:
        """Count an allocation as taken until `release`."""
        known = self._in_flight.get(uid)
        if known is None or known.allocation is not allocation:
            group = group_key(pod) if pod is not None else ""
            known = self._in_flight[uid] = InFlightAllocation(allocation, {}, group)
            self.taken.put(uid, allocation)
        if pod is not None:
            known.holders[pod.uid] = None

    def handed_on(self, claim: ResourceClaim, pod: Pod) -> AllocationResult | None:
        """The allocation that other pods of the group have reserved for a claim, and that this pod
        may use.
        """
        known = self._in_flight.get(claim.uid)
        if known is None or not known.group or known.group != group_key(pod):
            return None
        consumers = len(claim.status.reserved_for or ()) + len(known.holders.keys() - {pod.uid})
        return known.allocation if consumers < RESERVED_FOR_MAX else None

    def release(self, uid: str, key: str = "", pod_uid: str = "") -> bool:
        """Let the claim itself determine its devices from now on; with `pod_uid`, only once no
        other pod holds the allocation. False if nothing is released.
        """
        known = self._in_flight.get(uid)
        if known is None:
            return False
        if pod_uid:
            known.holders.pop(pod_uid, None)
            if known.holders:
                return False
        del self._in_flight[uid]
        claim = self._cluster.get(RESOURCE_CLAIM, key) if key else None
        holds = claim.status.allocation if claim is not None and claim.uid == uid else None
        self.taken.put(uid, holds)
        return True

    # --- changes ---------------------------------------------------------------------------------

    def _claim(self, key: str, claim: ResourceClaim | None) -> None:
        old = self._uids.get(key)
        if old is not None and (claim is None or claim.uid != old):
            del self._uids[key]
            self.taken.put(old, self._allocation_of(old, None))
            self._extended.pop(self._owners.pop(key, ""), None)
        if claim is None:
            return
        self._uids[key] = claim.uid
        self.taken.put(claim.uid, self._allocation_of(claim.uid, claim.status.allocation))
        if (claim.metadata.annotations or {}).get(EXTENDED_RESOURCE_CLAIM) == "true":
            owner = claim.metadata.controller
            if owner is not None:
                self._extended[owner.uid] = key
                self._owners[key] = owner.uid

    def _allocation_of(self, uid: str, stored: AllocationResult | None) -> AllocationResult | None:
        known = self._in_flight.get(uid)
        return known.allocation if known is not None else stored

    def _slice(self, name: str) -> None:
        record = self._cluster.get(RESOURCE_SLICE, name)
        if record is None:
            self._slices.pop(name, None)
            self.inventory.remove(name)
        elif record is not self._slices.get(name):
            self._slices[name] = record
            self.inventory.put(tainted(record, self._rules))

    def _read_rules(self) -> None:
        """Process all slices again whose devices have other taints by the current rules."""
        rules = self._cluster.all(DEVICE_TAINT_RULE)
        self._rules = tuple(rules[name] for name in sorted(rules))
        for name, record in self._slices.items():
            now = tainted(record, self._rules)
            if now != self.inventory.record(name):
                self.inventory.put(now)


def classes_by_resource(classes: Iterable[DeviceClass]) -> dict[str, DeviceClass]:
    """Resource name -> class that stands for it: of several the newest, then the first by name."""
    found: dict[str, DeviceClass] = {}
    for device_class in classes:
        found[IMPLICIT_PREFIX + device_class.metadata.name] = device_class
    by_name = sorted(classes, key=lambda c: c.metadata.name, reverse=True)
    for device_class in sorted(by_name, key=lambda c: c.metadata.creation_timestamp or ""):
        if device_class.spec.extended_resource_name:
            found[device_class.spec.extended_resource_name] = device_class
    return found
