"""The structured allocator: devices for all claims of a pod on one node, or the reason why not.

A depth-first search over claims, requests and devices, in the order in which they are listed; the
first complete solution is taken. Devices of one request are chosen in ascending order, as another
order would be the same choice. Of alternatives the first that leads to a complete solution is
taken.

A search may be long, so it is a generator that pauses regularly: the caller continues it later, if
the devices are unchanged.

Bounds  32 devices per claim (ALLOCATION_RESULTS_MAX); `steps_max` devices visited per node;
        CHUNK_STEPS of them between two pauses.
Source  kubernetes/kubernetes v1.36 dynamic-resource-allocation/structured, allocator
"""

from collections.abc import Callable, Generator, Hashable, Iterator, Mapping, Sequence
from enum import Enum
from fractions import Fraction
from functools import partial
from itertools import chain
from typing import Final, NamedTuple, TypeVar

from asched.core.cluster.nodes import Aspect
from asched.core.config.gates import DEFAULT_GATES
from asched.core.dra import capacity
from asched.core.dra.devices import Amounts, DeviceId, PoolId, ReadyDevice
from asched.core.dra.inventory import Taken
from asched.core.dra.plan import AllocationError, ClaimPlan, PlannedRequest
from asched.core.dra.pools import Pool
from asched.core.model.claim import ALLOCATION_RESULTS_MAX, DeviceAttribute, DeviceConstraint
from asched.core.model.quantity import parse

#: Changes of a node that can change its verdict.
NODE_ASPECTS: Final = Aspect.LABELS | Aspect.ALLOCATABLE | Aspect.LIVE

FITS: Final = 0
CANNOT_ALLOCATE: Final = 1
UNAVAILABLE: Final = 2
STALE_EXTENDED: Final = 3
CANNOT_FIT: Final = 4
INVALID: Final = 5

#: From this value on, a code stands for an error that ends the attempt.
TIMED_OUT: Final = 100
FAILED: Final = 101

INVALID_POOLS: Final = "invalid resource pools were encountered"
TIMED_OUT_TEXT: Final = "timed out trying to allocate devices"
TEXTS: Final = {
    CANNOT_ALLOCATE: "cannot allocate all claims",
    UNAVAILABLE: "resourceclaim not available on the node",
    STALE_EXTENDED: "cannot schedule extended resource claim",
    CANNOT_FIT: "cannot fit resource",
    INVALID: INVALID_POOLS,
}


#: Devices visited between two pauses of a search, or as much other work.
CHUNK_STEPS: Final = 512


R = TypeVar("R")
#: Yields where the search may be paused.
Steps = Generator[None, None, R]


class Effort:
    """Number of devices that a search has visited. Evaluating a selector counts for several."""

    __slots__ = ("_charged", "steps")

    def __init__(self) -> None:
        self.steps = self._charged = 0

    @property
    def is_due(self) -> bool:
        """Whether enough uncharged work has accumulated that the search should pause."""
        return self.steps - self._charged >= CHUNK_STEPS

    def tell(self) -> int:
        """Steps since the last call."""
        charged, self._charged = self._charged, self.steps
        return self.steps - charged


class Candidates:
    """The devices that a request may choose from, found lazily. Selectors run once per device, and
    only for available devices: an error of a selector ends the attempt.
    """

    __slots__ = ("_answers", "_are_alike", "_known", "_rest", "_selects", "_unasked")

    def __init__(self, rest: Iterator[ReadyDevice], selects: Callable[[ReadyDevice], bool]) -> None:
        self._rest: Iterator[ReadyDevice] | None = rest
        self._selects = selects
        self._known: list[ReadyDevice] = []
        self._answers: list[bool | None] = []
        self._unasked = 0
        self._are_alike = True  # no device is changed by a trial

    def from_index(self, index: int) -> Iterator[tuple[int, ReadyDevice]]:
        """Devices that are not excluded yet, with their positions."""
        while True:
            while self._rest is not None and len(self._known) <= index:
                self._find()
            if index >= len(self._known):
                return
            if self._answers[index] is not False:
                yield index, self._known[index]
            index += 1

    def _find(self) -> None:
        assert self._rest is not None
        device = next(self._rest, None)
        if device is None:
            self._rest = None
            return
        self._known.append(device)
        self._answers.append(None)
        self._unasked += 1
        self._are_alike = self._are_alike and not device.consumes

    def is_selectable(self, index: int) -> bool:
        answer = self._answers[index]
        if answer is None:
            answer = self._answers[index] = self._selects(self._known[index])
            self._unasked -= 1
        return answer

    def are_too_few(self, index: int, needed: int) -> bool:
        """Whether it is known that fewer than `needed` can be chosen from the index-th on."""
        if self._rest is not None or self._unasked or not self._are_alike:
            return False
        return len(self._known) - index < needed


