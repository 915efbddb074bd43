"""A configuration that changes while pods wait: nothing is lost, nonsense is refused."""

import asyncio
from contextlib import asynccontextmanager
from functools import partial
from textwrap import indent
from types import SimpleNamespace

import pytest
from aiohttp import web

from asched.host.assemble import Parts, build_machine
from asched.host.configuration.file import load_config
from asched.host.configuration.reload import DesiredSetup, Reloader
from asched.host.extenders import Consultants
from asched.host.loops import Scheduler
from asched.host.process import measured_runners
from asched.host.user_plugins.catalogue import discover, plugin_files
from asched.kube.clock import monotonic_s
from asched.kube.session import ConnectionOptions, connect
from asched.kube.tasks import in_thread
from asched.ops.audit.auditor import Auditor
from asched.serve.inspection import Inspection
from asched.serve.telemetry.measured import MeasuredDispatcher
from asched.serve.telemetry.metrics import Metrics
from asched_lab.apiserver.server import ApiServer
from tests.support import HANG_S

HEAD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
ONE = HEAD + "profiles: [{schedulerName: one}]\n"
BOTH = HEAD + "profiles: [{schedulerName: one}, {schedulerName: two}]\n"
TWO = HEAD + "profiles: [{schedulerName: two}]\n"
BLIND = HEAD + (
    "profiles: [{schedulerName: one, plugins: {multiPoint: {disabled: [{name: TaintToleration}]}}}]"
)
WRONG = HEAD + "profiles: [{schedulerName: one, plugins: {filter: {enabled: [{name: Nope}]}}}]\n"


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

    async def write(self, text):
        self.file.write_text(text)
        return await self.reloader.reload()

    def bound(self):
        pods = self.server.list("pods")
        return {p["metadata"]["name"] for p in pods if p["spec"].get("nodeName")}

    def queued(self):
        return {
            key.partition("/")[2] for key in self.scheduler.machine.context.queue.places._queued
        }

    def counted(self, result):
        return self.metrics.own.reloads.of(result).value

    def node_of(self, name):
        for pod in self.server.list("pods"):
            if pod["metadata"]["name"] == name:
                return pod["spec"].get("nodeName", "")
        return ""

    async def until(self, condition):
        async with asyncio.timeout(HANG_S):
            while not condition():  # noqa: ASYNC110 - the store rings no bell
                await asyncio.sleep(0.01)


@asynccontextmanager
async def a_world(tmp_path, text):
    file, plugins = tmp_path / "config.yaml", tmp_path / "plugins"
    file.write_text(text)
    plugins.mkdir(exist_ok=True)
    server = ApiServer()
    await server.start()
    (tmp_path / "kubeconfig").write_text(server.kubeconfig())

    def read():
        catalogue = discover((), str(plugins))
        loaded = load_config(file, known=catalogue.known)
        return DesiredSetup(loaded.configuration, catalogue)

    current = read()
    configuration = current.configuration
    metrics, parts = Metrics(), Parts.fresh()
    consultants = Consultants(configuration.extenders, parts.cluster)
    machine = build_machine(
        configuration,
        parts,
        await measured_runners(current, consultants.chain(configuration.extenders), parts, metrics),
        monotonic_s=monotonic_s,
        observer=metrics.scheduler,
    )
    session = await connect(ConnectionOptions(kubeconfig=str(tmp_path / "kubeconfig")))
    make = partial(
        MeasuredDispatcher,
        metrics=metrics.client,
        may_send=lambda: True,
        extenders=consultants.client,
    )
    scheduler = Scheduler(
        session, machine, make_dispatcher=make, raw_objects=consultants.raw_objects
    )
    auditor = Auditor(scheduler, period_s=0)
    reloader = Reloader(
        scheduler,
        Inspection(
            machine.context,
            configuration,
            lambda: True,
            auditor.findings,
            auditor.findings_now,
        ),
        consultants,
        metrics.own,
        current=current,
        load=partial(in_thread, "reload", read),
        build=lambda wanted, chain: measured_runners(wanted, chain, parts, metrics),
        files=lambda: (str(file), *plugin_files((), str(plugins))),
    )
    task = asyncio.ensure_future(scheduler.run())
    world = World(server, scheduler, reloader, metrics, file)
    world.plugins, world.consultants = plugins, consultants
    try:
        await world.until(lambda: scheduler.is_synced)
        yield world
    finally:
        scheduler.stop()
        await task
        await consultants.close()
        await server.stop()


