"""Disruption budgets: which of the pods that would go are not allowed to.

A budget of the pod's namespace whose selector has requirements and matches a pod with labels speaks
for it, unless the budget lists the pod as disrupted already. Walking over a node's victims-to-be,
the most important one first, each takes one from every budget that speaks for it; a pod that finds
one of them used up violates it. Budgets are soft here: they decide who is spared first and which
node is preferred, nothing else.

Source  kubernetes/kubernetes v1.36 pkg/scheduler/framework/plugins/defaultpreemption
        (filterPodsWithPDBViolation)
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple
from weakref import WeakKeyDictionary

from asched.core.model.kinds import POD_DISRUPTION_BUDGET
from asched.core.model.selector import Selector, compile_selector
from asched.core.model.workload import PodDisruptionBudget
from asched.core.state.cluster import Cluster
from asched.core.state.object_log import ObjectLog
from asched.core.state.pods import LabelSet, PodInfo


class Budget(NamedTuple):
    """A budget that speaks for somebody. `disrupted`: names of pods that are counted already."""

    key: str
    namespace: str
    selector: Selector
    allowed: int
    disrupted: frozenset[str]

    def speaks_for(self, label_set: LabelSet) -> bool:
        return (
            label_set.namespace == self.namespace
            and bool(label_set.labels)
            and self.selector.matches(label_set.labels)
        )


class Budgets:
    """The budgets of a cluster. `generation` moves when other pods are spoken for than before, and
    `log` holds the keys of those whose numbers changed.
    """

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._cursor = -1
        self._budgets: dict[str, Budget] = {}
        self._of: WeakKeyDictionary[LabelSet, tuple[Budget, ...]] = WeakKeyDictionary()
        self.generation = 0
        self.log = ObjectLog()

    def __len__(self) -> int:
        return len(self._budgets)

    def catch_up(self) -> None:
        """Take in the budgets that changed."""
        log = self._cluster.object_log
        if self._cursor == log.end:
            return
        entries = log.since(self._cursor) if self._cursor >= 0 else None
        self._cursor = log.end
        stored = self._cluster.all(POD_DISRUPTION_BUDGET)
        if entries is None:
            changed = stored.keys() | self._budgets.keys()
        else:
            changed = {key for plural, key in entries if plural == POD_DISRUPTION_BUDGET.plural}
        for key in sorted(changed):
            self._take(key, stored.get(key))

    def speaking_for(self, info: PodInfo) -> tuple[Budget, ...]:
        """All budgets that match the pod, those included that count it already."""
        label_set = info.cls.label_set
        found = self._of.get(label_set)
        if found is None:
            found = tuple(b for b in self._budgets.values() if b.speaks_for(label_set))
            self._of[label_set] = found
        return found

    def violations(self, pods: Sequence[PodInfo]) -> list[bool]:
        """Which of these would violate a budget if all of them went; the first in line first."""
        left: dict[str, int] = {}
        found = []
        for info in pods:
            is_violating = False
            for budget in self.speaking_for(info):
                if info.pod.metadata.name in budget.disrupted:
                    continue
                rest = left.get(budget.key, budget.allowed) - 1
                left[budget.key] = rest
                is_violating |= rest < 0
            found.append(is_violating)
        return found

    def keys_for(self, pods: Iterable[PodInfo]) -> set[str]:
        """The budgets that have a say about any of these."""
        return {budget.key for info in pods for budget in self.speaking_for(info)}

    def _take(self, key: str, stored: PodDisruptionBudget | None) -> None:
        old = self._budgets.get(key)
        new = _budget(key, stored)
        if old == new:
            return
        if new is None:
            del self._budgets[key]
        else:
            self._budgets[key] = new
        if old is None or new is None or old.selector != new.selector:
            self.generation += 1
        else:
            self.log.add(POD_DISRUPTION_BUDGET.plural, key)
        self._of.clear()


def _budget(key: str, stored: PodDisruptionBudget | None) -> Budget | None:
    """None for one that is gone, matches nothing, or has a selector that makes no sense."""
    if stored is None:
        return None
    try:
        selector = compile_selector(stored.spec.selector)
    except ValueError:
        return None
    if selector is None or selector.is_everything:
        return None
    status = stored.status
    return Budget(
        key,
        stored.metadata.namespace,
        selector,
        status.disruptions_allowed,
        frozenset(status.disrupted_pods or ()),
    )