class CounterLedger:
    """Remaining shared counters of some pools during one search: a device may be taken while each
    of its counters suffices.

    Allocated devices of a pool have used some, whether or not this node sees them; devices chosen
    during a search use more. A negative counter, which only contradictory claims cause, rules out
    every device that uses counters of the pool.
    """

    def __init__(self, pools: tuple[Pool, ...], taken: Taken) -> None:
        self._pools = {pool.id: pool for pool in pools}
        self._taken = taken
        self._remaining: dict[PoolId, Amounts] = {}

    def suffice(self, device: ReadyDevice) -> bool:
        """Whether the counters suffice for a device."""
        remaining = self._remaining.get(device.pool_id)
        if remaining is None:
            remaining = self._remaining[device.pool_id] = self._available(device.pool_id)
        if any(amount < 0 for amount in remaining.values()):
            return False
        return all(remaining[counter] >= amount for counter, amount in device.consumes.items())

    def move(self, device: ReadyDevice, sign: int) -> None:
        """Take the counters of a device, which suffice (-1), or give them back (1)."""
        remaining = self._remaining[device.pool_id]
        for counter, amount in device.consumes.items():
            remaining[counter] += sign * amount

    def _available(self, pool_id: PoolId) -> Amounts:
        pool = self._pools[pool_id]
        remaining = dict(pool.counters)
        for device in pool.consumers:
            if self._taken.is_used(device.id):
                for counter, amount in device.consumes.items():
                    remaining[counter] = remaining.get(counter, 0) - amount
        return remaining


class AllocationConstraint:
    """All devices of one claim have the attribute, and one value of it (`is_equal`), or each
    another value. `by_request`: of each request only the device added last is stored, and none once
    it is removed, as in kube-scheduler 1.36.

    A device is added on trial and removed in reverse order. A constraint that rejects a device is
    left unchanged.
    """

    def __init__(
        self, requests: tuple[str, ...], attribute: str, *, is_equal: bool, by_request: bool
    ) -> None:
        self._requests = frozenset(requests)
        self._attribute = attribute
        self._is_equal = is_equal
        self._by_request = by_request
        self._values: dict[str | int, Hashable] = {}  # by request, or by position

    def add(self, request: str, parent: str, device: ReadyDevice) -> bool:
        """Add a device, or return False. `parent` is empty for a request without alternatives."""
        if not self._concerns(request, parent):
            return True
        attribute = device.attribute(self._attribute)
        value = _value(attribute) if attribute is not None else None
        values = self._values
        if value is None or (values and (value in values.values()) is not self._is_equal):
            return False
        values[(parent or request) if self._by_request else len(values)] = value
        return True

    def remove(self, request: str, parent: str) -> None:
        """Remove the device added last."""
        if self._concerns(request, parent):
            last = (parent or request) if self._by_request else len(self._values) - 1
            self._values.pop(last, None)

    def _concerns(self, request: str, parent: str) -> bool:
        """A constraint names a request, with all its alternatives, or one alternative of it."""
        if not self._requests:
            return True
        if not parent:
            return request in self._requests
        return parent in self._requests or f"{parent}/{request}" in self._requests


def _value(attribute: DeviceAttribute) -> Hashable | None:
    """The value with its type, so that 1, true and "1" differ; None if there is none."""
    for name in ("string", "int", "bool", "version"):
        value = getattr(attribute, f"{name}_value")
        if value is not None:
            return name, value
    return None


def build(
    constraint: DeviceConstraint, rules: Mapping[str, bool] = DEFAULT_GATES
) -> AllocationConstraint | None:
    """None for a kind of constraint of a later version of the API."""
    is_equal = constraint.match_attribute is not None
    attribute = constraint.match_attribute if is_equal else constraint.distinct_attribute
    if attribute is None:
        return None
    by_request = not is_equal and not rules["distinct-attribute-per-device"]
    requests = constraint.requests or ()
    return AllocationConstraint(requests, attribute, is_equal=is_equal, by_request=by_request)


