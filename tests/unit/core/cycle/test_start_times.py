"""Starts that are promised, played through the machine: who is told what, and whom it keeps off."""

from asched.batch.backfill.expected_ends import GRACE_S
from asched.batch.backfill.reservations import Reservations, StartTimes
from asched.batch.backfill.starts import WAITING_MAX
from asched.core.cluster.audit import recount
from asched.core.cluster.facts import Gone, Seen
from asched.core.model.kinds import NODE
from tests.builders import room
from tests.playbook import GROUP_LABEL, Batch, lasting, two_full_nodes


def test_a_gang_is_told_when_known_ends_let_it_start_and_how_sure_that_is() -> None:
    play = two_full_nodes()
    began_s = play.now_s

    play.gang("crew", lasting("w0", 600, cpu=4), lasting("w1", 600, cpu=4))

    one = play.to("crew")
    assert one.start_s == began_s + 200 + GRACE_S
    assert one.is_hard
    assert set(one.needs) == {"n1", "n2"}
    by = play.date(one.start_s + 1)
    assert play.told["w0"].endswith(f"; expected to start by {by} (hard)")
    assert play.told["w1"].endswith(f"; expected to start by {by} (hard)")
    assert not recount(play.parts.cluster)


def test_who_ends_before_the_start_takes_the_room_and_who_does_not_waits() -> None:
    play = two_full_nodes()
    play.gang("crew", lasting("w0", 600, cpu=4), lasting("w1", 600, cpu=4))

    play.show(lasting("short", 100), lasting("long", 500), lasting("endless", None))

    assert set(play.places) == {"a", "b", "short"}
    assert "node(s) had room that is reserved for waiting pods" in play.told["long"]
    assert "node(s) had room that is reserved for waiting pods" in play.told["endless"]


def test_who_is_more_important_is_not_kept_off_and_named_as_the_cause() -> None:
    play = two_full_nodes()
    play.gang("crew", lasting("w0", 600, cpu=4), lasting("w1", 600, cpu=4))
    first_s = play.to("crew").start_s

    play.show(lasting("vip", 1000).priority(10))
    play.pass_time(60)

    assert "vip" in play.places
    one = play.to("crew")
    assert one.start_s > first_s
    assert (
        one.cause == f"pod default/vip came to node {play.places['vip']}, which is more important"
    )
    assert play.told["w0"].endswith(f", not by {play.date(first_s + 1)}: {one.cause}")


def test_a_start_that_comes_back_a_part_of_the_way_still_tells_why_it_is_later() -> None:
    play = Batch(room("n1"))
    play.show(lasting("a", 100, cpu=2))
    play.gang("crew", lasting("w0", 600, cpu=4))
    first_s = play.to("crew").start_s
    play.show(lasting("vip", 200).priority(10))
    play.show(lasting("vip-too", 300).priority(10))
    later = play.to("crew")
    assert later.cause

    play.end("vip-too", after_s=5)
    play.pass_time(40)

    one = play.to("crew")
    assert first_s < one.start_s < later.start_s
    assert (one.first_s, one.cause) == (first_s, later.cause)
    play.end("vip", after_s=5)
    play.pass_time(40)
    assert (play.to("crew").start_s, play.to("crew").cause) == (first_s, "")


def test_it_starts_when_it_was_told_and_others_are_free_to_go_on() -> None:
    play = two_full_nodes()
    play.gang("crew", lasting("w0", 60, cpu=4), lasting("w1", 60, cpu=4))
    start_s = play.to("crew").start_s
    play.show(lasting("long", 500))

    play.end("a", after_s=100)
    play.end("b", after_s=100)

    assert {"w0", "w1"} <= set(play.places)
    assert play.now_s <= start_s
    assert play.promised("scheduling.x-k8s.io:default/crew") is None
    play.end("w0", after_s=50)
    play.pass_time(20)
    assert "long" in play.places


def test_who_has_not_ended_in_time_is_named() -> None:
    play = Batch(room("n1"))
    play.show(lasting("a", 100, cpu=3))
    play.gang("crew", lasting("w0", 60, cpu=4))
    first = play.to("crew")

    play.pass_time(150)

    one = play.to("crew")
    assert one.start_s > first.start_s
    assert one.cause == (
        f"pod default/a does not end by {play.date(first.start_s)}, as was expected"
    )


def test_a_node_that_goes_is_named_and_another_start_is_found() -> None:
    play = Batch(room("n1"), room("n2"))
    play.show(lasting("a", 100, cpu=3), lasting("b", 200, cpu=3))
    play.gang("crew", lasting("w0", 60, cpu=4))
    one = play.to("crew")
    (name,) = one.needs
    first_s = one.start_s

    node = play.parts.cluster.node_of(name)
    play.go(Gone(NODE, node))
    play.pass_time(1)

    now = play.to("crew")
    assert name not in now.needs
    assert now.start_s > first_s
    assert now.cause == f"node {name} went"


def test_without_known_ends_nothing_is_promised_and_nobody_is_kept_off() -> None:
    play = Batch(room("n1"))
    play.show(lasting("a", None, cpu=3))
    play.gang("crew", lasting("w0", 60, cpu=4))

    play.show(lasting("later", None))

    assert len(play.parts.cluster.singleton(Reservations)) == 0
    assert "expected" not in play.told["w0"]
    assert "later" in play.places


