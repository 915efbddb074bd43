"""The search for a start while others have their turn, and what it leaves behind."""

from collections import Counter
from collections.abc import Generator
from typing import Any

import numpy as np
import pytest

from asched.core.cycle import start_search
from asched.core.cycle.context import Attempt
from asched.core.cycle.start_keeping import StartTimes
from asched.core.cycle.start_search import TRIALS_MAX, NodesMovedError
from asched.core.model.kinds import NODE, POD
from asched.core.queue.queued import QueuedPod
from asched.core.state.budget import Budget
from asched.core.state.ends import GRACE_S
from asched.core.state.facts import Gone
from asched.core.state.reservations import CLONE, Need, Reservations
from tests.builders import a_node, all_rows
from tests.core.cycle.attempts import run
from tests.core.cycle.test_start_search import Scene, room, shunned, wants

MEMORY = ("some", "2Gi"), ("more", "3Gi")


@pytest.fixture
def trials(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """At which moments pods were tried."""
    tried: list[float] = []
    real = start_search._try_at

    def counted(context: Any, group: Any, start_s: float, *more: Any) -> Generator[Any, Any, Any]:
        tried.append(start_s)
        return real(context, group, start_s, *more)

    monkeypatch.setattr(start_search, "_try_at", counted)
    return tried


@pytest.fixture
def narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    """Others have their turn whenever they may."""
    monkeypatch.setattr(Budget, "open", lambda budget: setattr(budget, "left", 0))


def test_no_more_trials_are_made_than_the_bound_says(trials: list[float]) -> None:
    scene, pod = shunned(TRIALS_MAX)
    assert scene.found(pod) is None
    assert len(trials) == TRIALS_MAX
    assert Counter(Counter(trials).values()) == {2: TRIALS_MAX // 2}, "twice at each moment"


def test_who_leaves_or_comes_while_ends_are_asked_for_gives_no_room(trials: list[float]) -> None:
    """Nor does it take any from others that end on other nodes."""
    scene = Scene(room("n1"), room("n2"))
    scene.runs("goes", "n1", "2", seconds=100)
    scene.runs("forever", "n1", "2")
    scene.runs("short", "n2", seconds=300)
    steps = scene.steps(wants("2"))
    scene.cluster.budget.open()
    for _ in range(3):  # before each demand, before some are asked, and once they were
        scene.cluster.budget.note(1e6)
        next(steps)
    scene.cluster.apply(Gone(POD, scene.cluster.pods_seen["default/goes"]))
    scene.runs("next", "n1", "2")
    scene.cluster.budget.open()
    found = run(steps)
    assert scene.after_s(found) == 300 + GRACE_S
    assert list(found.needs) == ["n2"]
    assert trials == [found.start_s]


def test_while_pods_are_tried_nothing_is_concluded_of_whom_others_see(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Budget, "open", lambda budget: setattr(budget, "left", 5))
    scene = Scene()
    scene.runs("short", "n1", seconds=100)
    kept = scene.cluster.singleton(StartTimes.of)
    scene.cluster.budget.open()
    seen = set()
    for _ in scene.steps(wants("2", "a"), wants("2", "b")):
        seen.add((kept.is_trying, any(uid.endswith(CLONE) for uid in scene.cluster.placed)))
    assert seen == {(False, False), (True, True)}
    assert kept.is_trying is False


def test_places_are_told_of_once_and_of_no_trial_that_nobody_saw(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    scene = Scene()
    scene.runs("short", "n1", seconds=100)
    kept = scene.cluster.singleton(StartTimes.of)
    pods = [wants("2", name).status(nominatedNodeName="elsewhere") for name in ("a", "b")]
    infos = [scene.info(pod) for pod in pods]
    runner = scene.context.runners["default-scheduler"]
    first = Attempt(1, QueuedPod(infos[0].pod, 0.0), infos[0], runner, 0.0)
    group = start_search._clones(scene.context, first, infos)
    assert (group.id, group.pod) == (first.id, first.pod)
    assert not any(attempt.pod.status.nominated_node_name for attempt in group.attempts)
    leaving = {0: list(scene.cluster.singleton(Reservations).leaving(0, scene.now_s + 200))}
    within, blocked = np.array([True]), np.zeros((9, 1), dtype=np.int64)

    def tried() -> int:
        steps = start_search._try_at(
            scene.context, group, scene.now_s + 200, leaving, within, blocked, ()
        )
        assert run(steps).needs == {"n1": Need({"cpu": 4000}, 2)}
        return len(list(kept.freed.take()))

    with monkeypatch.context() as patched:
        patched.setattr(Budget, "open", lambda budget: setattr(budget, "left", 5))
        assert tried() == 1
        assert tried() == 1
    assert tried() == 0


def test_after_a_trial_promises_bind_those_that_were_tried_as_before() -> None:
    scene = Scene()
    scene.runs("short", "n1", seconds=100)
    ledger = scene.cluster.singleton(Reservations)
    ledger.put(scene.promised("n1"))
    pod = wants()
    assert scene.found(pod) is not None
    assert ledger.codes(scene.info(pod), all_rows(scene.cluster)).tolist() == [1]


def test_of_what_is_promised_each_amount_is_held_and_each_pod() -> None:
    scene = Scene(a_node("n1").allocatable(cpu="8", memory="8Gi", pods="2"), room("n2"))
    scene.runs("a", "n1", "8", seconds=100)
    scene.runs("long", "n2", seconds=500)
    theirs = scene.promised("n1")
    theirs.needs = {"n1": Need({"memory": 6 << 30}, 1)}
    large, small = wants("1", "large").requests(cpu="1", memory="3Gi"), wants("1", "small")
    assert scene.after_s(scene.found(large, respected=[theirs])) == 500 + GRACE_S
    assert scene.after_s(scene.found(small, respected=[theirs])) == 100 + GRACE_S
    theirs.needs = {"n1": Need({"memory": 4 << 30}, 0)}
    two = [wants("1", name).requests(cpu="1", memory=amount) for name, amount in MEMORY]
    assert scene.after_s(scene.found(*two, respected=[theirs])) == 500 + GRACE_S
    assert scene.after_s(scene.found(*two)) == 100 + GRACE_S
    theirs.needs = {"n1": Need({}, 1)}
    both = scene.found(small, wants("1", "small-too"), respected=[theirs])
    assert both is not None
    assert scene.after_s(both) == 500 + GRACE_S
    assert {name: need.pods for name, need in both.needs.items()} == {"n1": 1, "n2": 1}


def test_rows_are_asked_about_only_while_they_are_those_that_were_counted(narrow: None) -> None:
    scene = Scene(room("n1"), room("n2"))
    scene.runs("short", "n1", seconds=100)
    generation, within = scene.cluster.nodes.generation, np.array([True, True])

    def asked() -> Any:
        scene.cluster.budget.open()
        return start_search._leaving(scene.context, within, scene.now_s + 200, generation)

    assert [len(found) for found in run(asked()).values()] == [1, 0]
    meanwhile = asked()
    next(meanwhile)
    scene.cluster.apply(Gone(NODE, scene.cluster.node_of("n2")))
    with pytest.raises(NodesMovedError):
        next(meanwhile)
    with pytest.raises(NodesMovedError):
        next(asked())


@pytest.mark.parametrize("pause", [1, 2], ids=["asked for", "sorted"])
def test_nodes_that_go_while_ends_are_asked_for_end_the_search(narrow: None, pause: int) -> None:
    scene = Scene(room("n1"), room("n2"))
    scene.runs("short", "n1", seconds=100)
    steps = start_search._timeline(scene.context, ())
    scene.cluster.budget.open()
    for _ in range(pause):
        next(steps)
    scene.cluster.apply(Gone(NODE, scene.cluster.node_of("n2")))
    with pytest.raises(NodesMovedError):
        next(steps)


def test_nodes_that_go_while_demands_are_counted_end_the_search(narrow: None) -> None:
    scene = Scene(room("n1"), room("n2"))
    scene.runs("short", "n1", seconds=100)
    steps = scene.steps(wants())
    scene.cluster.budget.open()
    next(steps)
    spent = scene.cluster.budget.spent
    scene.cluster.apply(Gone(NODE, scene.cluster.node_of("n2")))
    with pytest.raises(NodesMovedError):
        next(steps)
    assert scene.cluster.budget.spent == spent + start_search.CLASS_STEPS, "no look at anybody"
