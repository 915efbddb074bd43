"""Pods of others, nodes that go and come, and that every change is told of."""

import random
from collections.abc import Callable
from typing import Any

import pytest

from asched.hardware.numa.cache import ALL, NONE, ONLY_EXCLUSIVE
from asched.hardware.numa.match import NodeResourceTopologyMatch
from tests.hardware.numa.watching import RESYNC_S, STALE, Watched, named
from tests.hardware.numa.worlds import Json

PINNED = {"cpu": "1", "memory": "1Gi"}
SHARED = {"cpu": "1", "_burst": True}


@pytest.mark.parametrize(
    ("foreign", "asked", "expected"),
    [
        (ALL, PINNED, STALE),
        (ALL, SHARED, STALE),
        (ONLY_EXCLUSIVE, PINNED, STALE),
        (ONLY_EXCLUSIVE, SHARED, [8, 8]),
        (NONE, PINNED, [8, 8]),
    ],
)
def test_a_pod_of_others_makes_a_node_wait_until_a_word_names_it(
    foreign: str, asked: Json, expected: Any
) -> None:
    watched = Watched(foreign_pods=foreign).node().word(8, 8)
    assert watched.state() == [8, 8]
    watched.sees("other", "Pending", asked=asked)
    assert watched.state() == expected
    watched.word(8, 7, fingerprint=named())
    expected = STALE if expected == STALE else [8, 7]
    assert watched.state() == expected
    watched.sees("other", "Running", asked=asked)
    assert watched.state() == expected
    watched.word(6, 8)
    assert watched.state() == (STALE if expected == STALE else [6, 8])
    watched.word(7, 8, fingerprint=named("other"))
    assert watched.state() == [7, 8]


def test_others_that_do_not_run_yet_keep_the_node_waiting_whatever_it_names() -> None:
    watched = Watched().node().word(8, 8, fingerprint=named())
    assert watched.state() == [8, 8]
    watched.sees("other", "Pending")
    watched.word(8, 7, fingerprint=named())
    assert watched.state() == STALE
    watched.sees("other", "Running")
    watched.word(8, 6, fingerprint=named("other"))
    watched.places("p", 3)  # ours that does not run yet is taken off
    assert watched.state() == [5, 3]


def test_a_pod_of_others_that_goes_untold_leaves_the_node_waiting_until_the_next_look() -> None:
    watched = Watched().node().word(8, 8, fingerprint=named())
    watched.state()
    watched.sees("other", "Pending")
    assert watched.state() == STALE
    watched.ends("other")
    assert watched.state() == STALE
    watched.wait(RESYNC_S)
    assert watched.state() == [8, 8]
    watched.sees("other", "Pending")  # another of the same name and uid
    assert watched.state() == STALE


def test_a_pod_of_ours_is_known_when_the_watch_shows_it() -> None:
    watched = Watched().node().word(8, 8)
    watched.places("p", 3)
    for phase in ("Pending", "Running"):
        watched.sees("p", phase)
        assert watched.state() == [5, 5]


# --- nodes ---------------------------------------------------------------------------------------


def test_of_a_node_made_anew_nothing_that_was_reserved_is_left() -> None:
    watched = Watched().node().word(8, 8)
    watched.places("p", 3)
    assert watched.state() == [5, 5]
    watched.cluster.forget(watched.pods["p"])
    watched.node(uid="another")
    assert watched.state() == [8, 8]
    watched.places("q", 1)
    watched.drop()
    watched.cache.release("pod-q", "n1")
    watched.node("n2").node(uid="a-third")
    assert watched.state() == [8, 8]
    assert watched.state("n2") is None
    watched.drop()
    watched.drop("n2")
    watched.node("n2")
    assert watched.state("n2") is None  # on the row where the other was
    assert list(watched.cache._nodes) == list(watched.cache._waiting) == []


