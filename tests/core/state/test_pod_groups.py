import random

import pytest

from asched.core.model.decode import decode
from asched.core.model.kinds import POD_GROUP
from asched.core.model.pod import Pod
from asched.core.model.workload import (
    CoschedulingGroup,
    GangPolicy,
    PodGroup,
    PodGroupPolicy,
    PodGroupSpec,
)
from asched.core.state.pod_groups import (
    SORTED_AT_ONCE,
    Gang,
    GroupPods,
    PodGroups,
    by_age,
    gang_in,
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


def test_a_new_version_of_a_pod_stays_where_the_pod_is() -> None:
    groups = PodGroups()
    pods = [a_member(name) for name in "ab"]
    for pod in pods:
        groups.see(pod)
    groups.place(pods[0])

    newer = [a_pod(name).spec(schedulingGroup={"podGroupName": "crew"}).build() for name in "ab"]
    for old, new in zip(pods, newer, strict=True):
        groups.see(new, old)

    group = groups.get("default/crew")
    assert group.placed[newer[0].uid] is newer[0]
    assert group.unplaced[newer[1].uid] is newer[1]
    assert group.count == 2


def test_moves_tell_whether_anybody_left_those_with_a_place() -> None:
    """They grow by one for each who comes, and for each who leaves, whichever way."""
    group = GroupPods()
    a, b, c = (a_member(name) for name in "abc")

    def moved(deed) -> tuple[int, int]:
        moves, placed = group.moves, len(group.placed)
        deed()
        return group.moves - moves, len(group.placed) - placed

    assert moved(lambda: group.put(a, placed=False)) == (0, 0)
    for pod in (a, b, c):
        assert moved(lambda pod=pod: group.put(pod, placed=True)) == (1, 1)
    assert moved(lambda: group.put(a, placed=True)) == (0, 0), "a new version of one that is there"
    assert list(group.placed) == [a.uid, b.uid, c.uid]
    assert moved(lambda: group.put(a, placed=False)) == (1, -1)
    assert moved(lambda: group.put(a, placed=False)) == (0, 0)
    assert moved(lambda: group.drop(a.uid)) == (0, 0), "it had left before"
    assert moved(lambda: group.drop(b.uid)) == (1, -1)
    assert list(group.placed) == [c.uid]


def test_a_pod_that_left_its_group_is_followed_there_no_more() -> None:
    groups = PodGroups()
    before, after = labelled("a", "crew"), a_pod("a").labels(app="x")
    groups.see(before)
    groups.see(labelled("b", "crew"))
    groups.see(after.build(), before)
    old, new = after.build(), after.metadata(resourceVersion="9").build()

    groups.see(new, old)

    assert list(groups.get("scheduling.x-k8s.io:default/crew").unplaced) == ["uid-b"]


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


def test_the_object_of_a_coscheduled_group_says_how_many_with_how_much_for_how_long() -> None:
    """One that says nothing of how many still starts pod by pod."""
    spec = {"minMember": 3, "minResources": {"cpu": "4"}, "scheduleTimeoutSeconds": 30}
    group = decode(CoschedulingGroup, {"metadata": {"name": "crew"}, "spec": spec})
    assert gang_in(group) == Gang(3, {"cpu": "4"}, 30)
    assert gang_in(CoschedulingGroup()) == Gang(1)


def listed(*pods: Pod) -> dict[str, Pod]:
    return {pod.key: pod for pod in pods}


def made(name: str, second: int | None, group: str = "") -> Pod:
    pod = a_pod(name)
    if second is not None:
        pod.metadata(creationTimestamp=f"2026-01-01T00:00:{second:02}Z")
    if group:
        pod.spec(schedulingGroup={"podGroupName": group})
    return pod.build()


def names(pods: dict[str, Pod]) -> list[str]:
    return [step[1].metadata.name for step in by_age(pods) if step is not None]


def test_of_a_list_those_with_a_node_come_first_then_the_oldest() -> None:
    placed = [a_pod(name).on("n1").build() for name in ("z", "y")]
    waiting = [made("c", 7), made("b", 7), made("d", 3), made("e", None)]
    pods = listed(waiting[0], placed[0], *waiting[1:], placed[1])
    assert names(pods) == ["z", "y", "e", "d", "b", "c"]
    assert all(pods[step[0]] is step[1] for step in by_age(pods) if step is not None)


def test_of_a_list_the_pods_of_a_group_count_from_its_last_one() -> None:
    crew = [made("a", 1, "crew"), made("b", 6, "crew"), made("c", 4, "crew")]
    ageless = [made("f", None, "young"), made("g", None, "young")]
    alone = [made("d", 5), made("e", 7)]
    assert names(listed(*alone, *crew, *ageless)) == ["f", "g", "d", "a", "b", "c", "e"]


@pytest.mark.parametrize("count", [SORTED_AT_ONCE, 3 * SORTED_AT_ONCE + 5])
def test_a_long_list_is_sorted_in_parts(count: int) -> None:
    """A step looks at SORTED_AT_ONCE pods at most before the first comes, and sorts as many."""
    looks = 0

    class Looked(dict[str, Pod]):
        def __getitem__(self, key: str) -> Pod:
            nonlocal looks
            looks += 1
            return super().__getitem__(key)

    order = random.Random(1)
    pods = [made(f"p{n}", order.randrange(60)) for n in range(count)]
    steps, found = by_age(Looked(listed(*pods))), []
    parts = -(-count // SORTED_AT_ONCE)
    idle = [next(steps) for _ in range(count // SORTED_AT_ONCE)]
    assert idle == [None] * (count // SORTED_AT_ONCE), "they are looked at"
    for _ in range(parts):
        looks = 0
        assert next(steps) is None
        assert looks <= SORTED_AT_ONCE
    for step in steps:
        assert step is not None
        found.append(step[1])
    wanted = sorted(pods, key=lambda pod: (pod.metadata.creation_timestamp, pod.metadata.name))
    assert found == wanted
