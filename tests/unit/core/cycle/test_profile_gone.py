"""Pods on their way whose profile goes with a reload: they end, and hold nothing."""

from collections.abc import Callable

import pytest

from asched.core.cluster.facts import Refused
from asched.core.framework.effects import Bind
from asched.core.framework.points import PermitPlugin
from asched.core.framework.status import Code, Status
from asched.core.queue.backoff import BackoffTimes
from asched.core.queue.reprofile import reprofile
from asched.host.assemble import queue_profiles
from tests.builders import PodBuilder, a_node, a_pod
from tests.playbook import Play


class Patience(PermitPlugin):
    name = "Patience"

    def permit(self, pod, node):
        return Status(Code.WAIT), 600.0


def drop_profile(play: Play) -> None:
    """A reload leaves the only profile under another name."""
    context = play.machine.context
    runners = {"another": next(iter(context.runners.values()))}
    context.runners = runners
    reprofile(
        context.queue,
        queue_profiles(runners, context.observer),
        BackoffTimes(1.0, 10.0),
        play.now_s,
    )


def at_permit() -> tuple[Play, PodBuilder]:
    play = Play(a_node("n1").allocatable(cpu="1", memory="1Gi", pods="10"), plugins=[Patience])
    pod = a_pod("web").requests(cpu="800m")
    play.see(pod)
    assert play.node_of("uid-web") == "n1"
    drop_profile(play)
    return play, pod


def rests(play: Play) -> None:
    assert play.node_of("uid-web") == ""
    assert play.machine.is_idle
    assert "default/web" not in play.machine.context.queue.places
    assert len(play.machine.context.queue.in_flight) == 0


def time_is_up(play: Play, pod: PodBuilder) -> None:
    play.turn(after_s=601)


def deleted(play: Play, pod: PodBuilder) -> None:
    play.lose(pod)


def terminating(play: Play, pod: PodBuilder) -> None:
    play.see(pod.metadata(deletionTimestamp="2026-01-01T00:00:00Z", resourceVersion="2"))


def turned_away(play: Play, pod: PodBuilder) -> None:
    next(iter(play.machine.context.waiting)).reject("Patience", "no")
    play.turn()


@pytest.mark.parametrize("end", [time_is_up, deleted, terminating, turned_away])
def test_a_pod_that_stands_at_permit_gives_its_place_back(
    end: Callable[[Play, PodBuilder], None],
) -> None:
    play, pod = at_permit()
    end(play, pod)
    rests(play)


def test_a_pod_that_is_let_go_is_bound() -> None:
    """Its attempt began while we were asked: there is no reason to turn it away."""
    play, _ = at_permit()
    next(iter(play.machine.context.waiting)).allow("Patience")
    play.turn()
    play.bound(play.the(Bind))
    assert play.notes() == ["Scheduled: Successfully assigned default/web to n1"]


def test_a_pod_that_is_not_bound_after_all_is_nobodys() -> None:
    play, _ = at_permit()
    next(iter(play.machine.context.waiting)).allow("Patience")
    play.turn()
    play.answer(Refused(play.the(Bind).id, 403, "forbidden", "Forbidden"))
    rests(play)
