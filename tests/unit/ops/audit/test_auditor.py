"""What is planted in the columns, in the queue, or kept back by a watch, an audit finds and heals:
production's own, in a simulated world.
"""

import logging
from collections.abc import Callable, Iterator

import msgspec
import pytest

from asched.core.cluster.facts import Gone, Seen
from asched.core.model.kinds import NODE, POD
from asched.ops.audit.auditor import Auditor
from asched.ops.audit.findings import Difference, What
from asched_lab.apiserver.resources import PODS
from asched_lab.sim.faults import SwallowedEvents
from asched_lab.sim.judgement import audit, lost
from asched_lab.sim.process import Process
from asched_lab.sim.steps import AddNodes, pod_manifest, remove
from asched_lab.sim.world import World
from tests.builders import a_node, a_pod

#: Streams of idle kinds are renewed within twenty seconds, looks are five apart.
ENOUGH_S = 60.0


@pytest.fixture
def world() -> Iterator[World]:
    """Two nodes, a pod on one of them, and one that fits nowhere."""
    with World(0) as made:
        AddNodes(name="node-1", cpu=(4,), pods=(10,)).do(made)
        AddNodes(name="node-2", cpu=(4,), pods=(10,)).do(made)
        made.server.create("pods", pod_manifest("web", "1"))
        made.server.create("pods", pod_manifest("huge", "64"))
        made.run_for(10.0)
        assert audit(made) == []
        yield made


def audited(world: World) -> list[Difference]:
    """What an audit of everything finds; the world is sound afterwards."""
    for process in world.processes:
        _begin(process)
    world.run_for(ENOUGH_S)
    assert audit(world) == []
    assert lost(world) == []
    return [difference for _, difference in world.acting.auditor.report.differences]


def _begin(process: Process) -> None:
    auditor, tasks = process.auditor, process.scheduler.tasks
    process.loop.call_soon(lambda: tasks.spawn("asked", _ask(auditor)))


async def _ask(auditor: Auditor) -> None:
    await auditor.now()


def unheard(world: World, change: Callable[[], object]) -> None:
    """A change of which no stream tells anybody, though each goes on with what comes next."""
    world.active_faults.begin(SwallowedEvents(rate=1.0))
    change()
    world.run_for(1.0)
    world.active_faults.end(SwallowedEvents)
    world.server.create("pods", pod_manifest("next", "100m"))
    AddNodes(name="node-9", cpu=(1,), pods=(10,)).do(world)
    world.run_for(30.0)
    assert audit(world) != []


def test_where_nothing_is_wrong_nothing_is_found(world: World) -> None:
    assert audited(world) == []

    parts = world.acting.auditor.report.ended
    assert parts["pods"].compared == 2
    assert parts["nodes"].compared == 2
    assert parts["columns"].compared == 2
    assert not any(ended.error or ended.undecided for ended in parts.values())


def test_a_pod_whose_appearance_was_missed_is_bound(world: World) -> None:
    unheard(world, lambda: world.server.create("pods", pod_manifest("late", "1")))

    (found,) = audited(world)

    assert (found.resource, found.key, found.what) == ("pods", "default/late", What.ADDITION)
    assert world.server.get("pods", "default", "late")["spec"]["nodeName"]
    told = [e for e in world.server.list("events") if e["reason"] == "FoundByAudit"]
    assert [event["involvedObject"]["name"] for event in told] == ["late"]


def test_a_pod_whose_end_was_missed_gives_its_room_back(world: World) -> None:
    unheard(world, lambda: remove(world, "pods", "web", "default"))

    (found,) = audited(world)

    assert (found.key, found.what) == ("default/web", What.DELETION)


def test_a_change_that_was_missed_is_made_up_for(world: World) -> None:
    def relabel() -> None:
        pod = world.server.get("pods", "default", "web")
        metadata = {**pod["metadata"], "labels": {"app": "other"}}
        world.server.ctx.put(PODS, {**pod, "metadata": metadata})

    unheard(world, relabel)

    (found,) = audited(world)

    assert (found.key, found.what) == ("default/web", What.CHANGE)
    assert world.parts.cluster.pods_seen["default/web"].labels == {"app": "other"}


