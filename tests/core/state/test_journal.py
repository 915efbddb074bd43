"""What was before each change, by position: enough to go back, and no more than is bounded."""

from asched.core.model.kinds import NODE, POD, SERVICE
from asched.core.state.journal import Journal
from tests.builders import a_cluster, a_node, a_pod, pending

OLD = a_node("n1").build()


def keys(journal: Journal, position: int = 0) -> list[str]:
    return [step.key for step in journal.since(position)]


def test_steps_are_told_newest_first_from_a_position_on() -> None:
    journal = Journal()
    for name in ("a", "b", "c"):
        journal.note(SERVICE, name, None)
    assert journal.end == 3
    assert keys(journal) == ["c", "b", "a"]
    assert keys(journal, 1) == ["c", "b"]
    assert keys(journal, 3) == []


def test_a_step_says_what_was_before_and_where_a_pod_counted() -> None:
    journal, cluster = Journal(), a_cluster(a_node("n1"))
    info = pending(cluster, a_pod("web"))
    cluster.assume(info, "n1")
    journal.node_seen(OLD, a_node("n1").labels(a="b").build())
    journal.pod_comes("uid-web")
    journal.pod_moves(info, info.pod)
    moved, came, seen = journal.since(0)
    assert (moved.kind, moved.key, moved.before, moved.node) == (POD, "uid-web", info.pod, "n1")
    assert (came.kind, came.key, came.before, came.node) == (POD, "uid-web", None, "")
    assert (seen.kind, seen.key, seen.before) == (NODE, "n1", OLD)


def test_a_heartbeat_is_no_step() -> None:
    journal = Journal()
    journal.node_seen(OLD, a_node("n1").metadata(resourceVersion="9").build())
    assert journal.end == 0
    journal.node_seen(None, OLD)
    journal.node_seen(OLD, a_node("n1").cordoned().build())
    journal.node_seen(OLD, a_node("n1").allocatable(cpu="1").build())
    journal.node_seen(OLD, a_node("n1").labels(a="b").build())
    assert [step.before for step in journal.since(0)] == [OLD, OLD, OLD, None]


def test_only_so_many_steps_are_remembered() -> None:
    journal = Journal(steps_max=3)
    for name in ("a", "b"):
        journal.note(SERVICE, name, None)
    for uid in ("c", "d"):
        journal.pod_comes(uid)
    assert journal.end == 4
    assert keys(journal) == ["d", "c", "b"]
    assert not journal.remembers(0)
    assert journal.remembers(1)
    journal.note(SERVICE, "e", None)
    assert keys(journal) == ["e", "d", "c"]


def test_what_was_undone_is_forgotten() -> None:
    journal = Journal()
    for name in ("a", "b", "c"):
        journal.note(SERVICE, name, None)
    journal.back_to(1)
    assert (journal.end, keys(journal)) == (1, ["a"])
    journal.back_to(1)
    assert keys(journal) == ["a"]