def test_a_pod_that_waits_alone_is_promised_a_start_too() -> None:
    play = Batch(room("n1"))
    play.show(lasting("a", 100, cpu=3))

    play.show(lasting("big", 50, cpu=4))
    play.show(lasting("long", 500))

    owner = "pod:uid-big"
    assert play.promised(owner) is not None
    assert "long" not in play.places
    play.end("a", after_s=90)
    assert "big" in play.places
    assert play.promised(owner) is None


def test_a_large_gang_that_waits_is_not_tried_again_for_room_that_its_own_trial_gave_back() -> None:
    play = Batch(room("n1", cpu=60))
    play.show(lasting("a", None))
    play.gang("crew", *(lasting(f"w{at}", None) for at in range(64)))

    play.pass_time(100)

    waiting = play.machine.context.queue.places.get("default/w0")
    assert waiting is not None
    assert waiting.attempts <= 2


def test_a_job_of_ten_thousand_gangs_holds_no_more_promises_than_the_profile_says() -> None:
    play = Batch(room("n1"), args={"reservations": 2})
    play.show(lasting("a", 100, cpu=4))
    for number in range(100):
        play.gang(f"g{number}", lasting(f"g{number}-0", 60, cpu=4))

    ledger, kept = (
        play.parts.cluster.singleton(Reservations),
        play.parts.cluster.singleton(StartTimes),
    )
    assert [one.owner.rpartition("/")[2] for one in ledger.all()] == ["g0", "g1"]
    assert len(kept.waiting) == WAITING_MAX


def test_who_is_more_important_takes_the_last_promise() -> None:
    play = Batch(room("n1"), args={"reservations": 1})
    play.show(lasting("a", 100, cpu=4).priority(9))
    play.gang("low", lasting("l0", 60, cpu=4))
    play.gang("high", lasting("h0", 60, cpu=4).priority(5))

    ledger = play.parts.cluster.singleton(Reservations)
    assert [one.owner.rpartition("/")[2] for one in ledger.all()] == ["high"]
    assert play.parts.cluster.singleton(StartTimes).outcomes["displaced"] == 1


def test_a_promise_ends_with_who_holds_it() -> None:
    play = two_full_nodes()
    play.gang("crew", lasting("w0", 600, cpu=4), lasting("w1", 600, cpu=4))
    play.show(lasting("long", 500))

    play.end("w0")
    play.end("w1")
    play.pass_time(15)

    assert play.promised("scheduling.x-k8s.io:default/crew") is None
    assert "long" in play.places


def test_pods_that_nobody_can_suppose_elsewhere_are_promised_nothing() -> None:
    play = Batch(room("n1"))
    play.show(lasting("a", 100, cpu=3))
    volume = {"name": "scratch", "ephemeral": {"volumeClaimTemplate": {}}}

    play.show(lasting("big", 50, cpu=4).spec(volumes=[volume]))

    assert len(play.parts.cluster.singleton(Reservations)) == 0


def test_rules_beyond_amounts_decide_when_it_can_start() -> None:
    host = "kubernetes.io/hostname"
    play = Batch(room("n1").labels({host: "n1"}), room("n2").labels({host: "n2"}))
    play.show(
        lasting("a", 100, cpu=3).on("n1"),
        lasting("b", 200, cpu=1).labels(app="db").on("n2"),
    )
    term = {
        "labelSelector": {"matchLabels": {"app": "db"}},
        "topologyKey": "kubernetes.io/hostname",
    }
    apart = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    began_s = play.now_s

    play.show(lasting("big", 50, cpu=2).spec(affinity=apart))

    one = play.promised("pod:uid-big")
    assert one is not None
    assert set(one.needs) == {"n1"}
    assert one.start_s >= began_s + 100 + GRACE_S


def test_who_waits_longer_takes_no_promise_from_who_is_as_important() -> None:
    """The one that waits longer is tried again, and could be promised a start by then."""
    play = Batch(room("n1"), args={"reservations": 1})
    play.show(lasting("a", 100, cpu=4))
    term = {"topologyKey": "host", "labelSelector": {"matchLabels": {GROUP_LABEL: "older"}}}
    apart = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    older = [lasting(f"o{n}", 60).selects(zone="x").spec(affinity=apart) for n in range(2)]
    play.gang("older", *older)
    play.pass_time(1)
    play.gang("younger", lasting("y0", 60, cpu=4))
    first_s = play.to("younger").start_s

    play.show(lasting("c", 300, cpu=2).on("n2"), lasting("d", 300, cpu=4).on("n3"))
    rooms = [room(name).labels({"zone": "x", "host": name}) for name in ("n2", "n3")]
    play.go(*(Seen(NODE, one.build()) for one in rooms))
    play.pass_time(60)

    assert any("older" in owner for owner in play.parts.cluster.singleton(StartTimes).waiting)
    assert play.to("younger").start_s == first_s
    assert play.parts.cluster.singleton(StartTimes).outcomes["displaced"] == 0
