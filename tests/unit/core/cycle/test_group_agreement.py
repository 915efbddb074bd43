"""Groups by the rules of 1.37, for an API server that has them in that version."""

from typing import Any

import pytest

from asched.core.cluster.facts import Gone, Listed, Seen
from asched.core.framework.effects import Bind, Patch
from asched.core.model.decode import decode
from asched.core.model.kinds import POD_GROUP, POD_GROUP_V1BETA1, Kind
from asched.core.model.workload import PodGroup
from tests.playbook import Play, a_member, bound, gang_play, room_for

SAME = "all pods in a single pod group should have the same"


def a_group(minimum: int = 2, *, name: str = "crew", **spec: Any) -> PodGroup:
    policy = {"schedulingPolicy": {"gang": {"minCount": minimum}}, **spec}
    metadata = {"name": name, "namespace": "default", "uid": f"uid-{name}", "generation": 1}
    return decode(PodGroup, {"metadata": metadata, "spec": policy})


def a_new_play(*groups: PodGroup, kind: Kind = POD_GROUP_V1BETA1, **gates: bool) -> Play:
    play = gang_play(room_for(4), **gates)
    play.turn(Listed(kind, groups))
    return play


def told(play: Play) -> dict[str, Any]:
    """What the group's condition says, and where it was written."""
    (patch,) = play.of(Patch)
    (condition,) = patch.body["status"]["conditions"]
    return {**condition, "version": patch.kind.group_version}


def test_the_condition_has_its_new_name_where_the_group_has_its_new_version() -> None:
    play = a_new_play(a_group())
    for name in "ab":
        play.see(a_member(name))
    assert bound(play) == {"a", "b"}
    said = told(play)
    assert (said["type"], said["version"]) == (
        "PodGroupInitiallyScheduled",
        "scheduling.k8s.io/v1beta1",
    )
    old = a_new_play(a_group(), kind=POD_GROUP)
    for name in "ab":
        old.see(a_member(name))
    assert told(old)["type"] == "PodGroupScheduled"


@pytest.mark.parametrize(
    ("group", "first", "second", "wrong"),
    [
        ({"priority": 5}, {}, {}, "priority as the pod group's priority, got 0 and 5"),
        ({}, {"priority": 3}, {"priority": 3}, "priority as the pod group's priority, got 3 and 0"),
        ({}, {}, {"preemptionPolicy": "Never"}, "preemption policy, got"),
    ],
)
def test_a_group_whose_pods_disagree_is_an_error_for_all_of_them(
    group: dict[str, Any], first: dict[str, Any], second: dict[str, Any], wrong: str
) -> None:
    play = a_new_play(a_group(**group))
    play.see(a_member("a").spec(**first))
    play.see(a_member("b").spec(**second))

    assert not play.of(Bind)
    assert len(play.notes()) == 2
    assert all(f"{SAME} {wrong}" in note for note in play.notes())
    said = told(play)
    assert (said["status"], said["reason"]) == ("False", "SchedulerError")
    assert f"{SAME} {wrong}" in said["message"]


@pytest.mark.parametrize(("group", "pods"), [("Never", None), (None, "Never")])
def test_the_policy_of_the_group_counts_with_its_gate(group: str | None, pods: str | None) -> None:
    agreed = {"preemptionPolicy": pods} if pods else {}
    own = {"preemptionPolicy": group} if group else {}
    for is_on in (False, True):
        play = a_new_play(a_group(**own), PodGroupPreemptionPolicy=is_on)
        for name in "ab":
            play.see(a_member(name).spec(**agreed))
        assert bound(play) == (set() if is_on else {"a", "b"})
    default = "PreemptLowerPriority"
    got = f"{pods or default} and {group or default}"
    wrong = f"preemption policy as the pod group's preemption policy, got {got}"
    assert f"{SAME} {wrong}" in told(play)["message"]


def test_a_group_that_agrees_is_placed_and_1_36_asks_for_less() -> None:
    agreeing = {"priority": 3, "preemptionPolicy": "Never"}
    play = a_new_play(a_group(**agreeing))
    for name in "ab":
        play.see(a_member(name).spec(**agreeing))
    assert bound(play) == {"a", "b"}

    old = a_new_play(a_group(priority=5), kind=POD_GROUP)
    for name in "ab":
        old.see(a_member(name))
    assert bound(old) == {"a", "b"}


def test_while_the_api_changes_its_version_no_member_becomes_a_single_pod() -> None:
    """An upgrade to 1.37: the objects of v1alpha2 had to go, and are made anew as v1beta1."""
    play = a_new_play(a_group(3), kind=POD_GROUP)
    for name in "ab":
        play.see(a_member(name))
    play.turn(Gone(POD_GROUP, a_group(3)))
    play.turn(Listed(POD_GROUP_V1BETA1, ()), after_s=400)
    for _ in range(5):
        play.turn(after_s=400)
        assert not play.of(Bind)
    play.see(a_member("c"))
    assert not play.of(Bind)

    play.turn(Seen(POD_GROUP_V1BETA1, a_group(3)))

    assert bound(play) == {"a", "b", "c"}
    assert told(play)["type"] == "PodGroupInitiallyScheduled"