@asynccontextmanager
async def an_extender(node, *, gate=None):
    """Lets pods onto this node only; with a gate, once that is open. `asked` are the questions."""
    asked = []

    async def answer(request):
        asked.append(await request.json())
        if gate is not None:
            await gate.wait()
        if "Nodes" in asked[-1] and asked[-1]["Nodes"]:
            items = [n for n in asked[-1]["Nodes"]["items"] if n["metadata"]["name"] == node]
            return web.json_response({"Nodes": {"items": items}})
        return web.json_response({"NodeNames": [node]})

    application = web.Application()
    application.router.add_post("/filter", answer)
    runner = web.AppRunner(application)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    port = runner.addresses[0][1]
    try:
        yield SimpleNamespace(url=f"http://127.0.0.1:{port}", asked=asked)
    finally:
        await runner.cleanup()


def with_extender(extender, *, knows_nodes="true", text=ONE):
    fields = f"urlPrefix: {extender.url}, filterVerb: filter, nodeCacheCapable: {knows_nodes}"
    return f"{text}extenders: [{{{fields}}}]\n"


async def test_a_new_profile_serves_pods_that_waited_for_it(tmp_path):
    async with a_world(tmp_path, ONE) as world:
        world.server.create("nodes", a_node("n1"))
        world.server.create("pods", a_pod("mine", "one"))
        world.server.create("pods", a_pod("theirs", "two"))
        await world.until(lambda: world.bound() == {"mine"})

        assert await world.write(BOTH)

        await world.until(lambda: world.bound() == {"mine", "theirs"})
        assert world.counted("applied") == 1


async def test_pods_at_rest_are_tried_by_the_new_rules(tmp_path):
    async with a_world(tmp_path, ONE) as world:
        world.server.create("nodes", a_node("n1", tainted=True))
        for number in range(20):
            world.server.create("pods", a_pod(f"p{number}", "one"))
        everybody = {f"p{number}" for number in range(20)}
        await world.until(
            lambda: len(world.scheduler.machine.context.queue.places.unschedulable) == 20
        )

        assert await world.write(BLIND)

        await world.until(lambda: world.bound() == everybody)


async def test_pods_of_a_profile_that_went_are_left_alone(tmp_path):
    async with a_world(tmp_path, BOTH) as world:
        world.server.create("pods", a_pod("mine", "one"))
        world.server.create("pods", a_pod("theirs", "two"))
        await world.until(lambda: world.queued() == {"mine", "theirs"})

        assert await world.write(TWO)

        assert world.queued() == {"theirs"}
        world.server.create("nodes", a_node("n1"))
        await world.until(lambda: world.bound() == {"theirs"})


@pytest.mark.parametrize(("text", "result"), [(WRONG, "refused"), (ONE + "# more\n", "unchanged")])
async def test_what_cannot_or_need_not_be_taken_over_changes_nothing(tmp_path, text, result):
    async with a_world(tmp_path, ONE) as world:
        runners = world.scheduler.machine.context.runners

        assert not await world.write(text)

        assert world.scheduler.machine.context.runners is runners
        assert world.counted(result) == 1


async def test_what_was_fixed_at_the_start_waits_for_the_next(tmp_path, caplog):
    async with a_world(tmp_path, ONE) as world:
        other = ONE + (
            "leaderElection: {resourceName: other, leaseDuration: 20s}\n"
            "clientConnection: {contentType: application/json}\nenableProfiling: false\n"
        )
        assert not await world.write(other)

        assert world.counted("unchanged") == 1
        (line,) = [r.getMessage() for r in caplog.records if r.levelname == "WARNING"]
        assert line == (
            "a change of leaderElection.leaseDuration, leaderElection.resourceName, "
            "clientConnection.contentType, enableProfiling, enableContentionProfiling "
            "takes effect with the next start"
        )


async def test_pools_with_leases_keep_the_profiles_that_they_name(tmp_path, caplog):
    """They are fixed at the start: a file without such a profile is refused."""
    pool = "pools: [{{name: a, namespaces: [b], profile: {}}}]\npoolLeases: true\n"
    async with a_world(tmp_path, BOTH + pool.format("two")) as world:
        assert not await world.write(ONE + pool.format("one"))
        assert world.counted("refused") == 1
        assert 'pools[0].profile: Invalid value: "two"' in caplog.text
        assert not await world.write(BOTH + pool.format("one"))
        assert "a change of pools takes effect with the next start" in caplog.text