def test_a_node_that_nobody_has_goes(world: World) -> None:
    world.parts.cluster.apply(Seen(NODE, a_node("phantom").allocatable(cpu="99").build()))

    (found,) = audited(world)

    assert (found.resource, found.key, found.what) == ("nodes", "phantom", What.DELETION)


def test_a_node_made_anew_unheard_is_taken_for_the_new_one(world: World) -> None:
    def again() -> None:
        remove(world, "nodes", "node-2")
        AddNodes(name="node-2", cpu=(2,), pods=(5,)).do(world)

    unheard(world, again)

    (found,) = audited(world)

    assert (found.key, found.what) == ("node-2", What.CHANGE)


def test_a_pod_in_no_queue_stands_in_one_again(world: World) -> None:
    queue = world.machine.context.queue
    queue.delete(queue.places.get("default/huge").pod)  # type: ignore[union-attr]
    AddNodes(name="node-3", cpu=(128,), pods=(10,)).do(world)
    world.run_for(10.0)
    assert not world.server.get("pods", "default", "huge")["spec"].get("nodeName")

    (found,) = audited(world)

    assert (found.key, found.what) == ("default/huge", What.QUEUE)
    assert world.server.get("pods", "default", "huge")["spec"]["nodeName"] == "node-3"


def test_a_queued_pod_that_nobody_made_leaves_the_queue(world: World) -> None:
    stranger = a_pod("ghost").requests(cpu="64").build()
    world.machine.context.queue.add(stranger, world.clock.now_s())

    (found,) = audited(world)

    assert (found.key, found.what) == ("default/ghost", What.QUEUE)


def test_a_queued_pod_of_another_version_is_queued_as_it_is(world: World) -> None:
    queued = world.machine.context.queue.places.get("default/huge")
    assert queued is not None
    old = msgspec.structs.replace(queued.pod.metadata, resource_version="1")
    queued.pod = msgspec.structs.replace(queued.pod, metadata=old)

    (found,) = audited(world)

    assert (found.key, found.what) == ("default/huge", What.QUEUE)


def test_an_amount_that_drifted_is_counted_anew(world: World) -> None:
    nodes = world.parts.cluster.nodes
    nodes.columns.write["requested"][0, nodes.row_of["node-1"]] += 1

    (found,) = audited(world)

    assert (found.resource, found.key, found.what) == ("nodes", "node-1", What.COUNT)


def test_a_pod_that_is_counted_and_unknown_is_counted_no_more(world: World) -> None:
    cluster = world.parts.cluster
    cluster.apply(Seen(POD, a_pod("ghost").requests(cpu="1").on("node-1").build()))
    del cluster.pods_seen["default/ghost"]

    (found,) = audited(world)

    assert (found.key, found.what) == ("default/ghost", What.COUNT)


def test_what_moves_meanwhile_is_no_difference(world: World) -> None:
    for number in range(200):
        wait_s = number * 0.2
        world.clock.after(wait_s, lambda n=number: _churn(world, n))  # type: ignore[misc]

    assert audited(world) == []


def _churn(world: World, number: int) -> None:
    world.server.create("pods", pod_manifest(f"pod-{number}", "100m"))
    if number >= 20:
        remove(world, "pods", f"pod-{number - 20}", "default")


def test_a_server_that_fails_is_asked_again_in_the_next_round(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    world.parts.cluster.apply(Gone(NODE, world.parts.cluster.node_of("node-1")))
    logging.getLogger("asched").propagate = True
    world.acting.cut_off(80.0)
    for process in world.processes:
        _begin(process)
    world.run_for(75.0)
    assert world.acting.auditor.report.ended["nodes"].error
    world.run_for(60.0)

    (found,) = audited(world)

    assert found.what is What.ADDITION
