"""What a pod that waits is told of room that is held."""

from types import SimpleNamespace
from typing import Any, cast

from asched.cli.explain import explanation
from asched.core.model.kinds import COSCHEDULING_GROUP
from asched.core.state.facts import Seen
from asched.core.state.holds import HeldAmounts, HeldPlace, Hold
from asched.serve.view.holds import OWNERS_MAX, holds_for
from tests.builders import a_pod
from tests.core.cycle import test_coscheduling_plays as groups
from tests.core.cycle.test_request_plays import consumer, held_play, room


def test_a_pod_is_told_for_whom_room_is_held() -> None:
    play = held_play(room("n1", 1), room("n2", 1))
    context = play.machine.context
    (hold,) = holds_for(context, consumer("a").build())
    assert (hold["owner"], hold["own"]) == ("provisioningrequest/default/job", True)
    assert (hold["places"], hold["nodes"]) == (2, 2)
    assert 0 < hold["seconds"] <= 600
    (hold,) = holds_for(context, consumer("b", request="another").build())
    assert not hold["own"]

    told = {"pod": "default/b", "place": "unschedulable", "story": [], "holds": [hold]}
    lines = list(explanation({**told, "now": {"nodes": 2, "preFilter": "no", "plugin": "P"}}))
    said = (
        f"held for provisioningrequest/default/job: 2 places on 2 nodes, {hold['seconds']} s more"
    )
    assert said in lines


def test_groups_are_told_too() -> None:
    play = groups.a_play(groups.room("n1", 4))
    play.turn(Seen(COSCHEDULING_GROUP, groups.a_group("pi", 1, minResources={"cpu": "3"})))
    play.see(groups.a_member("driver", "pi"))
    groups.settled(play)

    (hold,) = holds_for(play.machine.context, consumer("a").build())
    assert hold["owner"] == "podgroup/default/pi"


def a_hold(owner: str, until_s: float, *nodes: str) -> Hold:
    places = tuple(HeldPlace(HeldAmounts({"cpu": 1}), node) for node in nodes)
    return Hold(owner, places, until_s)


def told_of(*holds: Hold) -> list[dict[str, Any]]:
    cluster = SimpleNamespace(holds=SimpleNamespace(all=lambda: holds))
    context = SimpleNamespace(cluster=cluster, now_s=100.0)
    return holds_for(cast("Any", context), a_pod("a").build())


def test_parts_of_one_owner_are_told_together_until_the_last_of_them_ends() -> None:
    job, over = "request:default/job", "request:default/over"
    first, second = a_hold(f"{job}#0", 160, "n1", "n2"), a_hold(f"{job}#1", 130, "n2")
    for holds in ((first, second), (second, first)):
        (told,) = told_of(*holds)
        assert (told["places"], told["nodes"], told["seconds"]) == (3, 2, 60)
    (late,) = told_of(a_hold(over, 90, "n1"))
    assert late["seconds"] == 0, "it is about to end"
    assert told_of(a_hold(over, 160)) == []


def test_of_many_owners_those_with_the_most_places_are_told() -> None:
    holds = [a_hold(f"request:{at}", 160, *["n1"] * at) for at in range(1, OWNERS_MAX + 3)]

    places = [one["places"] for one in told_of(*holds)]

    assert places == list(range(OWNERS_MAX + 2, 2, -1))
