"""Promises of an earlier process: read from what pods were told, and kept by the next one."""

import pytest
from msgspec.structs import replace

from asched.batch.backfill.reservations import StartTimes
from asched.batch.backfill.starts import RECALLED_MAX, STARTED_ANEW, read
from asched.core.cluster.facts import Seen, WallClock
from asched.core.model.kinds import COSCHEDULING_GROUP, POD
from asched.core.model.pod import Pod
from tests.builders import NodeBuilder, PodBuilder, a_pod, room
from tests.playbook import EPOCH_S, Batch, lasting, two_full_nodes

TOLD = "; expected to start by 2026-03-01T12:00:00Z (hard)"


def told(pod: PodBuilder, message: str, kind: str = "PodScheduled") -> PodBuilder:
    condition = {"type": kind, "status": "False", "message": message}
    return pod.status(conditions=[condition])


@pytest.mark.parametrize(
    "message",
    [
        "",
        "0/3 nodes are available",
        TOLD.replace("2026", "soon"),
        TOLD.replace("-03-", "-13-"),
        TOLD.replace("hard", "surely"),
    ],
)
def test_nothing_else_is(message: str) -> None:
    assert read(told(a_pod("a"), message).build()) is None
    assert read(told(a_pod("a"), TOLD, "Ready").build()) is None
    assert read(a_pod("a").build()) is None


def leading_from_now(*nodes: NodeBuilder, wall_s: float = EPOCH_S) -> Batch:
    play = Batch(*nodes)
    play.turn(WallClock(wall_s - play.now_s))
    play.parts.cluster.singleton(StartTimes).has_recalled = False
    return play


def restarted(before: Batch, *more: PodBuilder) -> Batch:
    """Another process that finds the pods as they are, and the nodes of `two_full_nodes`."""
    cluster = before.parts.cluster
    play = leading_from_now(room("n1"), room("n2"), wall_s=before.wall_s)
    groups = cluster.all(COSCHEDULING_GROUP).values()
    pods = [told_as(before, pod.key) for pod in cluster.pods_seen.values()]
    facts = [Seen(COSCHEDULING_GROUP, one) for one in groups]
    # Whoever came last stands first in the list.
    play.go(*facts, *(Seen(POD, pod.build()) for pod in more), *(Seen(POD, pod) for pod in pods))
    return play


def told_as(before: Batch, key: str) -> Pod:
    """The pod as the API has it."""
    pod = before.parts.cluster.pods_seen[key]
    message = before.told.get(pod.metadata.name, "")
    if pod.spec.node_name or not message:
        return pod
    return replace(pod, status=told(a_pod("x"), message).build().status)


def test_a_promise_outlives_the_process_and_goes_before_who_came_since() -> None:
    before = two_full_nodes()
    before.gang("crew", lasting("w0", 600, cpu=4), lasting("w1", 600, cpu=4))
    start = before.date(before.to("crew").start_s)
    before.pass_time(20)

    play = restarted(before, lasting("rival", 900, cpu=4))

    one = play.to("crew")
    assert (play.date(one.start_s), one.cause) == (start, "")
    assert one.order < play.to("crew").order._replace(since_s=0.0)
    assert play.promised("pod:uid-rival") is None
    assert not play.parts.cluster.singleton(StartTimes).recalled


def test_a_start_that_is_later_now_names_the_restart() -> None:
    before = two_full_nodes()
    before.gang("crew", lasting("w0", 600, cpu=4), lasting("w1", 600, cpu=4))
    start_s = before.to("crew").start_s
    before.told["w0"] = before.told["w1"] = before.told["w0"].replace(
        before.date(start_s + 1), before.date(start_s - 99)
    )

    play = restarted(before)

    one = play.to("crew")
    assert (play.date(one.start_s), one.cause) == (before.date(start_s), STARTED_ANEW)
    assert play.told["w0"].endswith(f", not by {play.date(one.first_s + 1)}: {STARTED_ANEW}")


def test_only_so_many_are_recalled() -> None:
    play = leading_from_now(room("n1", cpu=1))
    many = [told(lasting(f"p{n:03}", 60, cpu=4), f"no{TOLD}") for n in range(RECALLED_MAX + 9)]

    play.go(*(Seen(POD, pod.build()) for pod in many))

    assert len(play.parts.cluster.singleton(StartTimes).recalled) == RECALLED_MAX
