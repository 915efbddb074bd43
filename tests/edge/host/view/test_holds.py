"""What a pod that waits is told of room that is held."""

from asched.cli.explain import explanation
from asched.core.model.kinds import COSCHEDULING_GROUP
from asched.core.state.facts import Seen
from asched.edge.host.view.holds import holds_for
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
