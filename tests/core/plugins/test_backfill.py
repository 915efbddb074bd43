"""Backfill as a filter: what it asks of the ledger, and when its answer is another."""

from asched.core.model.kinds import JOB, NODE
from asched.core.plugins.backfill import RESERVED, Backfill
from asched.core.state.changes import ASSIGNED_POD_DELETE, NODE_ADD, RESERVATION_MOVED
from asched.core.state.view import NodeView
from tests.core.state.scenes import Scene, endless, lasting


def test_rows_that_are_promised_are_refused_for_good() -> None:
    scene = Scene()
    plugin = Backfill(None, scene.cluster)
    scene.reserve()
    info = scene.info(endless("a"))
    assert plugin.filter(info, NodeView(scene.cluster.nodes), None).tolist() == [1, 0]
    assert plugin.explain(info, 1) == RESERVED.status
    assert not RESERVED.resolvable, "evicting pods cannot help"


def test_only_who_is_bound_is_asked_about_again() -> None:
    scene = Scene()
    plugin = Backfill(None, scene.cluster)
    bound, free = scene.info(endless("a")), scene.info(lasting("b", 100))
    assert plugin.stamp(bound, None) == plugin.stamp(free, None)
    scene.reserve()
    before = plugin.stamp(bound, None), plugin.stamp(free, None)
    assert before[0] != before[1]
    scene.reserve("another")
    assert plugin.stamp(bound, None) != before[0]
    assert plugin.stamp(free, None) == before[1]


def test_pods_that_end_at_other_times_are_no_equals() -> None:
    scene = Scene()
    Backfill(None, scene.cluster)
    assert scene.info(endless("a")).cls is not scene.info(lasting("b", 100)).cls


def test_what_may_help_a_pod_that_it_refused() -> None:
    triggers = [one.trigger for one in Backfill(None, Scene().cluster).registrations()]
    for change in (RESERVATION_MOVED, ASSIGNED_POD_DELETE, NODE_ADD):
        assert any(trigger.matches(change) for trigger in triggers)
    assert {trigger.resource for trigger in triggers} >= {NODE.resource, JOB.resource}
