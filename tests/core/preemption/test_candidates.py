"""Prospects of rows: what evicting there would come to, kept until something there changes."""

from typing import Any

import numpy as np
import pytest

from asched.core.preemption.budgets import Budgets
from asched.core.preemption.candidates import (
    NO_NEED,
    NOBODY_BELOW,
    OPEN,
    REJECTED,
    UNKNOWN,
    PlainProspects,
    Prospects,
    TrialProspects,
)
from asched.core.preemption.pods_by_priority import PodsByPriority
from tests.builders import a_node
from tests.core.preemption.stage import Stage, a_high, a_low

KINDS = [PlainProspects, TrialProspects]


class Scene(Stage):
    """Rows n0 ... of two CPUs, and a pod that wants two."""

    def __init__(self, kind: Any, *lows: Any, rows: int = 3, cpu: str = "2") -> None:
        super().__init__()
        self.nodes(*(a_node(f"n{at}").allocatable(cpu="2", pods="10") for at in range(rows)))
        for low in lows:
            self.pod(low)
        self.high = self.pod(a_high("high", cpu=cpu))
        self.attempt(self.high)
        self.budgets = self.cluster.singleton(Budgets)
        self.lines = self.cluster.singleton(PodsByPriority)
        parts = (self.cluster, self.lines, self.budgets)
        self.prospects: Prospects = (
            PlainProspects(*parts, self.verdicts) if kind is PlainProspects else kind(*parts)
        )
        self.refresh()

    @property
    def verdicts(self) -> list[Any]:
        state = self.trial(self.high).state
        state.update(self.info(self.high))
        return [v for v in state.active if v.plugin.reads_only_amounts]

    def refresh(self, priority: int = 1000) -> None:
        self.budgets.catch_up()
        self.lines.catch_up()
        trial = self.trial(self.high)
        layer = trial.nominated_pods.nominated_amounts.layer(priority)
        self.prospects.refresh(self.verdicts, layer)

    def evaluated(self, *rows: int) -> list[int]:
        """Outcomes of these rows, or of all."""
        wanted = np.array(rows or range(self.cluster.nodes.height), dtype=np.int32)
        self.prospects.evaluate(self.info(self.high), wanted, self.trial(self.high))
        return self.known(*wanted.tolist())

    def known(self, *rows: int) -> list[int]:
        outcome = self.prospects.outcome
        return [int(outcome[row]) for row in rows or range(self.cluster.nodes.height)]

    def victims(self, row: int) -> list[str]:
        found = self.prospects.candidate(self.info(self.high), row, self.trial(self.high))
        assert (found.node, found.row) == (f"n{row}", row)
        return [info.pod.metadata.name for info in found.victims]

    def rejections(self, *rows: int) -> dict[str, int]:
        pod, trial = self.info(self.high), self.trial(self.high)
        found = self.prospects.rejections(pod, np.array(rows, dtype=np.int32), trial)
        return {status.message: count for status, count in found}


NO_VICTIMS = "No preemption victims found for incoming pod"


@pytest.mark.parametrize("kind", KINDS)
def test_what_evicting_comes_to_on_each_row(kind: Any) -> None:
    scene = Scene(
        kind,
        a_low("low", "n0", cpu="2"),
        a_low("equal", "n1", priority=1000, cpu="2"),
        a_low("small", "n2", cpu="500m"),
        a_low("important", "n2", priority=2000, cpu="1"),
    )
    nobody = NOBODY_BELOW if kind is PlainProspects else REJECTED
    assert scene.evaluated() == [OPEN, nobody, REJECTED]
    assert scene.victims(0) == ["low"]
    assert scene.rejections(1, 2) == {NO_VICTIMS: 1, "Insufficient cpu": 1}


@pytest.mark.parametrize("kind", KINDS)
def test_no_more_go_than_have_to_and_the_least_important_do(kind: Any) -> None:
    scene = Scene(
        kind,
        a_low("most", "n0", priority=9, cpu="500m"),
        a_low("middle", "n0", priority=5, cpu="500m"),
        a_low("least", "n0", priority=1, cpu="1"),
        cpu="1500m",
    )
    assert scene.evaluated(0) == [OPEN]
    assert scene.victims(0) == ["middle", "least"]
    violations, top, total, count, _ = scene.prospects.costs[:, 0].tolist()
    assert (violations, count) == (0, 2)
    assert top == 5
    assert total > 0


