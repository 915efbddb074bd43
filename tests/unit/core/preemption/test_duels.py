"""Rooms that others took: after two of them nobody is evicted any more, for a while."""

from asched.core.cluster.cluster import Cluster
from asched.core.cluster.facts import Seen
from asched.core.model.kinds import NODE, POD
from asched.core.preemption.eviction import REST_S, Duels
from tests.builders import a_node, a_pod


def a_duel() -> tuple[Cluster, Duels]:
    cluster = Cluster()
    for name in ("n1", "n2"):
        cluster.apply(Seen(NODE, a_node(name).build()))
    cluster.begin_turn(1000.0, is_quiet=True)
    return cluster, cluster.singleton(Duels)


def a_stranger_comes(cluster: Cluster, name: str, node: str = "n1") -> None:
    cluster.apply(Seen(POD, a_pod(name).on(node).build()))


def test_two_lost_rooms_end_it_until_it_has_rested() -> None:
    cluster, duels = a_duel()
    for number in range(2):
        assert not duels.rests("high")
        duels.makes_room("high", ["n1"])
        a_stranger_comes(cluster, f"thief-{number}")
    assert duels.rests("high")
    assert duels.is_resting("high")
    cluster.begin_turn(1000.0 + REST_S, is_quiet=True)
    assert not duels.rests("high")


def test_strangers_elsewhere_or_before_take_nothing() -> None:
    cluster, duels = a_duel()
    a_stranger_comes(cluster, "before")
    for number in range(5):
        duels.makes_room("high", ["n1"])
        a_stranger_comes(cluster, f"elsewhere-{number}", "n2")
        assert not duels.rests("high")


def test_one_room_is_lost_once_however_often_it_is_asked() -> None:
    cluster, duels = a_duel()
    duels.makes_room("high", ["n1"])
    for number in range(3):
        a_stranger_comes(cluster, f"thief-{number}")
        assert not duels.rests("high")


def test_who_rests_is_told_so_until_the_very_moment_and_forgotten_then() -> None:
    cluster, duels = a_duel()
    assert not duels.is_resting("high")
    duels.makes_room("high", ["n1"])
    assert not duels.is_resting("high")
    a_stranger_comes(cluster, "thief-0")
    assert not duels.rests("high")
    duels.makes_room("high", ["n1"])
    a_stranger_comes(cluster, "thief-1")
    assert duels.rests("high")
    cluster.begin_turn(999.0 + REST_S, is_quiet=True)
    assert duels.is_resting("high")
    assert duels.rests("high"), "a second lost room of the same making counts once"
    cluster.begin_turn(1000.0 + REST_S, is_quiet=True)
    assert not duels.is_resting("high")
    assert not duels.rests("high")
    assert len(duels) == 0
