"""A node that is overcommitted in one resource has room for what does not ask for that resource.

Any client that may create pods can overcommit a node, by naming it in `spec.nodeName`.
"""

from typing import Any

import pytest

from asched.core.cluster.facts import Answer, Gone, Refused, Unknown
from asched.core.framework.effects import Patch
from asched.core.model.kinds import NODE
from tests.builders import NodeBuilder, PodBuilder, a_pod, room
from tests.playbook import Batch, RequestPlay, consumer, held_play, lasting, request_play, restarted

GPU = "nvidia.com/gpu"
TURNS = 300


def nodes(count: int = 4, cpu: int = 4) -> list[NodeBuilder]:
    """Nodes without devices, and one that has some."""
    with_gpus = room("with-gpus", 0).allocatable(**{GPU: "8"})
    return [with_gpus, *(room(f"n{number}", cpu) for number in range(count))]


def a_pod_beyond_the_node(node: str = "n0", **requests: str) -> PodBuilder:
    return a_pod(f"beyond-{node}", "tenant").requests(**(requests or {GPU: "1"})).on(node)


def wait(play: RequestPlay, seconds: float = 5.0) -> None:
    """Let time pass; all writes succeed."""
    for _ in range(round(seconds)):
        play.turn(after_s=1.0)
        play.settle()


# --- held places ---------------------------------------------------------------------------------


def test_held_places_stay_where_another_resource_is_overcommitted() -> None:
    play = held_play(*nodes(), count=8)
    before = play.held()
    play.see(a_pod_beyond_the_node())
    wait(play)
    assert play.held() == before
    assert "BookingExpired" not in play.said()
    play.audited()


def test_places_are_found_where_another_resource_is_overcommitted() -> None:
    play = request_play(*nodes(2))
    play.see(a_pod_beyond_the_node("n0"))
    play.see(a_pod_beyond_the_node("n1"))
    play.template()
    play.ask(sets={"worker": 8})
    assert play.settle()["Provisioned"] == ("True", "CapacityIsFound")
    assert play.held() == {"n0": 4, "n1": 4}


def test_a_place_that_is_lost_costs_one_place() -> None:
    play = held_play(room("n0", 4), room("n1", 4), count=8)
    play.see(a_pod_beyond_the_node(cpu="1"))
    wait(play)
    assert play.held() == {"n0": 3, "n1": 4}
    assert play.said()["Provisioned"] == ("True", "CapacityIsFound")
    assert "1 of its 8 places is lost" in play.message("Provisioned")
    assert sorted(play.details()["places-0"].split(",")) == ["0/n0*3", "0/n1*4"]

    for number in range(7):
        play.see(consumer(f"c{number}"))
    assert len(play.bindings()) == 7
    play.audited()


@pytest.mark.parametrize("is_next_process", [False, True])
def test_a_lost_place_is_searched_for_as_long_as_the_others_are_held(
    *, is_next_process: bool
) -> None:
    pods = room("n0", 4), room("n1", 4)
    play, beyond = held_play(*pods, count=8), a_pod_beyond_the_node(cpu="1")
    play.see(beyond)
    wait(play)
    if is_next_process:
        play = restarted(play, *pods)
        play.template()
        play.see(beyond)
        play.show("job")
        wait(play)
        assert play.held() == {"n0": 3, "n1": 4}
    play.lose(beyond)
    wait(play, 70.0)
    assert play.held() == {"n0": 4, "n1": 4}
    assert "lost" not in play.message("Provisioned")
    play.audited()


def test_a_request_without_any_place_left_ends() -> None:
    play = held_play(room("n0", 1), count=1)
    play.turn(Gone(NODE, room("n0", 1).build()))
    wait(play)
    assert play.said()["BookingExpired"] == ("True", "CapacityIsLost")