@pytest.mark.parametrize("kind", KINDS)
def test_who_fits_without_that_has_no_need(kind: Any) -> None:
    scene = Scene(kind, a_low("low", "n0", cpu="1"), cpu="1")
    assert scene.evaluated(0) == [NO_NEED]


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_known_stays_until_something_there_changes(kind: Any) -> None:
    lows = [a_low(f"low{at}", f"n{at}", cpu="2") for at in range(3)]
    scene = Scene(kind, *lows)
    assert scene.evaluated() == [OPEN] * 3
    scene.refresh()
    assert scene.known() == [OPEN] * 3
    scene.gone(lows[1].build())
    scene.refresh()
    assert scene.known() == [OPEN, UNKNOWN, OPEN]
    scene.wait_for(a_high("other", priority=1000), "n2")
    scene.refresh()
    assert scene.known() == [OPEN, UNKNOWN, UNKNOWN]
    scene.nodes(a_node("n0").allocatable(cpu="3", pods="10"))
    scene.refresh()
    assert scene.known() == [UNKNOWN] * 3


@pytest.mark.parametrize("kind", KINDS)
def test_a_budget_that_moves_concerns_the_rows_of_its_pods(kind: Any) -> None:
    lows = [a_low("a", "n0", cpu="2").labels(app="a"), a_low("b", "n1", cpu="2").labels(app="b")]
    scene = Scene(kind)
    scene.budget("budget", "default", "a", 1)
    for low in lows:
        scene.pod(low)
    scene.refresh()
    assert scene.evaluated(0, 1) == [OPEN, OPEN]
    assert int(scene.prospects.costs[0, 0]) == 0
    scene.budget("budget", "default", "a", 0)
    scene.refresh()
    assert scene.known(0, 1) == [UNKNOWN, OPEN]
    scene.evaluated(0)
    assert int(scene.prospects.costs[0, 0]) == 1


@pytest.mark.parametrize("kind", KINDS)
def test_another_priority_has_other_promises(kind: Any) -> None:
    scene = Scene(kind, a_low("low", "n0", cpu="2"))
    scene.evaluated()
    scene.refresh(priority=5)
    assert scene.known() == [UNKNOWN] * 3


@pytest.mark.parametrize("kind", KINDS)
def test_more_rows_are_followed(kind: Any) -> None:
    scene = Scene(kind, a_low("low", "n0", cpu="2"))
    scene.evaluated(0)
    scene.nodes(*(a_node(f"n{at}").allocatable(cpu="2", pods="10") for at in range(3, 70)))
    scene.pod(a_low("new", "n69", cpu="2"))
    scene.refresh()
    assert len(scene.prospects.outcome) >= 70
    assert scene.evaluated(0, 69) == [OPEN, OPEN]


@pytest.mark.parametrize("kind", KINDS)
def test_a_row_that_is_this_pod_s_own_is_nobody_else_s(kind: Any) -> None:
    scene = Scene(kind, *(a_low(f"low{at}", f"n{at}", cpu="2") for at in range(3)))
    scene.evaluated()
    scene.prospects.keep_apart(1)
    assert scene.known() == [OPEN, UNKNOWN, OPEN]
    scene.evaluated(1)
    scene.prospects.keep_apart(None)
    assert scene.known() == [OPEN, UNKNOWN, OPEN]
    scene.evaluated(1)
    scene.prospects.keep_apart(None)
    assert scene.known() == [OPEN] * 3


@pytest.mark.parametrize("kind", KINDS)
def test_room_that_is_promised_to_equals_is_not_to_be_had(kind: Any) -> None:
    scene = Scene(kind, a_low("low", "n0", cpu="1"), cpu="1500m")
    scene.wait_for(a_high("promised", cpu="1", priority=1000), "n0")
    scene.refresh()
    assert scene.evaluated(0) == [REJECTED]
    own = Scene(kind, a_low("low", "n0", cpu="1"), cpu="1500m")
    own.nominator.add(own.high, "n0")
    own.refresh()
    assert own.evaluated(0) == [OPEN], "its own promise is in nobody's way"
