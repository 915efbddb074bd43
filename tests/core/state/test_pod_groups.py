from asched.core.model.pod import Pod
from asched.core.state.pod_groups import PodGroups, group_key
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


def test_a_pod_that_is_gone_gets_no_place_any_more() -> None:
    groups = PodGroups()
    pod = a_member("a")
    groups.see(pod)
    groups.see(a_member("b"))
    groups.lose(pod)

    groups.place(pod)
    groups.displace(pod)

    assert groups.get("default/crew").count == 1


def test_a_pod_is_turned_away_until_it_has_a_place_or_goes() -> None:
    groups = PodGroups()
    pod, other = a_member("a"), a_member("b")
    for one in (pod, other):
        groups.see(one)
        groups.turn_away(one)
    group = groups.get("default/crew")
    assert set(group.turned_away) == {pod.uid, other.uid}

    groups.place(pod)
    groups.lose(other)
    assert not group.turned_away

    groups.turn_away(pod)
    groups.turn_away(other)
    assert not group.turned_away


def test_pods_without_a_group_leave_no_trace() -> None:
    groups = PodGroups()
    pod = a_pod("a").build()
    for step in (
        groups.see,
        groups.turn_away,
        groups.place,
        groups.displace,
        groups.lose,
    ):
        step(pod)

    assert len(groups) == 0