class NodeRejected(Exception):  # noqa: N818
    """These claims cannot be allocated on this node; the message says why."""


class OutOfSteps(Exception):  # noqa: N818
    """The search was given up: it visited too many devices."""


class ChosenDevice(NamedTuple):
    """One device of the solution. `consumed`: capacity taken of a shared device."""

    request: PlannedRequest
    device: ReadyDevice
    consumed: Mapping[str, str] | None


class Solution(NamedTuple):
    """`devices[c]` of claim c, in order; `selected[c][r]` is the alternative chosen for its request
    r.
    """

    devices: tuple[tuple[ChosenDevice, ...], ...]
    selected: tuple[tuple[int, ...], ...]


#: Visiting a device costs four times a unit of CEL cost. Measured.
CEL_PER_STEP: Final = 4


class _Outcome(Enum):
    FOUND = 1
    NONE = 2
    TOO_MANY = 3  # every continuation needs more devices than a claim may have


_NOTHING: Final[dict[str, Fraction]] = {}


class DeviceSearch:
    """Finds devices for all claims on a node (name and labels) that sees these pools, by the rules
    of a minor version (`config/versions.py`).

    `steps_max` 0 means no limit. Valid as long as pools and taken devices are unchanged.
    """

    def __init__(
        self,
        pools: tuple[Pool, ...],
        plans: Sequence[ClaimPlan],
        taken: Taken,
        node: tuple[str, Mapping[str, str]],
        steps_max: int,
        rules: Mapping[str, bool],
    ) -> None:
        self._rules = rules
        self._all_lists_full = rules["all-mode-lists-full-devices"]
        self._paid_shares = taken.shared if rules["shares-pay-counters-once"] else taken.capacity
        self._names_devices = rules["selector-errors-name-the-device"]
        self.effort = Effort()
        self._pools = pools
        self._plans = plans
        self._taken = taken
        self._node = node
        self._remaining_steps = steps_max
        self._using: dict[DeviceId, list[int]] = {}  # device -> claims of this search
        self._sharing: dict[DeviceId, list[dict[str, Fraction]]] = {}  # what chosen shares take
        self._counters = CounterLedger(pools, taken)
        self._candidates: dict[PlannedRequest, Candidates] = {}
        self._all: dict[PlannedRequest, list[ReadyDevice]] = {}
        self._constraints: list[list[AllocationConstraint]] = []
        self._results: list[list[ChosenDevice]] = [[] for _ in plans]
        self._selected: dict[tuple[int, int], int] = {}

    def run(self) -> Solution | None:
        """None: they cannot be allocated there. Raises NodeRejected, OutOfSteps, and
        AllocationError for an error on every node.
        """
        steps = self.steps()
        while True:
            try:
                next(steps)
            except StopIteration as end:
                found: Solution | None = end.value
                return found

    def steps(self) -> Steps[Solution | None]:
        """`run` as a generator."""
        try:
            yield from self._prepare()
            if (yield from self._request(0, 0)) is _Outcome.FOUND:
                return self._solution()
        finally:  # drops reference cycles: the search is freed without the garbage collector
            self._candidates.clear()
        if any(pool.is_invalid for pool in self._pools):
            raise NodeRejected(INVALID_POOLS)
        return None

    # --- before the search -----------------------------------------------------------------------

    def _prepare(self) -> Steps[None]:
        """Resolve "all", and reject requests that can never be satisfied. Raises
        AllocationError.
        """
        for plan in self._plans:
            least = 0
            for alternatives in plan.requests:
                sizes = set[int]()
                for request in alternatives:
                    sizes.add((yield from self._size(plan, request)))
                least += min(sizes)
            key = plan.claim.metadata.key
            if least > ALLOCATION_RESULTS_MAX:
                raise AllocationError(
                    f"claim {key}: number of requested devices {least} exceeds the claim limit "
                    f"of {ALLOCATION_RESULTS_MAX}"
                )
            built = []
            for index, wanted in enumerate(plan.claim.spec.devices.constraints or ()):
                constraint = build(wanted, self._rules)
                if constraint is None:
                    raise AllocationError(
                        f"claim {key}, constraint #{index}: empty constraint "
                        "(unsupported constraint type?)"
                    )
                built.append(constraint)
            self._constraints.append(built)

    def _size(self, plan: ClaimPlan, request: PlannedRequest) -> Steps[int]:
        if not request.takes_all:
            return request.count
        where = f"claim {plan.claim.metadata.key}, request {request.name}"
        matching: list[ReadyDevice] = []
        for pool in self._pools:
            state = "being updated" if pool.is_incomplete else "invalid"
            if pool.is_incomplete or pool.is_invalid:
                if self._rules["incomplete-pools-reject-a-node"]:
                    raise NodeRejected(INVALID_POOLS)
                raise AllocationError(
                    f"{where}: asks for all devices, but resource pool {pool.name} "
                    f"is currently {state}"
                )
            for device in pool.devices:
                if self._is_selectable(request, device) and self._is_listed(request, device):
                    matching.append(device)
                self.effort.steps += 1
                if self.effort.is_due:
                    yield
        self._all[request] = matching
        return len(matching)

    # --- the search ------------------------------------------------------------------------------

    def _solution(self) -> Solution:
        return Solution(
            tuple(tuple(chosen) for chosen in self._results),
            tuple(
                tuple(self._selected.get((c, r), 0) for r in range(len(plan.requests)))
                for c, plan in enumerate(self._plans)
            ),
        )

    def _request(self, c: int, r: int) -> Steps[_Outcome]:
        if c == len(self._plans):
            return _Outcome.FOUND
        plan = self._plans[c]
        if r == len(plan.requests):
            outcome = yield from self._request(c + 1, 0)
            # Another choice for this request may leave the next claim an alternative with fewer
            # devices.
            return _Outcome.NONE if outcome is _Outcome.TOO_MANY else outcome
        all_too_many = True
        for index, request in enumerate(plan.requests[r]):
            self._selected[c, r] = index
            outcome = yield from self._devices(c, r, request, 0, 0)
            if outcome is _Outcome.FOUND:
                return outcome
            all_too_many = all_too_many and outcome is _Outcome.TOO_MANY
        return _Outcome.TOO_MANY if all_too_many else _Outcome.NONE

    def _devices(
        self, c: int, r: int, request: PlannedRequest, k: int, start: int
    ) -> Steps[_Outcome]:
        """Choose the k-th device of a request, from the start-th candidate on, and the following
        ones.
        """
        needed = len(self._all[request]) if request.takes_all else request.count
        if request.takes_all and not needed:
            return _Outcome.NONE
        if k >= needed:
            return (yield from self._request(c, r + 1))
        if len(self._results[c]) + needed - k > ALLOCATION_RESULTS_MAX:
            return _Outcome.TOO_MANY
        if request.takes_all:
            return (yield from self._take_all(c, r, request, k))
        candidates = self._candidates_of(request)
        for index, device in candidates.from_index(start):
            if candidates.are_too_few(index, needed - k):
                break
            if self._is_held(c, request, device) or not candidates.is_selectable(index):
                self.effort.steps += 1
                if self.effort.is_due:
                    yield
                continue
            self._step()
            if self.effort.is_due:
                yield
            if self._consumption(request, device) is None:
                continue
            if self._take(c, request, device):
                outcome = yield from self._devices(c, r, request, k + 1, index + 1)
                if outcome is _Outcome.FOUND:
                    return outcome
                self._give_back(c, request, device)
                if outcome is _Outcome.TOO_MANY:
                    return outcome
        return _Outcome.NONE

    def _take_all(self, c: int, r: int, request: PlannedRequest, k: int) -> Steps[_Outcome]:
        device = self._all[request][k]
        self._step()
        if not self._take(c, request, device, must=True):
            return _Outcome.NONE
        outcome = yield from self._devices(c, r, request, k + 1, 0)
        if outcome is not _Outcome.FOUND:
            self._give_back(c, request, device)
        return outcome

    def _step(self) -> None:
        self.effort.steps += 1
        self._remaining_steps -= 1
        if self._remaining_steps == 0:
            raise OutOfSteps

    # --- one device ------------------------------------------------------------------------------

    def _take(
        self, c: int, request: PlannedRequest, device: ReadyDevice, *, must: bool = False
    ) -> bool:
        """Choose a device if nothing prevents it. `must`: a violated constraint is an error.

        A rejected device leaves counters, constraints and capacity unchanged.
        """
        if self._is_held(c, request, device):
            return False
        pays = self._pays_counters(device)
        if pays and not self._counters.suffice(device):
            return False
        if not request.tolerates(device):
            return False
        if not self._constrain(c, request, device):
            if must:
                raise AllocationError(
                    f"claim {self._plans[c].claim.metadata.key}, request {request.name}: "
                    f"cannot add device {device.id.text} because a claim constraint would not be "
                    "satisfied"
                )
            return False
        used = self._consumption(request, device)
        if used is None:
            self._release_constraints(request, self._constraints[c])
            return False
        if pays:
            self._counters.move(device, -1)
        if device.allows_multiple:
            share = {name: parse(amount) for name, amount in used.items()}
            self._sharing.setdefault(device.id, []).append(share)
        else:
            self._using.setdefault(device.id, []).append(c)
        self._results[c].append(
            ChosenDevice(request, device, used if device.allows_multiple else None)
        )
        return True

    def _give_back(self, c: int, request: PlannedRequest, device: ReadyDevice) -> None:
        """Undo the last choice; of a shared device, the last share gives back the counters."""
        self._results[c].pop()
        self._release_constraints(request, self._constraints[c])
        if not device.allows_multiple:
            self._using[device.id].remove(c)
        else:
            self._sharing[device.id].pop()
            if not self._sharing[device.id]:
                del self._sharing[device.id]
        if self._pays_counters(device):
            self._counters.move(device, 1)

    def _pays_counters(self, device: ReadyDevice) -> bool:
        """Whether a choice of the device uses counters; of several shares, the first uses them for
        all.
        """
        if not device.consumes:
            return False
        is_paid = device.id in self._sharing or device.id in self._paid_shares
        return not (device.allows_multiple and is_paid)

    def _constrain(self, c: int, request: PlannedRequest, device: ReadyDevice) -> bool:
        for done, constraint in enumerate(self._constraints[c]):
            if not constraint.add(request.name, request.parent, device):
                self._release_constraints(request, self._constraints[c][:done])
                return False
        return True

    @staticmethod
    def _release_constraints(
        request: PlannedRequest, added: Sequence[AllocationConstraint]
    ) -> None:
        for constraint in added:
            constraint.remove(request.name, request.parent)

    def _is_held(self, c: int, request: PlannedRequest, device: ReadyDevice) -> bool:
        """Admin access ignores all holders but an earlier request of the same claim."""
        users = self._using.get(device.id, ())
        if request.admin:
            return c in users
        if not device.allows_multiple and self._rules["shares-bar-exclusive-use"]:
            return bool(users) or self._taken.is_used(device.id)
        return bool(users) or device.id in self._taken.devices

    def _is_selectable(self, request: PlannedRequest, device: ReadyDevice) -> bool:
        try:
            selects, cost = request.selects(device, is_named=self._names_devices)
        except AllocationError as error:
            self.effort.steps += error.cost // CEL_PER_STEP
            raise
        self.effort.steps += cost // CEL_PER_STEP
        if not selects:
            return False
        return device.place is None or device.place.matches(*self._node)

    def _is_listed(self, request: PlannedRequest, device: ReadyDevice) -> bool:
        """Whether "all" includes a device by its capacity."""
        if not self._all_lists_full:
            return self._consumption(request, device) is not None
        if not request.capacity and not device.allows_multiple:
            return True
        return self._consumed(request, device) is not None

    def _consumed(self, request: PlannedRequest, device: ReadyDevice) -> dict[str, str] | None:
        return capacity.consumption(request.capacity, device.record, self._rules)

    def _consumption(
        self, request: PlannedRequest, device: ReadyDevice
    ) -> Mapping[str, str] | None:
        """What the request takes of each capacity; None if that is not available."""
        held = self._taken.capacity.get(device.id, _NOTHING)
        if not request.capacity and not device.allows_multiple and not held:
            return {}
        used = self._consumed(request, device)
        if used is None:
            return None
        sharing = self._sharing.get(device.id, ())
        return used if capacity.fits(used, device.record, held, *sharing) else None

    def _candidates_of(self, request: PlannedRequest) -> Candidates:
        """Devices that earlier allocations leave to a request, evaluated lazily."""
        found = self._candidates.get(request)
        if found is None:
            held = self._taken.devices
            devices = chain.from_iterable(pool.devices for pool in self._pools)
            usable = (d for d in devices if request.admin or d.id not in held)
            selects = partial(self._is_selectable, request)
            found = self._candidates[request] = Candidates(usable, selects)
        return found
