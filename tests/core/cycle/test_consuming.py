"""The place of a pod that consumes a request: one of those that are held for it, else any."""

from typing import Any

import numpy as np
import pytest

from asched.core.cycle import consuming
from asched.core.cycle.company import Company
from asched.core.cycle.consuming import decide
from asched.core.cycle.context import Attempt
from asched.core.cycle.request_book import Bookings
from asched.core.framework.attempt import Rejection
from asched.core.framework.effects import ReadPod
from asched.core.framework.runner import Decision
from asched.core.model.kinds import NODE, POD
from asched.core.queue.queued import QueuedPod
from asched.core.state.facts import Gone, Seen
from tests.builders import PodBuilder, a_pod
from tests.core.cycle.playbook import Play
from tests.core.cycle.test_request_plays import RequestPlay, consumer, held_play, room


def attempt(play: Play, pod: PodBuilder, **more: Any) -> Attempt:
    play.machine.is_active = False
    built = pod.spec(schedulerName="default-scheduler").build()
    play.turn(Seen(POD, built))
    context = play.machine.context
    info = play.parts.cluster.classes.info_of(built)
    runner = context.runners["default-scheduler"]
    return Attempt(1, QueuedPod(built, 0.0), info, runner, 0.0, **more)


def decided(play: Play, pod: PodBuilder, *within: str, **more: Any) -> Decision | Rejection:
    """What comes of an attempt that asks nobody outside."""
    mask = None
    nodes = play.parts.cluster.nodes
    if within:
        mask = np.zeros(nodes.height, dtype=np.bool_)
        mask[[nodes.row_of[name] for name in within]] = True
    return through(decide(play.machine.context, attempt(play, pod, **more), mask))


def through(steps: Any) -> Decision | Rejection:
    with pytest.raises(StopIteration) as end:
        next(steps)
    result: Decision | Rejection = end.value.value
    return result


def node(found: Decision | Rejection) -> str:
    assert isinstance(found, Decision), found.message("")
    return found.node


def opened(play: Play) -> list[str]:
    """Nodes of slots that are not counted just now."""
    holds = [hold for hold in play.parts.cluster.holds if hold.is_lifted]
    return [place.node_name for hold in holds for place in hold.places]


def one_slot() -> RequestPlay:
    """A slot on n1, which it fills; n2 is free."""
    play = held_play(room("n1", 1), count=1)
    play.turn(Seen(NODE, room("n2", 8).build()))
    return play


def test_it_gets_a_slot_though_others_have_more_room() -> None:
    play = one_slot()
    assert node(decided(play, consumer("a"))) == "n1"
    assert opened(play) == ["n1"], "whoever settles sees what came of it"


def test_one_that_consumes_nothing_has_no_slot() -> None:
    play = one_slot()
    assert node(decided(play, a_pod("a").requests(cpu="1"))) == "n2"
    assert opened(play) == []


def test_a_pod_that_is_supposed_has_none() -> None:
    play = one_slot()
    company = Company(play.parts.cluster, 1)
    assert node(decided(play, consumer("a"), company=company)) == "n2"


def test_it_goes_anywhere_where_no_slot_fits() -> None:
    play = one_slot()
    assert node(decided(play, consumer("a", cpu="2"))) == "n2"
    assert opened(play) == []


def test_a_slot_on_a_node_that_does_not_suit_it_is_not_tried() -> None:
    play = one_slot()
    picky = consumer("a").requires_nodes({"matchFields": [field("n2")]})
    assert node(decided(play, picky)) == "n2"
    assert play.held() == {"n1": 1}


def field(name: str) -> dict[str, Any]:
    return {"key": "metadata.name", "operator": "In", "values": [name]}


def test_a_slot_outside_of_the_nodes_it_may_use_is_not_tried() -> None:
    play = one_slot()
    assert node(decided(play, consumer("a"), "n2")) == "n2"
    assert node(decided(play, consumer("b"), "n1")) == "n1"


def test_a_slot_on_a_node_that_refused_it_is_not_taken() -> None:
    play = one_slot()
    cluster = play.parts.cluster
    wanted = attempt(play, consumer("a"))
    row = cluster.nodes.row_of["n1"]
    cluster.refusals.rows = lambda *_: [row]  # type: ignore[method-assign,assignment]
    assert node(through(decide(play.machine.context, wanted))) == "n2"
    assert opened(play) == []


