"""The inbox hands out a turn's share, in order, and folds sights of one object only."""

import pytest

from asched.core.model.kinds import NODE, POD
from asched.core.model.pod import Pod
from asched.core.state.facts import Bound, Gone, Listed, Seen
from asched.host.inbox import FACTS_FIRST, FACTS_PER_TURN, INTAKE_S, Inbox
from tests.builders import a_node, a_pod


def a_version(name: str, version: int) -> Pod:
    return a_pod(name).metadata(resourceVersion=str(version)).build()


def versions(inbox: Inbox) -> list[tuple[str, str]]:
    """What is handed out, which takes no time."""
    handed_out = inbox.drain()
    inbox.took(0.0)
    return [
        (fact.obj.metadata.name, fact.obj.metadata.resource_version)
        for fact in handed_out
        if isinstance(fact, (Seen, Gone))
    ]


def test_many_facts_come_in_several_shares_and_none_is_lost() -> None:
    woken = []
    inbox = Inbox(lambda: woken.append(len(inbox)))
    count = 2 * FACTS_PER_TURN + 43
    for i in range(count):
        inbox.put(Gone(POD, a_version(f"p{i}", 1)))

    shares = []
    while inbox:
        shares.append(versions(inbox))

    sizes = [len(share) for share in shares]
    assert sizes[:5] == [FACTS_FIRST, 16, 32, FACTS_PER_TURN, count - 120]
    assert [name for share in shares for name, _ in share] == [f"p{i}" for i in range(count)]
    assert woken == [1]
    assert inbox.drained == inbox.arrived == count


def test_a_newer_sight_takes_the_place_of_one_that_waits_and_not_of_one_handed_out() -> None:
    inbox = Inbox(lambda: None)
    for i in range(FACTS_FIRST + 2):
        inbox.put(Seen(POD, a_version(f"p{i}", 1)))
    assert len(versions(inbox)) == FACTS_FIRST

    inbox.put(Seen(POD, a_version(f"p{FACTS_FIRST}", 2)))  # waits
    inbox.put(Seen(POD, a_version("p0", 2)))  # was handed out

    assert versions(inbox) == [
        (f"p{FACTS_FIRST}", "2"),
        (f"p{FACTS_FIRST + 1}", "1"),
        ("p0", "2"),
    ]


def test_nothing_overtakes_a_deletion() -> None:
    inbox = Inbox(lambda: None)
    for fact in (Seen(POD, a_version("p", 1)), Gone(POD, a_version("p", 2))):
        inbox.put(fact)
    inbox.put(Seen(POD, a_version("p", 3)))
    assert [version for _, version in versions(inbox)] == ["1", "2", "3"]


def test_a_share_shrinks_where_facts_take_long_and_grows_again() -> None:
    inbox = Inbox(lambda: None)
    for i in range(10 * FACTS_PER_TURN):
        inbox.put(Seen(POD, a_version(f"p{i}", 1)))

    shares = []
    for each_s in (INTAKE_S, INTAKE_S / 10, 0.0, 0.0, INTAKE_S / 2, 0.0, 0.0):
        shares.append(len(inbox.drain()))
        inbox.took(shares[-1] * each_s)

    assert shares == [FACTS_FIRST, 1, 2, 4, 8, 2, 4]


def test_after_a_silence_it_is_not_known_how_long_facts_take() -> None:
    inbox = Inbox(lambda: None)
    for i in range(100):
        inbox.put(Seen(POD, a_version(f"p{i}", 1)))
    while inbox:
        versions(inbox)
    for i in range(100, 200):
        inbox.put(Seen(POD, a_version(f"p{i}", 1)))

    assert len(versions(inbox)) == FACTS_FIRST


def test_a_deletion_and_a_list_end_the_folding_of_what_they_are_about_alone() -> None:
    inbox = Inbox(lambda: None)
    node = a_node("n").build()
    for fact in (
        Seen(POD, a_version("p", 1)),
        Seen(POD, a_version("q", 1)),
        Seen(NODE, node),
        Gone(POD, a_version("q", 2)),
        Seen(POD, a_version("p", 2)),  # folded: only the other pod went
        Listed(POD, (a_version("p", 3),)),
        Seen(POD, a_version("p", 4)),  # not folded: it would come before the list
        Seen(NODE, node),  # folded: only pods were listed
    ):
        inbox.put(fact)
    handed_out = inbox.drain()
    assert [(type(fact), getattr(fact, "kind", None)) for fact in handed_out] == [
        (Seen, POD),
        (Seen, POD),
        (Seen, NODE),
        (Gone, POD),
        (Listed, POD),
        (Seen, POD),
    ]
    seen = [fact.obj for fact in handed_out if isinstance(fact, Seen) and fact.kind is POD]
    assert [pod.metadata.resource_version for pod in seen] == ["2", "1", "4"]


def test_it_is_known_of_which_kinds_something_waits() -> None:
    inbox = Inbox(lambda: None)
    inbox.put(Bound(1))
    assert not inbox.has_of(POD)
    inbox.put(Seen(POD, a_version("p", 1)))
    assert (inbox.has_of(POD), inbox.has_of(NODE)) == (True, False)
    inbox.drain()
    assert not inbox.has_of(POD)


@pytest.mark.parametrize(("each_s", "then"), [(INTAKE_S / 8, 16), (INTAKE_S / 4, 4)])
def test_a_share_grows_up_to_the_time_it_may_take_and_shrinks_beyond(
    each_s: float, then: int
) -> None:
    inbox = Inbox(lambda: None)
    for i in range(100):
        inbox.put(Seen(POD, a_version(f"p{i}", 1)))
    inbox.took(len(inbox.drain()) * each_s)
    assert len(inbox.drain()) == then


def test_a_turn_that_was_handed_nothing_says_nothing_of_how_long_facts_take() -> None:
    inbox = Inbox(lambda: None)
    inbox.drain()
    inbox.took(100 * INTAKE_S)
    for i in range(100):
        inbox.put(Seen(POD, a_version(f"p{i}", 1)))
    assert len(inbox.drain()) == FACTS_FIRST
