"""Gangs played through the machine: who waits for whom, and what happens if they wait in vain."""

from typing import Any

from asched.core.framework.effects import Bind
from asched.core.model.kinds import NODE, POD, POD_GROUP
from asched.core.model.meta import ObjectMeta
from asched.core.model.workload import GangPolicy, PodGroup, PodGroupPolicy, PodGroupSpec
from asched.core.plugins.gang_scheduling import PERMIT_TIMEOUT_S
from asched.core.state.facts import Gone, Seen
from tests.builders import NodeBuilder, PodBuilder, a_node, a_pod
from tests.core.cycle.playbook import Play

GANGS: dict[str, Any] = {
    "profiles": [
        {
            "schedulerName": "default-scheduler",
            "plugins": {"multiPoint": {"enabled": [{"name": "GangScheduling"}]}},
        }
    ]
}


def a_play(*nodes: NodeBuilder) -> Play:
    return Play(*nodes, **GANGS)


def a_group(name: str = "crew", min_count: int | None = 3) -> PodGroup:
    gang = None if min_count is None else GangPolicy(min_count=min_count)
    return PodGroup(
        metadata=ObjectMeta(namespace="default", name=name, uid=f"uid-{name}"),
        spec=PodGroupSpec(scheduling_policy=PodGroupPolicy(gang=gang)),
    )


def a_member(name: str, group: str = "crew", cpu: str = "1") -> PodBuilder:
    return a_pod(name).requests(cpu=cpu).spec(schedulingGroup={"podGroupName": group})


def uid_of(name: str) -> str:
    return a_member(name).build().uid


def room_for(count: int) -> NodeBuilder:
    return a_node(f"room-for-{count}").allocatable(cpu=str(count), memory="8Gi", pods="100")


def bound(play: Play) -> set[str]:
    return {bind.pod.name for bind in play.of(Bind)}


def seen_group(play: Play, min_count: int | None = 3) -> None:
    play.turn(Seen(POD_GROUP, a_group(min_count=min_count)))


def places(play: Play) -> set[str]:
    return {name for name in ("a", "b", "c") if play.node_of(uid_of(name))}


def test_pods_wait_outside_until_the_gang_is_there_and_then_all_bind_in_one_turn() -> None:
    play = a_play(room_for(3))
    seen_group(play)
    for name in ("a", "b"):
        play.see(a_member(name))
        assert not play.effects
        assert not places(play)

    play.see(a_member("c"))

    assert places(play) == {"a", "b", "c"}
    assert bound(play) == {"a", "b", "c"}


def test_a_gang_waits_with_its_places_until_the_last_pod_has_one() -> None:
    play = a_play(room_for(2))
    seen_group(play)
    for name in ("a", "b", "c"):
        play.see(a_member(name))
    assert len(places(play)) == 2
    assert not bound(play)

    play.turn(Seen(NODE, a_node("more").allocatable(cpu="1", pods="10").build()))

    assert bound(play) == {"a", "b", "c"}


def test_who_waits_in_vain_gives_its_place_back_after_five_minutes() -> None:
    play = a_play(room_for(2))
    seen_group(play)
    for name in ("a", "b", "c"):
        play.see(a_member(name))
    waiting = places(play)
    assert len(waiting) == 2
    play.turn(after_s=PERMIT_TIMEOUT_S - 1)
    assert places(play) == waiting

    play.turn(after_s=1)

    said = "rejected due to timeout after waiting 5m0s at plugin GangScheduling"
    turned_away = [note for note in play.notes() if said in note]
    assert len(turned_away) == 2
    assert all(note.startswith("FailedScheduling: 0/1 nodes are available") for note in turned_away)
    assert not bound(play)


def test_places_given_back_are_free_for_others() -> None:
    play = a_play(room_for(2))
    seen_group(play)
    for name in ("a", "b", "c"):
        play.see(a_member(name))
    play.lose(a_member("c"))
    play.see(a_pod("stranger").requests(cpu="2"))
    assert not bound(play)

    play.turn(after_s=PERMIT_TIMEOUT_S)

    assert bound(play) == {"stranger"}


def test_a_pod_whose_group_is_unknown_waits_outside_for_it() -> None:
    play = a_play(room_for(3))
    for name in ("a", "b", "c"):
        play.see(a_member(name))
    assert not places(play)
    play.turn(Seen(POD_GROUP, a_group("other")))
    assert not places(play)

    seen_group(play)

    assert bound(play) == {"a", "b", "c"}


def test_a_group_without_a_gang_policy_holds_nobody_up() -> None:
    play = a_play(room_for(3))
    seen_group(play, min_count=None)

    play.see(a_member("a"))

    assert bound(play) == {"a"}


def test_pods_beyond_min_count_follow_at_once() -> None:
    play = a_play(room_for(4))
    seen_group(play, min_count=2)
    for name in ("a", "b"):
        play.see(a_member(name))
    assert bound(play) == {"a", "b"}

    play.see(a_member("c"))

    assert bound(play) == {"c"}


def test_a_pod_that_has_run_for_long_counts() -> None:
    play = a_play(room_for(3))
    seen_group(play, min_count=2)
    play.see(a_member("a").on("room-for-3"))

    play.see(a_member("b"))

    assert bound(play) == {"b"}


def test_a_group_that_went_lets_no_pod_in_and_none_go() -> None:
    play = a_play(room_for(2))
    seen_group(play)
    for name in ("a", "b", "c"):
        play.see(a_member(name))
    waiting = places(play)

    play.turn(Gone(POD_GROUP, a_group()))
    play.turn(Seen(NODE, a_node("more").allocatable(cpu="1", pods="10").build()))

    assert not bound(play)
    assert places(play) == waiting


def test_a_group_that_goes_between_the_gate_and_permit_makes_an_error_and_frees_the_place() -> None:
    play = a_play(room_for(3))
    seen_group(play)
    for name in ("a", "b"):
        play.see(a_member(name))

    play.turn(Seen(POD, a_member("c").build()), Gone(POD_GROUP, a_group()))

    failed = 'running Permit plugin "GangScheduling": failed to get podGroup default/crew: '
    missing = 'podgroup.scheduling.k8s.io "crew" not found'
    assert [n for n in play.notes() if n == f"FailedScheduling: {failed}{missing}"]
    assert not places(play)


def test_a_mate_that_failed_is_tried_again_once_a_pod_it_may_need_has_its_place() -> None:
    """A pod can only go where another one is; no watch tells it of a place assumed."""
    near = {
        "podAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [
                {
                    "labelSelector": {"matchLabels": {"role": "chief"}},
                    "topologyKey": "kubernetes.io/hostname",
                }
            ]
        }
    }
    play = a_play(
        a_node("n1").labels({"kubernetes.io/hostname": "n1"}).allocatable(cpu="4", pods="10")
    )
    seen_group(play, min_count=2)
    play.see(a_member("a").priority(10).spec(affinity=near))
    assert not play.effects
    play.see(a_member("b").labels(role="chief"))

    assert {"a", "b"} == places(play)
    assert play.node_of(uid_of("a")) == "n1"


def test_more_pods_may_wait_for_each_other_than_bindings_may_be_under_way() -> None:
    play = a_play(room_for(9))
    play.machine._bindings_max = 2
    seen_group(play, min_count=6)

    for number in range(6):
        play.see(a_member(f"p{number}"))

    assert len(bound(play)) == 6
    assert play.machine.desk.waiting.held == 0
