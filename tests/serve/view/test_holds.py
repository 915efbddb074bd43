"""What a page says to a pod that waits of room that is held."""

from asched.cli.explain import explanation
from asched.serve.view.holds import OWNERS_MAX, holds_for
from tests.builders import a_pod
from tests.core.cycle.request_plays import a_play, consumer, held_play, room


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


def test_of_many_requests_those_with_the_most_places_are_told() -> None:
    play = a_play(room("n1", 99))
    play.template()
    for number in range(1, OWNERS_MAX + 3):
        play.ask(f"job-{number}", sets={"worker": number})
        play.settle(f"job-{number}")

    places = [one["places"] for one in holds_for(play.machine.context, a_pod("a").build())]

    assert places == list(range(OWNERS_MAX + 2, 2, -1))
