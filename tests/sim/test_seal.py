"""A binding of a dead leader that arrives after its successor has filled the node: it is refused,
whatever happened to those between them.
"""

import random
from collections.abc import Callable

import pytest

from asched.core.framework.effects import LANDS_WITHIN_S, Bind
from asched.kube.transport import WireRequest
from asched.kube.writes import bind as bind_request
from asched_lab.sim.faults import Conflicts, ServerErrors
from asched_lab.sim.process import LEASE_S, Process
from asched_lab.sim.steps import AddNodes, AddPods
from asched_lab.sim.wire import send
from asched_lab.sim.world import World

LEASE = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/asched"
STATUS = "/status"


def until(world: World, condition: Callable[[], object], within_s: float = 60.0) -> None:
    end_s = world.clock.now_s() + within_s
    while not condition():
        world.run_for(0.01)
        assert world.clock.now_s() < end_s, list(world.trace)[-10:]


def sent(world: World) -> Bind:
    """The binding of the pod `late`, by a leader that died before it arrived."""
    bindings: list[Bind] = []

    def die() -> None:
        world.acting.wire.close()
        world.restart()

    def see(_: Process, bind: Bind) -> None:
        bindings.append(bind)
        world.on_sent.remove(see)
        world.clock.after(0.0, die)

    world.on_sent.append(see)
    until(world, lambda: bindings)
    return bindings[0]


def is_refused(world: World, late: Bind) -> bool:
    """Whether the server refuses it once it is decided that `first` gets the only place."""
    statuses: list[int] = []

    def arrive(_: Process, bind: Bind) -> None:
        assert bind.pod.name == "first"
        statuses.append(send(world.server.ctx, bind_request(late)).status)

    world.on_sent.append(arrive)
    until(world, lambda: statuses, LANDS_WITHIN_S + 30.0)
    return statuses == [409]


def on_node(world: World, name: str) -> str:
    pod = world.server.get("pods", "default", name)
    assert pod is not None
    node: str = pod["spec"].get("nodeName", "")
    return node


def led_world(seed: int = 1) -> World:
    world = World(seed, replicas=3)
    world.run_for(15.0)
    return world


def leads(world: World, since: Process) -> bool:
    return world.acting is not since and world.acting in world.processes


@pytest.mark.parametrize("seed", range(5))
def test_a_leader_that_stops_before_its_seal_leaves_that_to_the_next(seed: int) -> None:
    """Its own writes are all answered, for there are none."""
    with led_world(seed) as world:
        AddNodes(cpu=(1,), pods=(9,)).do(world)
        AddPods(name="late", cpu=("1",)).do(world)
        bind = sent(world)
        first = world.acting
        AddPods(name="first", cpu=("1",), priority=10).do(world)
        until(world, lambda: leads(world, first))
        second, decided = world.acting, list[Process]()
        world.on_sent.append(lambda process, _: decided.append(process))
        world.run_for(random.Random(seed).uniform(0.0, 0.02))
        second.scheduler.stop()

        assert is_refused(world, bind)

        assert second not in decided
        assert not world.ledger.broken


def test_a_lease_that_was_deleted_begins_anew_and_the_touch_is_a_new_one() -> None:
    with World(1, replicas=2) as world:
        AddPods(name="late", cpu=("1",)).do(world)
        world.run_for(15.0)  # the first leader has touched it
        AddNodes(cpu=(1,), pods=(9,)).do(world)
        bind = sent(world)
        send(world.server.ctx, WireRequest("DELETE", LEASE, None))
        AddPods(name="first", cpu=("1",), priority=10).do(world)

        assert is_refused(world, bind)


@pytest.mark.parametrize(
    "fault",
    [
        ServerErrors(rate=1.0, applied_share=0.0, only=STATUS),
        Conflicts(rate=1.0, only=STATUS),
    ],
)
def test_a_pod_that_cannot_be_touched_delays_the_others_no_longer_than_a_request_lasts(
    fault: ServerErrors | Conflicts,
) -> None:
    """Whether the server says so, or its answer has no effect."""
    with led_world() as world:
        AddNodes(cpu=(1,), pods=(9,)).do(world)
        AddPods(name="late", cpu=("1",)).do(world)
        sent(world)
        died_s = world.clock.now_s()
        world.active_faults.begin(fault)
        AddPods(name="first", cpu=("1",), priority=10).do(world)

        until(world, lambda: on_node(world, "first"), LANDS_WITHIN_S + 30.0)

        assert world.clock.now_s() - died_s > LANDS_WITHIN_S


def test_the_seal_costs_no_pause() -> None:
    with led_world() as world:
        AddNodes(cpu=(1,), pods=(9,)).do(world)
        AddPods(name="late", cpu=("1",)).do(world)
        sent(world)
        died_s = world.clock.now_s()
        until(world, lambda: on_node(world, "late"))

        assert world.clock.now_s() - died_s < LEASE_S + 3.0