def test_a_word_that_is_withdrawn_leaves_a_node_as_if_nobody_had_told() -> None:
    watched = Watched().node().word(8, 8, fingerprint=named("x"))
    assert watched.state() == STALE
    assert list(watched.cache._waiting) == ["n1"]
    version = watched.cache.version
    watched.no_word()
    assert watched.state() is None
    assert watched.cache.version != version
    assert list(watched.cache._waiting) == []
    watched.places("p", 3)  # nobody counts by zones
    assert watched.state() is None
    watched.cluster.forget(watched.pods["p"])
    assert watched.word(8, 8).state() == [8, 8]


def test_a_word_may_come_before_its_node() -> None:
    watched = Watched().word(8, 8)
    watched.cache.refresh()
    assert watched.node().state() == [8, 8]
    watched.word(7, 7)
    assert watched.state() == [7, 7]


def test_rows_that_were_given_back_are_forgotten() -> None:
    watched = Watched()
    for at in range(3000):
        watched.node(f"n{at}")
    watched.word(8, 8, node="n1").word(7, 7, node="n2999")
    assert (watched.state("n1"), watched.state("n2999")) == ([8, 8], [7, 7])
    watched.places("p", 3, "n1")
    for at in range(2, 3000):
        watched.drop(f"n{at}")
    watched.wait(1)
    assert watched.cluster.nodes.height < 3000
    assert watched.state("n1") == [5, 5]
    assert watched.state("n0") is None
    assert list(watched.cache._nodes) == ["n1"]


def something_else(
    rng: random.Random, number: int, ours: dict[str, str]
) -> Callable[[Watched], Any]:
    """Something that happens, to be done to each of several alike. `ours`: pod -> its node."""
    node, name = f"n{rng.randrange(4)}", f"p{number}"
    known = rng.choice(sorted(ours)) if ours else ""
    match rng.randrange(9):
        case 0 | 1:
            ours[name] = node
            return lambda watched: watched.places(name, 1, node)
        case 2 if known:
            where = ours[known]
            return lambda watched: watched.sees(known, "Running", node=where)
        case 3 if known:
            where = ours.pop(known)
            return lambda watched: watched.ends(known, where)
        case 4 | 5:
            pods = [pod for pod, where in ours.items() if where == node and rng.random() < 0.8]
            return lambda watched: watched.word(9, 9, node=node, fingerprint=named(*pods))
        case 6:
            return lambda watched: watched.word(12, 12, node=node)
        case 7:
            return lambda watched: watched.no_word(node)
    ours[name] = node
    asked = rng.choice((PINNED, SHARED, {"_burst": True}))
    return lambda watched: watched.sees(name, "Running", node=node, asked=asked)


@pytest.mark.parametrize("seed", range(12))
def test_a_version_or_a_log_tells_of_every_change_and_all_is_known_without_logs(seed: int) -> None:
    rng = random.Random(seed)
    watched, forgetful = Watched(), Watched()
    for one in (watched, forgetful):
        for at in range(4):
            one.node(f"n{at}").word(20, 20, node=f"n{at}")
    ours: dict[str, str] = {}
    log, before, met = watched.cluster.nodes.log, [[20, 20]] * 4, set()
    for number in range(120):
        watched.state(), forgetful.state()
        version, end = watched.cache.version, log.end
        act = something_else(rng, number, ours)
        for one in (watched, forgetful):
            act(one)
            one.wait(RESYNC_S)
        if rng.random() < 0.3:
            forgetful.cluster.object_log.forget()
        if rng.random() < 0.3:
            forgetful.cluster.nodes.log.forget()
        states = [watched.state(f"n{at}") for at in range(4)]
        assert states == [forgetful.state(f"n{at}") for at in range(4)]
        moved = {row for row, state in enumerate(states) if state != before[row]}
        told = log.rows(end, int(NodeResourceTopologyMatch.depends_on)) or ()
        assert watched.cache.version != version or moved <= set(told)
        before = states
        met.update(map(str, states))
    assert {"stale", "None", "[9, 9]", "[12, 12]"} <= met
