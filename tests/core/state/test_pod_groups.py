from asched.core.model.kinds import POD_GROUP
from asched.core.model.pod import Pod
from asched.core.model.workload import (
    GangPolicy,
    PodGroup,
    PodGroupPolicy,
    PodGroupSpec,
)
from asched.core.state.pod_groups import (
    Gang,
    PodGroups,
    group_key,
    is_coscheduled,
)
from tests.builders import a_pod


def a_member(name: str, group: str = "crew") -> Pod:
    return a_pod(name).spec(schedulingGroup={"podGroupName": group}).build()


def test_a_group_is_known_by_its_namespace_and_name() -> None:
    assert group_key(a_member("a")) == "default/crew"
    assert group_key(a_pod("a").build()) == ""
    assert group_key(a_pod("a").spec(schedulingGroup={}).build()) == ""


def test_pods_move_between_placed_and_unplaced_until_they_go() -> None:
    groups = PodGroups()
    pod = a_member("a")
    groups.see(pod)
    groups.see(a_member("b"))
    groups.place(pod)
    group = groups.get("default/crew")
    assert (set(group.placed), group.count) == ({pod.uid}, 2)

    groups.see(pod)
    assert set(group.placed) == {pod.uid}

    groups.displace(pod)
    assert not group.placed
    assert group.count == 2

    groups.lose(pod)
    groups.lose(a_member("b"))
    assert len(groups) == 0
    assert groups.get("default/crew").count == 0, "nobody knows it any more"


def test_a_pod_that_is_gone_gets_no_place_any_more() -> None:
    groups = PodGroups()
    pod = a_member("a")
    groups.see(pod)
    groups.see(a_member("b"))
    groups.lose(pod)

    groups.place(pod)
    groups.displace(pod)

    assert groups.get("default/crew").count == 1


def test_a_pod_is_held_until_it_is_let_go_or_loses_its_place() -> None:
    groups = PodGroups()
    pods = [a_member(name) for name in "abc"]
    for pod in pods:
        groups.see(pod)
        groups.hold(pod)
    assert groups.let_go("default/crew") == ()  # nobody has a place

    for pod in pods:
        groups.place(pod)
        groups.hold(pod)
    groups.displace(pods[0])
    groups.lose(pods[1])

    assert groups.let_go("default/crew") == (pods[2].uid,)
    assert groups.let_go("default/crew") == ()
    assert groups.let_go("default/nobody") == ()


def test_pods_without_a_group_leave_no_trace() -> None:
    groups = PodGroups()
    pod = a_pod("a").build()
    for step in (
        groups.see,
        groups.hold,
        groups.holds,
        groups.place,
        groups.displace,
        groups.lose,
    ):
        step(pod)

    assert len(groups) == 0


def labelled(name: str, group: str, *, gated: bool = False, leaving: bool = False) -> Pod:
    pod = a_pod(name).labels({"scheduling.x-k8s.io/pod-group": group})
    if gated:
        pod.gated("wait")
    if leaving:
        pod.metadata(deletionTimestamp="2026-01-01T00:00:00Z")
    return pod.build()


def test_groups_told_by_the_label_are_others_than_those_told_in_the_spec() -> None:
    key = group_key(labelled("a", "crew"))
    assert key == "scheduling.x-k8s.io:default/crew"
    assert is_coscheduled(key)
    assert not is_coscheduled(group_key(a_member("a")))
    both = a_pod("a").labels({"scheduling.x-k8s.io/pod-group": "x"})
    assert group_key(both.spec(schedulingGroup={"podGroupName": "crew"}).build()) == "default/crew"


def test_gated_and_terminating_pods_are_told_apart() -> None:
    groups = PodGroups()
    placed, leaving = labelled("a", "crew"), labelled("b", "crew")
    for pod in (placed, leaving, labelled("c", "crew"), labelled("d", "crew", gated=True)):
        groups.see(pod)
    groups.place(placed)
    groups.place(leaving)
    groups.see(labelled("b", "crew", leaving=True), leaving)

    group = groups.get("scheduling.x-k8s.io:default/crew")
    assert (group.count, group.staying, group.ready) == (4, 1, 2)
    groups.see(labelled("d", "crew"))
    assert group.ready == 3
    groups.displace(placed)
    assert (group.staying, group.ready) == (0, 3)
    groups.displace(leaving)
    assert (group.count, group.staying, group.ready) == (4, 0, 3), "it will not be given one"
    groups.place(leaving)
    assert (group.count, group.staying, group.ready) == (4, 0, 3), "nor keep it"
    groups.displace(leaving)
    groups.lose(leaving)
    assert (group.count, group.staying, group.ready) == (3, 0, 3)


def test_a_pod_takes_its_place_along_to_another_group() -> None:
    groups = PodGroups()
    before, after = labelled("a", "crew"), labelled("a", "other")
    groups.see(before)
    groups.place(before)

    groups.see(after, before)

    assert list(groups) == ["scheduling.x-k8s.io:default/other"]
    assert groups.get("scheduling.x-k8s.io:default/other").staying == 1


def test_a_pod_gets_its_place_in_the_group_in_which_it_was_seen_last() -> None:
    """Its label changed while an attempt was under way, which places what it began with."""
    groups = PodGroups()
    before, after = labelled("a", "crew"), labelled("a", "other")
    groups.see(before)
    groups.see(after, before)

    groups.place(before)

    other = groups.get("scheduling.x-k8s.io:default/other")
    assert list(other.placed.values()) == [after]
    groups.hold(before)
    assert groups.holds(before)
    groups.displace(before)
    assert (list(other.unplaced.values()), groups.holds(after)) == ([after], False)


def test_what_an_object_says_of_its_group_is_known_as_long_as_it_exists() -> None:
    groups = PodGroups()
    groups.object_moved(POD_GROUP, "default/loose", PodGroup())
    policy = PodGroupPolicy(gang=GangPolicy(min_count=3))
    groups.object_moved(
        POD_GROUP, "default/tight", PodGroup(spec=PodGroupSpec(scheduling_policy=policy))
    )
    assert groups.gangs == {"default/loose": None, "default/tight": Gang(3)}
    groups.object_moved(POD_GROUP, "default/loose", None)
    assert list(groups.gangs) == ["default/tight"]
