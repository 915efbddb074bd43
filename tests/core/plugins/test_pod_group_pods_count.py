"""More pods of a group are better, in shares of the largest number."""

import pytest

from asched.core.framework.placements import EVERYWHERE, Assignments, RepeatedPlacements
from asched.core.framework.status import Status
from asched.core.model.kinds import NODE, POD
from asched.core.plugins.pod_group_pods_count import PodGroupPodsCount
from asched.core.state.cluster import Cluster
from asched.core.state.facts import Seen
from tests.builders import PodBuilder, a_node, a_pod


def a_member(name: str) -> PodBuilder:
    return a_pod(name).spec(schedulingGroup={"podGroupName": "crew"})


def test_pods_with_a_place_and_pods_that_would_have_one_count_alike() -> None:
    cluster = Cluster()
    cluster.apply(Seen(NODE, a_node("n1").build()))
    cluster.apply(Seen(POD, a_member("placed").on("n1").build()))
    waiting = [a_member(name).build() for name in "ab"]
    for pod in (*waiting, a_member("unplaced").build()):
        cluster.apply(Seen(POD, pod))
    pods = tuple((cluster.classes.info_of(pod), "n1") for pod in waiting)

    count = PodGroupPodsCount(cluster).score_placement(
        "default/crew", Assignments(EVERYWHERE, pods)
    )

    assert count == 3
    plugin = PodGroupPodsCount(cluster)
    one, both = Assignments(EVERYWHERE, pods[:1]), Assignments(EVERYWHERE, pods)
    assert plugin.score_placements("default/crew", [one, both]) == [2, 3]
    assert plugin.score_placements("default/crew", RepeatedPlacements([EVERYWHERE] * 3, pods)) == [
        3,
        3,
        3,
    ]
    assert plugin.score_placements("default/other", [one, both]) == [1, 2]


@pytest.mark.parametrize(
    ("counts", "scores"),
    [([4, 2, 1], [100, 50, 25]), ([3, 2, 0], [100, 66, 0]), ([7], [100])],
)
def test_scores_are_shares_of_the_largest_count_rounded_down(
    counts: list[int], scores: list[int]
) -> None:
    assert PodGroupPodsCount(Cluster()).normalize_placements(counts) == scores


def test_nobody_anywhere_is_an_error() -> None:
    status = PodGroupPodsCount(Cluster()).normalize_placements([0, 0])

    assert isinstance(status, Status)
    assert status.message == (
        "no pods from pod group are assigned to any of the candidate placements"
    )
