"""Which word of an agent is believed, and what is taken off it."""

from typing import Any

import pytest

from asched.hardware.numa.cache import ALL, AUTODETECT, NONE, ONLY_EXCLUSIVE, ONLY_RESOURCES, Mode
from asched.hardware.numa.topology import EXCLUSIVE_METHOD
from tests.hardware.numa.watching import RESYNC_S, STALE, Watched, named
from tests.hardware.numa.worlds import GPU, a_topology, a_zone

# --- modes ---------------------------------------------------------------------------------------


def test_a_node_without_a_word_is_anybodys() -> None:
    watched = Watched().node().node("n2").word(8, 8, node="n2").word(8, node="nowhere")
    watched.node("n3")
    for _ in range(2):
        assert (watched.state("n1"), watched.state("n2")) == (None, [8, 8])
        watched.word(7, node="nowhere")
    watched.no_word("nowhere")
    assert watched.state("n1") is None


def test_passed_through_the_last_word_holds_whoever_is_there() -> None:
    watched = Watched(Mode.PASS_THROUGH).node().word(8, 8, fingerprint=named("x"))
    assert watched.state() == [8, 8]
    watched.places("p", 3)
    assert watched.state() == [8, 8]
    watched.sees("other", "Pending")
    assert watched.state() == [8, 8]
    watched.word(5, 6, fingerprint=named("y"))
    assert watched.state() == [5, 6]
    watched.fails("p")
    assert watched.state() == [5, 6]
    watched.places("q", 3)
    watched.cache.bound("pod-q", "n1")
    assert not watched.cache._nodes["n1"].reserved  # of what nobody takes off nothing is kept


def test_discarded_are_nodes_with_pods_on_their_way() -> None:
    watched = Watched(Mode.DISCARD).node().word(8, 8, fingerprint=named("x"))
    watched.sees("other", "Pending")
    assert watched.state() == [8, 8]
    watched.places("p", 3)
    watched.places("q", 3)
    assert watched.state() == STALE
    watched.fails("q")
    assert watched.state() == STALE
    watched.word(5, 8)  # whatever the agent tells meanwhile
    assert watched.state() == STALE
    watched.sees("p", "Running")
    watched.word(5, 8, fingerprint=named("p"))
    assert watched.state() == STALE
    version = watched.cache.version
    watched.cache.bound("pod-p", "n1")
    assert watched.cache.version != version  # no log tells of that
    assert watched.state() == [5, 8]
    watched = Watched(Mode.DISCARD).node().word(8, 8)
    watched.places("p", 3)
    assert watched.state() == STALE
    watched.cache.bound("pod-p", "n1")
    assert watched.state() == [8, 8]


def test_pods_on_their_way_are_taken_off_every_zone() -> None:
    watched = Watched().node().word(8, 2)
    watched.places("p", 3)
    assert watched.state() == [5, 0]
    watched.places("q", 1)
    assert watched.state() == [4, 0]
    watched.fails("p")
    assert watched.state() == [7, 1]
    watched.cache.bound("pod-q", "n1")  # to be bound is not to be told of
    assert watched.state() == [7, 1]
    watched.cache.release("pod-nobody", "n1")
    watched.cache.release("pod-q", "nowhere")
    assert watched.state() == [7, 1]


# --- which word is believed ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("attributes", "expected", "expected_with_more"),
    [
        ({}, [8, 8], [8, 8]),
        ({"fingerprint": named("a")}, [8, 8], STALE),  # others' pod on its way: in which zone?
        ({"fingerprint": named()}, STALE, STALE),
        ({"fingerprint": named("a", "b")}, STALE, STALE),
    ],
)
def test_a_first_word_that_names_other_pods_makes_the_node_wait(
    attributes: dict[str, str], expected: Any, expected_with_more: Any
) -> None:
    for phase, state in (("", expected), ("Pending", expected_with_more)):
        watched = Watched().node()
        watched.sees("a", "Running")
        if phase:
            watched.sees("b", phase)
        assert watched.word(8, 8, **attributes).state() == state


def test_who_does_not_run_yet_stays_taken_off_where_ones_word_names_the_others() -> None:
    watched = Watched().node().word(8, 8)
    watched.places("p", 1)
    watched.places("q", 2)
    watched.sees("p", "Running")
    watched.word(7, 8, fingerprint=named("p"))
    assert watched.state() == [5, 6]
    watched.sees("q", "Running", asked={"cpu": "2", "memory": "1Gi"})
    watched.word(7, 6, fingerprint=named("p", "q"))
    assert watched.state() == [7, 6]
    watched.word(9, 9)  # nothing is on its way: there is nothing it could lack
    assert watched.state() == [9, 9]


def test_a_word_that_may_lack_a_pod_is_not_believed() -> None:
    watched = Watched().node().word(8, 8)
    watched.places("p", 3)
    for attributes in ({}, {"fingerprint": named("x")}, {"fingerprint": named("p")}):
        watched.word(7, 7, **attributes)
        assert watched.state() == [5, 5]