@pytest.mark.parametrize("answer", [(Refused, 500), (Refused, 409), (Unknown, 0)])
@pytest.mark.parametrize("is_all", [False, True])
def test_a_status_of_lost_places_that_is_not_stored_is_written_again_after_a_pause(
    answer: tuple[type[Answer], int], *, is_all: bool
) -> None:
    """The filter ignores a resource that the held place asks for, so it is found and refused."""
    ignored = {"name": "NodeResourcesFit", "args": {"ignoredResources": ["example.com/x"]}}
    plugins = {"multiPoint": {"enabled": [{"name": "CheckAndHold"}]}}
    config = [{"name": "CheckAndHold", "args": {"maxNamespacePercentage": 100}}, ignored]
    own = {"schedulerName": "default-scheduler", "plugins": plugins, "pluginConfig": config}
    hosts = [room(f"n{number}", 4).allocatable(**{"example.com/x": "1"}) for number in range(2)]
    play = RequestPlay(*hosts, profiles=[own])
    container = {"name": "main", "resources": {"requests": {"cpu": "1", "example.com/x": "1"}}}
    play.template(containers=[container])
    play.ask(sets={"worker": 2})
    play.settle()
    assert play.held() == {"n0": 1, "n1": 1}

    play.see(a_pod_beyond_the_node("n0", **{"example.com/x": "1"}))
    if is_all:
        play.see(a_pod_beyond_the_node("n1", **{"example.com/x": "1"}))
    writes = 0
    for _ in range(TURNS):
        play.turn()
        for patch in play.patches():
            writes += 1
            kind, code = answer
            play.turn(Refused(patch.id, code, "no") if kind is Refused else Unknown(patch.id, "?"))
    assert writes <= 4, "no time has passed"
    wait(play, 10.0)
    lost = play.said().get("BookingExpired") == ("True", "CapacityIsLost")
    assert lost is is_all
    play.audited()


# --- promised starts -----------------------------------------------------------------------------


def promise_play(*beyond: str) -> tuple[Batch, int]:
    """A pod waits for a full node; what it does not ask for is overcommitted there. Returns how
    many turns asked for another one at once.
    """
    play = Batch(room("with-gpus", 0).allocatable(**{GPU: "8"}), room("n1", 4), room("n2", 4))
    play.show(lasting("a", 100, cpu=4), lasting("b", 200, cpu=4))
    for node in beyond:
        play.show(a_pod_beyond_the_node(node))
    play.show(lasting("waits", 50, cpu=4))
    at_once = 0
    while (due_s := play.machine.next_deadline_s()) is not None and due_s <= play.now_s:
        at_once += 1
        play.go()
        if at_once == TURNS:
            break
    return play, at_once


def test_a_promise_is_kept_where_another_resource_is_overcommitted() -> None:
    play, at_once = promise_play("n1", "n2")
    assert at_once < 5
    first = play.told["waits"]
    assert "; expected to start by " in first
    play.pass_time(90.0)
    assert play.told["waits"] == first
    play.end("a")
    assert play.places["waits"] == "n1"


def test_pods_that_do_not_ask_for_it_are_kept_off_and_let_in_as_before() -> None:
    play, _ = promise_play("n1", "n2")
    play.show(lasting("short", 20, cpu=0))
    assert "short" in play.places


def test_a_gang_whose_one_node_is_overcommitted_is_not_promised_a_start_again_and_again() -> None:
    play = Batch(room("with-gpus", 0).allocatable(**{GPU: "8"}), room("n1", 4), room("n2", 4))
    play.show(lasting("a", 1000, cpu=4), lasting("b", 1000, cpu=4))
    play.show(a_pod_beyond_the_node("n1"))
    play.gang("crew", lasting("c1", 50, cpu=4), lasting("c2", 50, cpu=4))
    writes: list[Any] = []
    for _ in range(60):
        play.go(after_s=1.0)
        writes += [effect for effect in play.effects if isinstance(effect, Patch)]
    made = play.to("crew").made_s
    play.pass_time(20.0)
    assert play.to("crew").made_s - made < 31.0
    assert not writes