async def test_extenders_whose_certificates_are_not_there_are_refused(tmp_path):
    async with an_extender("n1") as old, a_world(tmp_path, with_extender(old)) as world:
        tls = "tlsConfig: {caFile: /nonexistent/ca}, enableHTTPS: true"
        bad = f"{ONE}extenders: [{{urlPrefix: 'https://x', filterVerb: f, {tls}}}]\n"
        assert not await world.write(bad)

        assert world.counted("refused") == 1
        for name in ("n1", "n2"):
            world.server.create("nodes", a_node(name))
        world.server.create("pods", a_pod("mine", "one"))
        await world.until(lambda: world.node_of("mine") == "n1")


PICKY = """
class Picky:
    def filter(self, pod, node):
        return None if node.name == "NODE" else "node(s) were not picked"
"""
WITH_PICKY = HEAD + (
    "profiles: [{schedulerName: one, plugins: {multiPoint: {enabled: [{name: Picky}]}}}]\n"
)


async def test_plugin_files_are_read_again_and_a_broken_one_changes_nothing(tmp_path, caplog):
    (tmp_path / "plugins").mkdir()
    file = tmp_path / "plugins" / "picky.py"
    file.write_text(PICKY.replace("NODE", "n1"))
    async with a_world(tmp_path, WITH_PICKY) as world:
        for name in ("n1", "n2"):
            world.server.create("nodes", a_node(name))
        world.server.create("pods", a_pod("first", "one"))
        await world.until(lambda: world.node_of("first") == "n1")

        file.write_text(PICKY.replace("NODE", "n2"))
        assert await world.reloader.reload()
        world.server.create("pods", a_pod("second", "one"))
        await world.until(lambda: world.node_of("second") == "n2")

        file.write_text("import no_such_module\n")
        assert not await world.reloader.reload()
        assert world.counted("refused") == 1
        assert f"plugin file {file} cannot be imported: ModuleNotFoundError" in caplog.text
        world.server.create("pods", a_pod("third", "one"))
        await world.until(lambda: world.node_of("third") == "n2")

        file.write_text(PICKY.replace("NODE", "n2"))
        assert not await world.reloader.reload()
        assert world.counted("unchanged") == 1


WAITS = """
import pathlib, time
for _ in range(1_000):
    if pathlib.Path({!r}).exists():
        break
    time.sleep(0.01)
"""


@asynccontextmanager
async def placed_while_reloading(tmp_path, waiting):
    """A pod gets its node by the old plugin while the new one, whose text `waiting` gives of the
    file that it waits for, is read; then the new one is in use.
    """
    (tmp_path / "plugins").mkdir()
    file, sign = tmp_path / "plugins" / "picky.py", tmp_path / "go on"
    file.write_text(PICKY.replace("NODE", "n1"))
    async with a_world(tmp_path, WITH_PICKY) as world:
        for name in ("n1", "n2"):
            world.server.create("nodes", a_node(name))
        file.write_text(waiting(WAITS.format(str(sign)), PICKY.replace("NODE", "n2")))
        reloading = asyncio.ensure_future(world.reloader.reload())
        await asyncio.sleep(0)
        world.server.create("pods", a_pod("meanwhile", "one"))
        await world.until(lambda: world.node_of("meanwhile") == "n1")
        assert not reloading.done()

        sign.touch()
        assert await reloading
        yield world


async def test_pods_are_placed_while_a_plugin_is_made(tmp_path):
    def waiting(wait, picky):
        return picky + indent("def __init__(self):\n" + indent(wait, "    "), "    ")

    async with placed_while_reloading(tmp_path, waiting) as world:
        world.server.create("pods", a_pod("then", "one"))
        await world.until(lambda: world.node_of("then") == "n2")


async def test_a_plugin_that_is_gone_is_refused_while_a_profile_names_it(tmp_path):
    (tmp_path / "plugins").mkdir()
    file = tmp_path / "plugins" / "picky.py"
    file.write_text(PICKY)
    async with a_world(tmp_path, WITH_PICKY) as world:
        file.unlink()
        assert not await world.reloader.reload()
        assert world.counted("refused") == 1
        assert await world.write(ONE)
