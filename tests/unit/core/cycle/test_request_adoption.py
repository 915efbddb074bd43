"""Places that an earlier process promised: all of them are held again before anybody is placed."""

import pytest

from asched.batch.provisioning.cycle import TIME_IS_UP
from asched.core.cluster.facts import Gone
from asched.core.model.kinds import PROVISIONING_REQUEST
from tests.builders import room
from tests.playbook import HOLD_S, RequestPlay, held_play, restarted


def written(play: RequestPlay, until: str) -> None:
    """Somebody else writes that its places are promised, and nothing of an end."""
    status = play.stored["job"]["status"]
    ends = ("BookingExpired", "CapacityRevoked", "Failed")
    told = [c for c in status["conditions"] if c["type"] not in (*ends, "Provisioned")]
    found = {"type": "Provisioned", "status": "True", "reason": "CapacityIsFound"}
    status["conditions"] = [*told, found]
    status["provisioningClassDetails"] = {"heldUntil": until, "places-0": "0/n1*2"}
    play.show("job")


def test_a_forged_status_holds_for_as_long_as_the_request_asks_and_not_longer() -> None:
    play = held_play(room("n1", 2))
    other = restarted(play, room("n1", 2))
    other.template()
    written(other, "2099-01-01T00:00:00.000000Z")
    assert other.held() == {"n1": 2}
    other.turn(after_s=HOLD_S - 1.0)
    assert other.held() == {"n1": 2}
    other.turn(after_s=2.0)
    assert other.held() == {}


@pytest.mark.parametrize("is_told", [True, False], ids=["told of its end", "written before that"])
def test_what_ended_is_not_held_again_whatever_its_status_says_later(is_told: bool) -> None:
    play = held_play(room("n1", 2))
    play.turn(after_s=HOLD_S + 1.0)
    assert play.held() == {}
    if is_told:
        assert play.settle()["BookingExpired"] == ("True", TIME_IS_UP[0])
    for _ in range(3):
        written(play, "2099-01-01T00:00:00.000000Z")
        play.turn(after_s=1.0)
        assert play.held() == {}
    play.stored["job"]["status"] = {"conditions": []}  # as if nobody had decided yet
    play.show("job")
    play.turn(after_s=1.0)
    assert play.held() == {}


def test_another_request_of_the_same_name_is_held() -> None:
    play = held_play(room("n1", 2))
    play.turn(after_s=HOLD_S + 1.0)
    play.settle()
    play.turn(Gone(PROVISIONING_REQUEST, play.record("job")))
    play.ask()
    assert play.settle()["Provisioned"] == ("True", "CapacityIsFound")
    assert play.held() == {"n1": 2}
