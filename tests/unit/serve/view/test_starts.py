"""What is told of promised starts: to their owners, and to those whom they keep off."""

from asched.cli.explain import group_lines, start_lines
from asched.serve.view.gangs import one_gang
from asched.serve.view.promises import start_of, start_of_pod, starts_of_others
from tests.playbook import lasting, two_full_nodes

OWNER = "scheduling.x-k8s.io:default/crew"


def test_a_gang_and_its_pods_are_told_when_they_start_where_and_how_sure_that_is() -> None:
    play = two_full_nodes()
    play.gang("crew", lasting("w0", 600, cpu=4), lasting("w1", 600, cpu=4))
    context, one = play.machine.context, play.to("crew")

    told = start_of(context, OWNER)

    by, nodes = play.date(one.start_s + 1), list(one.needs)
    assert sorted(nodes) == ["n1", "n2"], "two that are alike"
    assert told == {
        "at": by,
        "certainty": "hard",
        "first": by,
        "cause": "",
        "count": 2,
        "nodes": nodes,
    }
    pod = play.parts.cluster.pods_seen["default/w0"]
    assert start_of_pod(context, pod) == told
    gang = one_gang(context, "default/crew")
    assert gang is not None
    assert f"  starts by {by} (hard) on {', '.join(nodes)}" in list(group_lines(gang))


def test_who_is_kept_off_is_told_for_whom() -> None:
    play = two_full_nodes()
    play.gang("crew", lasting("w0", 600, cpu=4), lasting("w1", 600, cpu=4))
    play.show(lasting("long", 500))
    context, seen = play.machine.context, play.parts.cluster.pods_seen

    told = starts_of_others(context, seen["default/long"])

    by = play.date(play.to("crew").start_s + 1)
    assert told[0] == {"owner": "podgroup default/crew", "at": by, "nodes": 2}


def test_a_start_that_was_moved_back_says_what_it_was_and_why() -> None:
    start = {
        "at": "2026-01-01T00:10:00Z",
        "certainty": "soft",
        "first": "2026-01-01T00:00:00Z",
        "cause": "node n1 went",
        "count": 7,
        "nodes": [f"n{at}" for at in range(7)],
    }

    assert list(start_lines(start)) == [
        "starts by 2026-01-01T00:10:00Z (soft) on n0, n1, n2, n3, n4, ...",
        "  not by 2026-01-01T00:00:00Z, as promised before: node n1 went",
    ]


def test_nothing_is_told_where_nothing_is_promised() -> None:
    play = two_full_nodes()

    assert start_of(play.machine.context, OWNER) is None
