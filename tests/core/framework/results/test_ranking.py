"""A ranking over some of the rows is what it would be were these all there are."""

from typing import Any

import numpy as np
import pytest

from asched.core.config.defaults import default_configuration
from asched.core.framework.results.peaks import NOT_FEASIBLE
from asched.core.framework.results.ranking import Ranking
from asched.core.framework.results.weighted import paired
from asched.core.model.decode import decode
from asched.core.model.pod import Pod
from asched.lab.bench.run_decide import DecideWorld
from tests.bench.crowds import node, pod

NODES = 60
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
IN_ZONE_0 = {"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["zone-0"]}
NEAR = {"weight": 5, "preference": {"matchExpressions": [IN_ZONE_0]}}


def tainted(index: int) -> dict[str, Any]:
    made = node(index)
    if index % 7 == 0:
        made["spec"]["taints"] = [{"key": "old", "effect": "PreferNoSchedule"}]
    return made


@pytest.mark.parametrize(
    ("is_tainted", "spec", "is_by_row"),
    [
        (False, {}, True),
        (True, {}, False),  # points for taints are shares of the most that any of the rows has
        (False, {"affinity": {"nodeAffinity": {PREFERRED: [NEAR]}}}, False),
    ],
    ids=["plain", "taints", "wishes"],
)
async def test_a_ranking_over_some_rows_does_not_know_the_others(
    monkeypatch: pytest.MonkeyPatch, is_tainted: bool, spec: dict[str, Any], is_by_row: bool
) -> None:
    world = DecideWorld(default_configuration())
    maker = tainted if is_tainted else node
    await world.create([maker(index) for index in range(NODES)])
    await world.create([pod(f"p-{at}", **spec) for at in range(40)], "default")
    await world.until(lambda: world.pods.scheduled_count == 40, 60.0, "pods")
    (runner,) = world.runners.values()
    one = {**pod("one", **spec), "metadata": {"name": "one", "namespace": "default", "uid": "one"}}
    info = runner.cluster.classes.info_of(decode(Pod, one))
    state = runner.cache.state_of(info)
    state.update(info)
    rng = np.random.default_rng(0)
    for _ in range(20):
        some = state.feasible & (rng.random(NODES) < 0.5)
        quick = state.rank(info, some)
        assert state.ranking._is_by_row() is is_by_row
        assert not state.ranking.is_whole
        with monkeypatch.context() as patched:
            patched.setattr(Ranking, "_is_by_row", lambda _: False)
            assert state.rank(info, some).tolist() == quick.tolist()
    assert state.rank(info).tolist() == state.ranking.totals.tolist()
    assert state.ranking.is_whole
    await world.close()


@pytest.mark.parametrize("is_tainted", [False, True], ids=["stable", "made anew"])
async def test_the_points_of_a_row_are_the_same_however_often_they_are_read(
    is_tainted: bool,
) -> None:
    """At first those of one row are read at once, then by what is alike for all rows: both come to
    what the ranking has summed up, for every row.
    """
    world = DecideWorld(default_configuration())
    maker = tainted if is_tainted else node
    await world.create([maker(index) for index in range(NODES)])
    await world.create([pod(f"p-{at}") for at in range(40)], "default")
    await world.until(lambda: world.pods.scheduled_count == 40, 60.0, "pods")
    (runner,) = world.runners.values()
    one = {**pod("one"), "metadata": {"name": "one", "namespace": "default", "uid": "one"}}
    info = runner.cluster.classes.info_of(decode(Pod, one))
    state = runner.cache.state_of(info)
    state.update(info)
    totals, ranking = state.rank(info), state.ranking
    for row in np.flatnonzero(totals != NOT_FEASIBLE).tolist():
        ranking.reading, ranking._was_read = None, False
        first, second = ranking.numbers_of(row), ranking.numbers_of(row)
        points = paired(*first)
        assert points == paired(*second)
        assert sum(points[1::2]) == totals[row]
        assert len(second[1]) < len(first[1])
    await world.close()
