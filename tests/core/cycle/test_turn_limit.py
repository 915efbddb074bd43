"""A turn that ended by a clock can be repeated without one."""

from itertools import count

from asched.core.cycle.turn_limit import TURN_S, CountedLimit, TimeLimit
from asched.core.framework.effects import Bind
from asched.core.model.kinds import POD
from asched.core.state.facts import Seen
from tests.builders import a_node, a_pod
from tests.core.cycle.playbook import Play

PODS = [Seen(POD, a_pod(f"p{number}").build()) for number in range(10)]


def a_play() -> Play:
    return Play(a_node("n1").allocatable(cpu="100", memory="100Gi", pods="100"))


def test_a_turn_ends_where_a_counted_one_does() -> None:
    """The clock allows three more looks after the turn's begin: the fourth pod is the last."""
    ticks = count()
    timed, counted = a_play(), a_play()
    timed.machine.limit = TimeLimit(lambda: next(ticks) * TURN_S / 3.5)

    decided = [e.pod.name for e in timed.turn(*PODS) if isinstance(e, Bind)]
    counted.machine.limit = CountedLimit(timed.machine.limit.went_on)
    again = [e.pod.name for e in counted.turn(*PODS) if isinstance(e, Bind)]

    assert timed.machine.limit.went_on == 3
    assert decided == ["p0", "p1", "p2", "p3"]
    assert again == decided
    assert counted.machine.next_deadline_s() == timed.machine.next_deadline_s() == 0.0


def test_each_turn_is_counted_anew() -> None:
    play = a_play()

    play.turn(*PODS)
    first = play.machine.limit.went_on
    play.turn()

    assert first >= len(PODS)
    assert play.machine.limit.went_on < len(PODS)


def test_none_granted_is_one_cycle() -> None:
    """The limit is looked at after a cycle, so that each turn gets on."""
    play = a_play()
    play.machine.limit = CountedLimit()

    assert [e.pod.name for e in play.turn(*PODS) if isinstance(e, Bind)] == ["p0"]
    assert [e.pod.name for e in play.turn() if isinstance(e, Bind)] == ["p1"]


def test_who_paused_goes_on_once_others_had_their_share_since() -> None:
    now = [100.0]
    limit = TimeLimit(lambda: now[0])
    limit.begin()
    assert limit.may_resume(), "nobody has paused yet"
    limit.begin_slice()
    now[0] += 1.0
    limit.end_slice(30)
    now[0] += 30 - 0.5
    assert not limit.may_resume()
    assert not limit.resumed
    now[0] += 0.5
    assert limit.may_resume()
    assert limit.resumed
    limit.begin()
    assert not limit.resumed, "that was the turn before"
