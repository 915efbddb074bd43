"""The inbox hands out a turn's share, in order, and folds events of one object only."""

from asched.core.cluster.facts import Gone, Seen
from asched.core.model.kinds import POD
from asched.core.model.pod import Pod
from asched.kube.inbox import FACTS_FIRST, FACTS_PER_TURN, Inbox
from tests.builders import a_pod


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
