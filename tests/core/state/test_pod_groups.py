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
        groups.place,
        groups.displace,
        groups.lose,
    ):
        step(pod)

    assert len(groups) == 0
