"""Disruption budgets: which of the pods that would go are not allowed to.

A budget of the pod's namespace whose selector has requirements and matches a pod with labels speaks
for it, unless the budget lists the pod as disrupted already. Walking over a node's victims-to-be,
the most important one first, each takes one from every budget that speaks for it; a pod that finds
one of them used up violates it. Budgets are soft here: they decide who is spared first and which
node is preferred, nothing else.

Source  kubernetes/kubernetes v1.36 pkg/scheduler/framework/plugins/defaultpreemption
        (filterPodsWithPDBViolation)
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from asched.core.model.kinds import POD_DISRUPTION_BUDGET
from asched.core.model.meta import LabelSelector
from asched.core.model.selector import Matcher, Selector, compile_selector
from asched.core.model.workload import PodDisruptionBudget
from asched.core.state.change_log import ObjectLog
from asched.core.state.cluster import Cluster
from asched.core.state.counters import SelectorIndex
from asched.core.state.gradual import FEW
from asched.core.state.pods import LabelSet, PodInfo

I64 = npt.NDArray[np.int64]


#: Budgets whose selectors are asked for a step of the budget of work, and budgets counted.
MATCHES_PER_STEP: Final = 5
COUNTED_PER_STEP: Final = 2000
#: ... and steps for each pod that may go, however few speak for it.
POD_STEPS: Final = 1.0
#: Requirements that are compiled for a step, where a budget has many.
REQUIREMENTS_PER_STEP: Final = 5
#: Steps for a budget that changed, where many did.
TAKEN_STEPS: Final = 2.0
#: Of numbers of budgets that are kept for label sets. A guess.
BYTES_MAX: Final = 64 << 20


class DisruptionBudget(NamedTuple):
    """A budget that speaks for somebody. `disrupted`: names of pods that are counted already;
    `matcher` is made of the selector, and that of what is `written`.
    """

    key: str
    namespace: str
    selector: Selector
    allowed: int
    disrupted: frozenset[str]
    written: LabelSelector | None
    matcher: Matcher


class _Speaker:
    """A budget's selector, as the index finds it."""

    __slots__ = ("_matches", "number")

    def __init__(self, number: int, budget: DisruptionBudget) -> None:
        self.number = number
        self._matches = budget.matcher.matches

    def speaks_for(self, label_set: LabelSet) -> bool:
        return bool(label_set.labels) and self._matches(label_set.labels)


class Budgets:
    """The budgets of a cluster. `generation` moves when other pods are spoken for than before, and
    `log` holds the keys of those whose numbers changed.

    A tenant may write thousands that all speak for the same pods: they are found by namespace and
    label, and what they leave is counted in one array.
    """

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._cursor = -1
        self._changed: set[str] = set()  # not taken in yet
        self._budgets: dict[str, DisruptionBudget] = {}
        self._keys: list[str] = []  # by number
        self._allowed: I64 = np.zeros(0, dtype=np.int64)  # by number
        self._disrupted: dict[tuple[str, str], set[int]] = {}  # namespace and pod to numbers
        self._index: SelectorIndex[_Speaker] = SelectorIndex()
        self._of: WeakKeyDictionary[LabelSet, I64] = WeakKeyDictionary()
        self._arrays: dict[bytes, I64] = {}  # of these, each once
        self._bytes = 0
        self.generation = self._indexed = 0
        self._is_counted = False
        #: about so many speak for one pod at most
        self.depth = 0
        self.log = ObjectLog()

    def __len__(self) -> int:
        return len(self._budgets)

    def catch_up(self) -> None:
        """Take in the budgets that changed. Raises OutOfTurn where their selectors are too much
        for one turn: then it is to be asked again.
        """
        log = self._cluster.object_log
        if self._cursor == log.end and not self._changed:
            return
        entries = log.since(self._cursor)
        self._cursor = log.end
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

    def speaking_for(self, info: PodInfo) -> I64:
        """The numbers of all budgets that match the pod, those included that count it already."""
        label_set = info.cls.label_set
        found = self._of.get(label_set)
        if found is None:
            speakers = self._index.candidates(label_set)
            numbers = [one.number for one in speakers if one.speaks_for(label_set)]
            found = self._of[label_set] = self._kept_once(sorted(set(numbers)))
        return found

    def find(self, pods: Iterable[PodInfo]) -> None:
        """Know the budgets that speak for these. Raises OutOfTurn, and goes on when asked again."""
        if self._budgets:
            for info in pods:
                if info.cls.label_set not in self._of:
                    self._cluster.budget.charge(self.depth / MATCHES_PER_STEP)
                    self.speaking_for(info)

    def _kept_once(self, numbers: list[int]) -> I64:
        """Thousands of pods that differ are mostly spoken for by the same budgets."""
        made = np.array(numbers, dtype=np.int64)
        key = made.tobytes()
        if key not in self._arrays:
            self._bytes += 2 * len(key)
            if self._bytes > BYTES_MAX:
                self._forget_found()
            self._arrays[key] = made
        return self._arrays[key]

    def _forget_found(self) -> None:
        self._of.clear()
        self._arrays.clear()
        self._bytes = 0

    def steps_for(self, pods: Iterable[PodInfo]) -> float:
        """What it costs to ask about these, in steps of the budget of work."""
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
        """Which of these would violate a budget if all of them went; the first in line first."""
        left = self._allowed.copy()
        return [self._takes_too_much(left, info) for info in pods]

    def violated_by(self, units: Iterable[Sequence[PodInfo]]) -> Iterator[bool]:
        """The same for pods that go together: they do as soon as one of them does. Those after it
        are not counted any more. True of one `generation`.
        """
        left = self._allowed.copy()
        for pods in units:
            yield any(self._takes_too_much(left, info) for info in pods)

    def _takes_too_much(self, left: I64, info: PodInfo) -> bool:
        """Count one more pod that goes. Whether a budget does not allow it."""
        numbers = self.speaking_for(info)
        if len(numbers) and self._disrupted:
            metadata = info.pod.metadata
            counted = self._disrupted.get((metadata.namespace, metadata.name), ())
            numbers = np.array([n for n in numbers.tolist() if n not in counted], np.int64)
        if not len(numbers):
            return False
        left[numbers] -= 1
        return bool((left[numbers] < 0).any())

    def keys_for(self, pods: Iterable[PodInfo]) -> set[str]:
        """The budgets that have a say about any of these."""
        of_sets = {info.cls.label_set: info for info in pods}.values()
        return {self._keys[n] for info in of_sets for n in self.speaking_for(info).tolist()}

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
        """Number the budgets anew."""
        self._indexed = self.generation
        self._keys = list(self._budgets)
        self._index = SelectorIndex()
        for number, budget in enumerate(self._budgets.values()):
            speaker = _Speaker(number, budget)
            self._index.add(frozenset((budget.namespace,)), budget.selector, speaker)
        self.depth = self._index.deepest
        self._forget_found()

    def _count(self) -> None:
        """Take over what each of them leaves."""
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
        """None for one that matches nothing, or has a selector that makes no sense."""
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
            if compiled is None or compiled.is_everything:
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