def test_a_slot_where_a_filter_says_no_by_now_counts_again() -> None:
    """Somebody else lies there who repels the pod."""
    play = held_play(room("n1", 4), count=1)
    play.turn(Seen(NODE, room("n2", 8).build()))
    other = a_pod("other").labels(app="other").on("n1")
    term = {
        "labelSelector": {"matchLabels": {"app": "other"}},
        "topologyKey": "kubernetes.io/hostname",
    }
    apart = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    for name in ("n1", "n2"):
        labelled = room(name, 8).labels({"kubernetes.io/hostname": name})
        play.turn(Seen(NODE, labelled.build()))
    play.turn(Seen(POD, other.build()))
    assert node(decided(play, consumer("a").spec(affinity=apart))) == "n2"
    assert (play.held(), opened(play)) == ({"n1": 1}, [])


def test_pods_wait_behind_their_gate_also_when_it_was_closed_late() -> None:
    """The request came after its pod was popped."""
    play = held_play(room("n1", 4))
    play.ask("later", sets={"worker": 50})
    found = decided(play, consumer("a", request="later"))
    assert isinstance(found, Rejection)
    assert found.unschedulable_plugins == frozenset({"CheckAndHold"})


def test_only_so_many_slots_are_tried(monkeypatch: Any) -> None:
    """Each on another node; the pod goes where any pod may go then."""
    tried: list[str] = []
    monkeypatch.setattr(consuming, "TRIES_MAX", 2)
    play = held_play(*(room(f"n{number}", 2) for number in range(4)), count=8)
    bookings = play.parts.cluster.singleton(Bookings)
    real = bookings.open

    def noted(uid: str, slots: Any) -> bool:
        tried.extend(slot.node for _, slot in slots)
        real(uid, slots)
        return False

    monkeypatch.setattr(bookings, "open", noted)
    decided(play, consumer("a"))
    assert len(tried) == len(set(tried)) == 2


class Asking:
    """A runner that asks somebody outside, then takes the only node it may use."""

    def __init__(self, real: Any) -> None:
        self.profile, self.cache = real.profile, real.cache
        self.is_closed = False

    def consults(self, _info: Any) -> bool:
        return True

    def schedule(self, _info: Any, seed: int, within: Any) -> Any:
        try:
            self.seed, self.rows = seed, np.flatnonzero(within).tolist()
            yield ReadPod(pod=None)  # type: ignore[arg-type]
        except GeneratorExit:
            self.is_closed = True
            raise
        (row,) = self.rows
        return Decision("n1", row, 1, 1, None, None)  # type: ignore[arg-type]


def asking() -> tuple[RequestPlay, Asking, Any]:
    play = one_slot()
    wanted = attempt(play, consumer("a"))
    play.machine.context.seed = 40
    runner = Asking(wanted.runner)
    wanted.runner = runner  # type: ignore[assignment]
    steps = decide(play.machine.context, wanted)
    next(steps)
    return play, runner, steps


def test_while_an_extender_is_asked_the_slot_counts() -> None:
    play, runner, steps = asking()
    row = play.parts.cluster.nodes.row_of["n1"]
    assert (runner.seed, runner.rows) == (41, [row])
    assert (play.held(), opened(play)) == ({"n1": 1}, [])
    with pytest.raises(StopIteration) as end:
        steps.send(None)
    assert node(end.value.value) == "n1"
    assert opened(play) == ["n1"]


def test_a_slot_that_went_meanwhile_ends_the_question() -> None:
    play, runner, steps = asking()
    play.parts.cluster.singleton(Bookings).end("default/job")
    steps.send(None)  # the next question is about any node
    assert runner.is_closed
    assert runner.rows == []


def test_slots_are_settled_before_one_is_chosen() -> None:
    """Its first pod went, and nobody has looked since."""
    play = held_play(room("n1", 1), count=1)
    play.turn(Seen(NODE, room("n2", 8).build()))
    play.machine.is_active = False
    play.see(consumer("first").on("n1"))
    assert play.held() == {}
    later = attempt(play, consumer("a"))
    play.parts.cluster.apply(Gone(POD, consumer("first").on("n1").build()))
    assert node(through(decide(play.machine.context, later))) == "n1"
