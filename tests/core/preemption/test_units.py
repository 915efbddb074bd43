"""What is evicted together, who is less important, and in which order."""

from typing import Any

from asched.core.model.kinds import POD
from asched.core.preemption.units import Below, units_of
from asched.core.state.facts import Seen
from tests.core.preemption.group_stage import GroupStage, a_group, placed, run

CREW = a_group("crew", priority=100)


def stage(*pods: str, groups: Any = ()) -> GroupStage:
    return GroupStage(pods, groups)


def below(scene: GroupStage, group: Any = CREW) -> tuple[Below, Any]:
    trial = scene.trial(group, 1, {})
    return Below(trial), trial


def lines(scene: GroupStage) -> tuple[list[str], list[str]]:
    """(who stays, who leaves anyway), by the names of their pods."""
    found = run(units_of(*below(scene)))
    stays, leaves = [
        ["+".join(info.pod.metadata.name for info in unit.pods) for unit in units]
        for units in found
    ]
    return stays, leaves


def test_only_the_less_important_are_below() -> None:
    scene = stage("a@n1 low", "b@n1 mid", "c@n2 high")
    assert lines(scene) == (["a"], [])
    assert below(scene)[0].has_any()
    assert not below(stage("b@n1 mid"))[0].has_any()


def test_a_group_that_goes_whole_is_one_unit_of_its_own_priority() -> None:
    whole = a_group("pg", priority=50, whole=True)
    scene = stage("a@n2 high pg", "b@n1 low pg", "c@n1 low", groups=[whole])
    assert lines(scene) == (["b+a", "c"], [])
    important = a_group("pg", priority=100, whole=True)
    assert lines(stage("a@n1 low pg", groups=[important])) == ([], [])
    assert not below(stage("a@n1 low pg", groups=[important]))[0].has_any()
    assert below(stage("a@n1 high pg", groups=[whole]))[0].has_any()
    assert not below(stage(groups=[whole]))[0].has_any()


def test_pods_of_other_groups_go_one_by_one_and_the_preemptor_s_own_do_not() -> None:
    scene = stage("a@n1 low pg", "b@n1 low crew", groups=[a_group("pg"), CREW])
    assert lines(scene) == (["a"], [])
    assert not below(stage("b@n1 low crew", groups=[CREW]))[0].has_any()


def test_pods_on_unknown_nodes_are_in_nobody_s_way() -> None:
    whole = a_group("pg", priority=50, whole=True)
    assert lines(stage("a@gone low", "b@gone low pg", groups=[whole])) == ([], [])


def test_the_more_important_is_named_first() -> None:
    """Priority, then groups, then their size, then who started earlier, then the uid."""
    groups = [a_group(name, priority=20, whole=True) for name in ("two", "one")]
    scene = stage(
        "z@n1 low +1",
        "y@n1 low +5",
        "b@n1 low +5",
        "m@n2 low two",
        "n@n2 low two",
        "o@n2 low one +0",
        "p@n3 low other +9",
        groups=[*groups, a_group("other")],
    )
    assert lines(scene)[0] == ["m+n", "o", "p", "z", "b", "y"]


def test_who_leaves_anyway_is_told_apart() -> None:
    scene = GroupStage(["a@n1 low"])
    going = placed("b@n1 low").metadata(deletionTimestamp="2026-01-01T00:00:00Z")
    scene.cluster.apply(Seen(POD, going.build()))
    assert lines(scene) == (["a"], ["b"])
