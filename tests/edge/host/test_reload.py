"""A configuration that changes while pods wait: nothing is lost, nonsense is refused."""

import asyncio
from contextlib import asynccontextmanager
from functools import partial

import pytest

from asched.edge.client.session import ConnectionOptions, connect
from asched.edge.host.assemble import Parts, build_machine, build_runners
from asched.edge.host.clock import counter_s
from asched.edge.host.config_file import load_config
from asched.edge.host.inspection import Inspection
from asched.edge.host.loops import Scheduler
from asched.edge.host.measured import MeasuredDispatcher
from asched.edge.host.reload import Reloader
from asched.edge.telemetry.metrics import Metrics
from asched.lab.apiserver.server import ApiServer

HEAD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
ONE = HEAD + "profiles: [{schedulerName: one}]\n"
BOTH = HEAD + "profiles: [{schedulerName: one}, {schedulerName: two}]\n"
TWO = HEAD + "profiles: [{schedulerName: two}]\n"
BLIND = HEAD + (
    "profiles: [{schedulerName: one, plugins: {multiPoint: {disabled: [{name: TaintToleration}]}}}]"
)
WRONG = HEAD + "profiles: [{schedulerName: one, plugins: {filter: {enabled: [{name: Nope}]}}}]\n"
OTHER_LEASE = HEAD + "leaderElection: {resourceName: other}\nprofiles: [{schedulerName: one}]\n"


def a_node(name, *, tainted=False):
    resources = {"cpu": "4", "memory": "4Gi", "pods": "50"}
    taints = [{"key": "k", "value": "v", "effect": "NoSchedule"}] if tainted else []
    return {
        "metadata": {"name": name},
        "spec": {"taints": taints},
        "status": {"allocatable": resources, "capacity": resources},
    }


def a_pod(name, scheduler):
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "1m"}}}
    return {
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"schedulerName": scheduler, "containers": [container]},
    }


class World:
    def __init__(self, server, scheduler, reloader, metrics, file):
        self.server = server
        self.scheduler = scheduler
        self.reloader = reloader
        self.metrics = metrics
        self.file = file

    def write(self, text):
        self.file.write_text(text)
        return self.reloader.reload()

    def bound(self):
        pods = self.server.list("pods")
        return {p["metadata"]["name"] for p in pods if p["spec"].get("nodeName")}

    def queued(self):
        return {key.partition("/")[2] for key in self.scheduler.machine.desk.queue.places._queued}

    def counted(self, result):
        return self.metrics.own._reloads.of(result).value

    async def until(self, condition):
        async with asyncio.timeout(10):
            while not condition():  # noqa: ASYNC110 - the store rings no bell
                await asyncio.sleep(0.01)


@asynccontextmanager
async def a_world(tmp_path, text):
    file = tmp_path / "config.yaml"
    file.write_text(text)
    server = ApiServer()
    await server.start()
    (tmp_path / "kubeconfig").write_text(server.kubeconfig())
    configuration = load_config(file).configuration
    metrics, parts = Metrics(), Parts.fresh()
    machine = build_machine(
        configuration,
        parts,
        build_runners(configuration, parts),
        counter_s=counter_s,
        observer=metrics.scheduler,
    )
    session = await connect(ConnectionOptions(kubeconfig=str(tmp_path / "kubeconfig")))
    make = partial(MeasuredDispatcher, metrics=metrics.client, may_send=lambda: True)
    scheduler = Scheduler(session, machine, make_dispatcher=make)
    reloader = Reloader(
        scheduler,
        Inspection(scheduler, configuration, lambda: True),
        metrics.own,
        load=lambda: load_config(file),
        build=lambda wanted: build_runners(wanted, parts),
        files=(str(file),),
    )
    task = asyncio.ensure_future(scheduler.run())
    world = World(server, scheduler, reloader, metrics, file)
    try:
        await world.until(lambda: scheduler.is_synced)
        yield world
    finally:
        scheduler.stop()
        await task
        await server.stop()


async def test_a_new_profile_serves_pods_that_waited_for_it(tmp_path):
    async with a_world(tmp_path, ONE) as world:
        world.server.create("nodes", a_node("n1"))
        world.server.create("pods", a_pod("mine", "one"))
        world.server.create("pods", a_pod("theirs", "two"))
        await world.until(lambda: world.bound() == {"mine"})

        assert world.write(BOTH)

        await world.until(lambda: world.bound() == {"mine", "theirs"})
        assert world.counted("applied") == 1


async def test_pods_at_rest_are_tried_by_the_new_rules(tmp_path):
    async with a_world(tmp_path, ONE) as world:
        world.server.create("nodes", a_node("n1", tainted=True))
        for number in range(20):
            world.server.create("pods", a_pod(f"p{number}", "one"))
        everybody = {f"p{number}" for number in range(20)}
        await world.until(lambda: len(world.scheduler.machine.desk.queue.places.resting) == 20)

        assert world.write(BLIND)

        await world.until(lambda: world.bound() == everybody)


async def test_pods_of_a_profile_that_went_are_left_alone(tmp_path):
    async with a_world(tmp_path, BOTH) as world:
        world.server.create("pods", a_pod("mine", "one"))
        world.server.create("pods", a_pod("theirs", "two"))
        await world.until(lambda: world.queued() == {"mine", "theirs"})

        assert world.write(TWO)

        assert world.queued() == {"theirs"}
        world.server.create("nodes", a_node("n1"))
        await world.until(lambda: world.bound() == {"theirs"})


@pytest.mark.parametrize(("text", "result"), [(WRONG, "refused"), (ONE + "# more\n", "unchanged")])
async def test_what_cannot_or_need_not_be_taken_over_changes_nothing(tmp_path, text, result):
    async with a_world(tmp_path, ONE) as world:
        runners = world.scheduler.machine.desk.runners

        assert not world.write(text)

        assert world.scheduler.machine.desk.runners is runners
        assert world.counted(result) == 1


async def test_a_file_that_vanished_is_refused(tmp_path):
    async with a_world(tmp_path, ONE) as world:
        world.file.unlink()

        assert not world.reloader.reload()

        assert world.counted("refused") == 1


async def test_what_was_fixed_at_the_start_waits_for_the_next(tmp_path):
    async with a_world(tmp_path, ONE) as world:
        assert not world.write(OTHER_LEASE)

        assert world.counted("unchanged") == 1
