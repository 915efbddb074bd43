"""A cluster for making room for groups, and a group whose fitting is told by a rule of thumb."""

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from asched.core.cluster.facts import Seen
from asched.core.cluster.pods import PodInfo
from asched.core.framework.group_post_filter import EqualMembers, Probe
from asched.core.framework.status import unschedulable
from asched.core.framework.waiting import WaitingPods
from asched.core.model.decode import decode
from asched.core.model.kinds import NODE, POD, POD_DISRUPTION_BUDGET, POD_GROUP
from asched.core.model.workload import PodDisruptionBudget, PodGroup
from asched.core.preemption.budgets import Budgets
from asched.core.preemption.sparing import victims_for
from asched.host.assemble import Parts
from tests.builders import PodBuilder, a_node, a_pod

LOW, MID, HIGH = 10, 100, 1000
PRIORITIES = {"low": LOW, "mid": MID, "high": HIGH}
REFUSAL = "pod group is unschedulable"


def a_group(
    name: str,
    *,
    priority: int | None = None,
    whole: bool = False,
    min_count: int | None = None,
    topology_key: str = "",
) -> PodGroup:
    spec: dict[str, Any] = {
        "schedulingPolicy": {"basic": {}}
        if min_count is None
        else {"gang": {"minCount": min_count}},
        "disruptionMode": "PodGroup" if whole else "Pod",
    }
    if priority is not None:
        spec["priority"] = priority
    if topology_key:
        spec["schedulingConstraints"] = {"topology": [{"key": topology_key}]}
    metadata = {"namespace": "default", "name": name, "uid": f"uid-{name}"}
    return decode(PodGroup, {"metadata": metadata, "spec": spec})


def a_budget(name: str, allowed: int, disrupted: Sequence[str] = (), **labels: str) -> Any:
    return decode(
        PodDisruptionBudget,
        {
            "metadata": {"namespace": "default", "name": name},
            "spec": {"selector": {"matchLabels": labels}},
            "status": {
                "disruptionsAllowed": allowed,
                "disruptedPods": dict.fromkeys(disrupted, "2026-01-01T00:00:00Z"),
            },
        },
    )


def placed(text: str) -> PodBuilder:
    """`p1@n1 low pg1 +2 app=foo`: name and node, priority, group, start in minutes, labels."""
    where, priority, *rest = text.split()
    name, _, node = where.partition("@")
    pod = a_pod(name).on(node).priority(PRIORITIES[priority])
    for word in rest:
        key, equals, value = word.partition("=")
        if word.startswith("+"):
            pod.status(startTime=f"2026-01-01T00:{int(word[1:]):02}:00Z")
        elif equals:
            pod.labels({key: value})
        else:
            pod.spec(schedulingGroup={"podGroupName": word})
    return pod


@dataclass
class Slots:
    """Room for so many pods of the group once these pods have gone."""

    count: int
    behind: frozenset[str]


@dataclass
class ThumbTrial:
    """`GroupTrial` of `size` pods, all of which need one of the `slots`."""

    cluster: Any
    nominator: Any
    group: PodGroup
    size: int
    slots: Sequence[Slots]
    refusal: str = REFUSAL
    moves: int = 0
    waiting: WaitingPods = field(default_factory=WaitingPods)
    asked: list[frozenset[str]] = field(default_factory=list)
    hinted: list[dict[str, str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        classes = self.cluster.classes
        self.pods = [classes.info_of(a_pod(f"wants-{i}").build()) for i in range(self.size)]
        self.needed = self.size

    def alike(self) -> list[EqualMembers]:
        uids = tuple(info.pod.uid for info in self.pods)
        return [EqualMembers(uids, {}, np.ones(self.cluster.nodes.height, dtype=np.bool_))]

    def fits_without(
        self, gone: Sequence[PodInfo], hints: Mapping[str, str]
    ) -> Generator[Any, Any, Probe]:
        names = frozenset(info.pod.metadata.name for info in gone)
        self.asked.append(names)
        free = sum(slots.count for slots in self.slots if slots.behind <= names)
        if free < self.size:
            return Probe(unschedulable(REFUSAL), steps=1.0)
        self.hinted.append(dict(hints))
        return Probe(places=dict.fromkeys((i.pod.uid for i in self.pods), "n1"), steps=1.0)
        yield

    def charge(self, steps: float, *, is_alone: bool = False) -> Generator[Any, Any, None]:
        return
        yield


class GroupStage:
    def __init__(
        self,
        pods: Sequence[str] = (),
        groups: Sequence[PodGroup] = (),
        budgets: Sequence[Any] = (),
        nodes: Sequence[str] = ("n1", "n2", "n3", "n4", "n5"),
    ) -> None:
        parts = Parts.fresh()
        self.cluster, self.nominator = parts.cluster, parts.nominator
        for name in nodes:
            self.cluster.apply(Seen(NODE, a_node(name).build()))
        for group in groups:
            self.cluster.apply(Seen(POD_GROUP, group))
        for text in pods:
            self.cluster.apply(Seen(POD, placed(text).build()))
        for budget in budgets:
            self.cluster.apply(Seen(POD_DISRUPTION_BUDGET, budget))

    def trial(self, group: PodGroup, size: int, slots: Mapping[str, int] | Sequence[Slots]) -> Any:
        """`slots` as a mapping: names behind which so many pods have room."""
        if isinstance(slots, Mapping):
            slots = [Slots(n, frozenset(names.split())) for names, n in slots.items()]
        return ThumbTrial(self.cluster, self.nominator, group, size, slots)

    def victims(self, trial: Any) -> tuple[Probe, list[str]]:
        """(what came of it, names of those who go), without a pause."""
        probe, found = run(victims_for(trial, self.cluster.singleton(Budgets)))
        return probe, [info.pod.metadata.name for info in found.pods]


def run(steps: Generator[Any, Any, Any]) -> Any:
    """The result of steps that ask nothing."""
    try:
        effect = next(steps)
    except StopIteration as end:
        return end.value
    raise AssertionError(f"nobody answers {effect}")