def test_a_word_that_came_too_early_is_believed_a_period_later_at_the_most() -> None:
    watched = Watched().node().word(8, 8).node("n2").word(8, 8, node="n2")
    watched.places("p", 3)
    watched.word(8, 5, fingerprint=named("p"))
    assert watched.state() == [5, 5]
    watched.sees("p", "Running")  # the agent was the first to tell
    watched.wait(RESYNC_S / 2)
    assert watched.state() == [5, 5]
    watched.wait(RESYNC_S / 2)
    assert watched.state() == [8, 5]
    watched.places("q", 3, "n2")
    watched.word(8, 5, node="n2", fingerprint=named("q"))
    assert watched.state("n2") == [5, 5]
    watched.sees("q", "Running", node="n2")
    watched.wait(RESYNC_S - 1)  # since the last look
    watched.word(7, 7)
    assert watched.state() == [7, 7]
    assert watched.state("n2") == [5, 5]
    watched.wait(1)
    assert watched.state("n2") == [8, 5]


def test_a_word_that_names_others_is_not_believed_though_nothing_is_on_its_way() -> None:
    watched = Watched(foreign_pods=NONE).node().word(8, 8, fingerprint=named())
    assert watched.state() == [8, 8]
    watched.word(7, 7, fingerprint=named("a"))
    assert watched.state() == [8, 8]
    watched.sees("a", "Running")
    watched.wait(RESYNC_S)
    assert watched.state() == [7, 7]


def test_what_was_placed_is_settled_by_the_word_that_came_before() -> None:
    """A pod that ended before anybody told of it leaves the node as it was last told of."""
    watched = Watched().node().word(8, 8, fingerprint=named())
    watched.places("p", 3)
    assert watched.state() == [5, 5]
    watched.cluster.forget(watched.pods["p"])
    assert watched.state() == [5, 5]
    watched.wait(RESYNC_S)
    assert watched.state() == [8, 8]


@pytest.mark.parametrize(("scope", "expected"), [(ALL, [1, 1]), (ONLY_RESOURCES, [5, 5])])
def test_a_kubelet_with_other_settings_is_believed_at_once_if_that_is_asked_for(
    scope: str, expected: list[int]
) -> None:
    watched = Watched(resync_scope=scope).node().word(8, 8)
    watched.places("p", 3)
    watched.word(4, 4, scope="pod", fingerprint=named("x"))
    assert watched.state() == expected
    row = watched.cluster.nodes.row_of["n1"]
    assert bool(watched.cache.zones.is_pod_scope[row]) == (scope == ALL)


def test_a_fingerprint_may_stand_in_an_annotation() -> None:
    watched = Watched().node()
    watched.sees("a", "Running")
    for pods, expected in ((("b",), STALE), (("a",), [6])):
        told = a_topology("n1", a_zone(0, cpu="6"))
        told["metadata"]["annotations"] = {"topology.node.k8s.io/fingerprint": named(*pods)}
        watched.world.tell(told)
        assert watched.state() == expected


@pytest.mark.parametrize(
    ("method", "told", "names_all"),
    [
        (AUTODETECT, "", True),
        (AUTODETECT, EXCLUSIVE_METHOD, False),
        (AUTODETECT, "all", True),
        (ONLY_EXCLUSIVE, "", False),
        (ONLY_EXCLUSIVE, EXCLUSIVE_METHOD, False),
        (ALL, EXCLUSIVE_METHOD, True),
    ],
)
@pytest.mark.parametrize("fingerprint_of_all", [False, True])
def test_a_fingerprint_is_of_all_pods_or_of_those_that_own_something(
    method: str, told: str, *, names_all: bool, fingerprint_of_all: bool
) -> None:
    watched = Watched(resync_method=method).node()
    watched.sees("owner", "Running")
    watched.sees("with-device", "Running", asked={GPU: "1", "_burst": True})
    watched.sees("with-other-device", "Running", asked={"example.com/x": "1", "_burst": True})
    watched.sees("shared", "Running", asked={"cpu": "1", "_burst": True})
    owners = ("owner", "with-device")
    pods = (*owners, "with-other-device", "shared") if fingerprint_of_all else owners
    attributes = {"fingerprint": named(*pods)} | ({"method": told} if told else {})
    zones = ({"name": "node-0", "type": "Node"}, a_zone(1, cpu="8", **{GPU: "1"}))
    watched.world.tell(a_topology("n1", *zones, **attributes))
    assert (watched.state() != STALE) == (names_all == fingerprint_of_all)


def test_a_word_without_zones_is_a_word() -> None:
    watched = Watched(resync_method=ONLY_EXCLUSIVE, foreign_pods=ONLY_EXCLUSIVE).node()
    told = {"metadata": {"name": "n1"}, "attributes": [
        {"name": "nodeTopologyPodsFingerprint", "value": named()}]}  # fmt: skip
    watched.world.tell(told)
    assert watched.state() == []
