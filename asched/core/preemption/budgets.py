"""Disruption budgets: which of the potential victims they protect.

A budget of the pod's namespace covers the pod if its selector matches, unless the budget lists the
pod as disrupted already. Before 1.38 the selector must have requirements, and the pod labels.
Going over a node's potential victims, the most important first, each takes one disruption from
every budget that covers it; a pod for which one of them has none left violates it. Budgets are soft
here: they only decide which pods are spared first and which node is preferred.

Source  kubernetes/kubernetes v1.36 pkg/scheduler/framework/plugins/defaultpreemption
        (filterPodsWithPDBViolation)
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from asched.core.cluster.budget import FEW
from asched.core.cluster.change_logs import ObjectLog, Reader
from asched.core.cluster.cluster import Cluster
from asched.core.cluster.counters import SelectorIndex
from asched.core.cluster.pods import LabelSet, PodInfo
from asched.core.config.gates import DEFAULT_GATES
from asched.core.model.arrays import I64
from asched.core.model.kinds import POD_DISRUPTION_BUDGET
from asched.core.model.meta import LabelSelector
from asched.core.model.selector import Matcher, Selector, compile_selector
from asched.core.model.workload import PodDisruptionBudget

#: Rule: an empty selector selects every pod of the namespace, and pods need no labels.
EMPTY_SELECTS: Final = "budget-with-empty-selector-protects"
#: Rule: of a unit, the pods after the first one that violates a budget count as well.
ALL_COUNT: Final = "budgets-count-each-pod-of-a-group"
#: Budgets whose selectors are matched in a step of the budget of work, and budgets counted.
MATCHES_PER_STEP: Final = 5
COUNTED_PER_STEP: Final = 2000
#: ... and steps for each potential victim, however few budgets cover it.
POD_STEPS: Final = 1.0
#: Requirements that are compiled for a step, where a budget has many.
REQUIREMENTS_PER_STEP: Final = 5
#: Steps for a budget that changed, where many did.
TAKEN_STEPS: Final = 2.0
#: Cached lists of budgets, one for each label set. A guess.
BYTES_MAX: Final = 64 << 20


class DisruptionBudget(NamedTuple):
    """A budget that covers some pod. `disrupted`: names of pods that are counted already; `matcher`
    is compiled from the selector, and the selector is parsed from `written`.
    """

    key: str
    namespace: str
    selector: Selector
    allowed: int
    disrupted: frozenset[str]
    written: LabelSelector | None
    matcher: Matcher


class Budgets:
    """The budgets of a cluster. `generation` changes when a budget starts or stops covering pods,
    and `log` has the keys of budgets whose numbers changed.

    A tenant may write thousands of budgets that all cover the same pods: they are found by
    namespace and label, and their remaining disruptions are counted in one array.
    """

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self.follow(DEFAULT_GATES)
        self._changes = Reader(cluster.object_log)
        self._changed: set[str] = set()  # not processed yet
        self._budgets: dict[str, DisruptionBudget] = {}
        self._keys: list[str] = []  # by number
        self._allowed: I64 = np.zeros(0, dtype=np.int64)  # by number
        self._disrupted: dict[tuple[str, str], set[int]] = {}  # namespace and pod to numbers
        self._index: SelectorIndex[tuple[int, Matcher]] = SelectorIndex()  # numbers
        self._of: WeakKeyDictionary[LabelSet, I64] = WeakKeyDictionary()
        self._arrays: dict[bytes, I64] = {}  # shared arrays of budget numbers
        self._bytes = 0
        self.generation = self._indexed = 0
        self._is_counted = False
        #: an upper estimate of the number of budgets that cover one pod
        self.depth = 0
        self.log = ObjectLog()

    def follow(self, rules: Mapping[str, bool]) -> None:
        """Decide by these rules (`config/versions.py`); before any budget is read."""
        self._empty_selects, self._all_count = rules[EMPTY_SELECTS], rules[ALL_COUNT]

    def __len__(self) -> int:
        return len(self._budgets)

    def catch_up(self) -> None:
        """Process the changed budgets. Raises OutOfTurn where their selectors are too much for one
        turn: call it again.
        """
        entries = self._changes.unread()
        if entries is not None and not entries and not self._changed:
            return
        stored = self._cluster.all(POD_DISRUPTION_BUDGET)
        if entries is None:
            self._changed = stored.keys() | self._budgets.keys()
        else:
            self._changed.update(k for what, k in entries if what == POD_DISRUPTION_BUDGET.resource)
        is_crowd = len(self._changed) > FEW
        for key in sorted(self._changed):
            if is_crowd:
                self._cluster.budget.charge(TAKEN_STEPS)
            self._take(key, stored.get(key))
            self._changed.discard(key)
        if self.generation != self._indexed:
            self._lay_out()
        if not self._is_counted:
            self._count()

    def covering(self, info: PodInfo) -> I64:
        """The numbers of all budgets that match the pod, including those that already count it as
        disrupted.
        """
        label_set = info.cls.label_set
        found = self._of.get(label_set)
        if found is None:
            labels = label_set.labels
            candidates = self._index.candidates(label_set) if labels or self._empty_selects else ()
            numbers = {number for number, matcher in candidates if matcher.matches(labels)}
            found = self._of[label_set] = self._kept_once(sorted(numbers))
        return found

    def allowed(self, number: int) -> int:
        """How many disruptions a budget allows."""
        return int(self._allowed[number])

    def find(self, pods: Iterable[PodInfo]) -> None:
        """Find the budgets that cover these pods. Raises OutOfTurn, and continues when called
        again.
        """
        if self._budgets:
            for info in pods:
                if info.cls.label_set not in self._of:
                    self._cluster.budget.charge(self.depth / MATCHES_PER_STEP)
                    self.covering(info)

    def _kept_once(self, numbers: list[int]) -> I64:
        """Share equal arrays: thousands of different pods are mostly covered by the same
        budgets.
        """
        made = np.array(numbers, dtype=np.int64)
        key = made.tobytes()
        if key not in self._arrays:
            self._bytes += 2 * len(key)
            if self._bytes > BYTES_MAX:
                self._forget_covering()
            self._arrays[key] = made
        return self._arrays[key]

    def _forget_covering(self) -> None:
        self._of.clear()
        self._arrays.clear()
        self._bytes = 0

    def steps_for(self, pods: Iterable[PodInfo]) -> float:
        """Cost of checking these pods, in steps of the budget of work."""
        if not self._budgets:
            return 0.0
        count, unknown = 0, set()
        for info in pods:
            count += 1
            if info.cls.label_set not in self._of:
                unknown.add(info.cls.label_set)
        each = len(unknown) / MATCHES_PER_STEP + count / COUNTED_PER_STEP
        return count * POD_STEPS + self.depth * each

    def violations(self, pods: Sequence[PodInfo]) -> list[bool]:
        """Whether each pod would violate a budget if all were evicted; the most important pod comes
        first.
        """
        allowed = self._allowed.copy()
        return [self._takes_too_much(allowed, info) for info in pods]

    def violated_by(self, units: Iterable[Sequence[PodInfo]]) -> Iterator[int]:
        """The same for units: how many pods of each violate a budget. Valid for one
        `generation`.
        """
        allowed, count = self._allowed.copy(), sum if self._all_count else any
        for pods in units:
            yield int(count(self._takes_too_much(allowed, info) for info in pods))

    def _takes_too_much(self, allowed: I64, info: PodInfo) -> bool:
        """Count one more evicted pod. Whether a budget does not allow it."""
        numbers = self.covering(info)
        if len(numbers) and self._disrupted:
            metadata = info.pod.metadata
            counted = self._disrupted.get((metadata.namespace, metadata.name), ())
            numbers = np.array([n for n in numbers.tolist() if n not in counted], np.int64)
        if not len(numbers):
            return False
        allowed[numbers] -= 1
        return bool((allowed[numbers] < 0).any())

    def keys_for(self, pods: Iterable[PodInfo]) -> set[str]:
        """Keys of the budgets that cover any of these pods."""
        of_sets = {info.cls.label_set: info for info in pods}.values()
        return {self._keys[n] for info in of_sets for n in self.covering(info).tolist()}

    def _take(self, key: str, stored: PodDisruptionBudget | None) -> None:
        old = self._budgets.get(key)
        new = None if stored is None else self._read(key, stored, old)
        if old == new:
            return
        if new is None:
            del self._budgets[key]
        else:
            self._budgets[key] = new
        if old is None or new is None or old.selector != new.selector:
            self.generation += 1
        else:
            self.log.add(POD_DISRUPTION_BUDGET.resource, key)
        self._is_counted = False

    def _lay_out(self) -> None:
        """Renumber the budgets."""
        self._indexed = self.generation
        self._keys = list(self._budgets)
        self._index = SelectorIndex()
        for number, budget in enumerate(self._budgets.values()):
            entry = number, budget.matcher
            self._index.add(frozenset((budget.namespace,)), budget.selector, entry)
        self.depth = self._index.deepest
        self._forget_covering()

    def _count(self) -> None:
        """Update the remaining disruptions of each budget."""
        self._is_counted = True
        budgets = [self._budgets[key] for key in self._keys]
        self._allowed = np.array([budget.allowed for budget in budgets], dtype=np.int64)
        self._disrupted = {}
        for number, budget in enumerate(budgets):
            for name in budget.disrupted:
                self._disrupted.setdefault((budget.namespace, name), set()).add(number)

    def _read(
        self, key: str, stored: PodDisruptionBudget, old: DisruptionBudget | None
    ) -> DisruptionBudget | None:
        """None for a budget that matches nothing, or has an invalid selector."""
        written = stored.spec.selector
        if old is not None and old.written == written:
            selector, matcher = old.selector, old.matcher
        else:
            count = len((written and written.match_expressions) or ())
            if count > FEW:
                self._cluster.budget.charge(count / REQUIREMENTS_PER_STEP)
            try:
                compiled = compile_selector(written)
            except ValueError:
                return None
            if compiled is None or (compiled.is_everything and not self._empty_selects):
                return None
            selector, matcher = compiled, Matcher(compiled.requirements)
        status = stored.status
        return DisruptionBudget(
            key,
            stored.metadata.namespace,
            selector,
            status.disruptions_allowed,
            frozenset(status.disrupted_pods or ()),
            written,
            matcher,
        )
