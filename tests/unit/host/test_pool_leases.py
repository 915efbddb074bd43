"""A process that shares the pools, with its campaigns in a thread."""

import asyncio

from asched.core.config.layout import layout_of, lease_of, leases_of
from asched.core.leader.election import LeaseTimes, Term
from asched.host.assemble import Parts, build_machine, build_runners
from asched.host.configuration.file import load_config
from asched.host.election import Stand
from asched.host.loops import Scheduler
from asched.host.pool_leases import PoolThread
from asched.kube.clock import monotonic_s
from asched.kube.dispatch import Dispatcher
from asched.kube.session import ConnectionOptions, connect
from asched.serve.telemetry.metrics import Metrics
from asched_lab.apiserver.server import ApiServer
from tests.support import HANG_S
from tests.unit.host.elected import CONFIGURATION, a_node, a_pod, bound, until

TIMES = "{leaseDuration: 4s, renewDeadline: 3s, retryPeriod: 100ms}"
SHARED = f"""{CONFIGURATION}
leaderElection: {TIMES}
poolLeases: true
pools: [{{name: batch, namespaces: [jobs], lease: {{leaseDuration: 6s}}}}]
"""


async def test_it_takes_the_pools_binds_and_hands_them_on(tmp_path):
    server = ApiServer()
    await server.start()
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(server.kubeconfig())
    configuration, parts = load_config(text=SHARED).configuration, Parts.fresh()
    runners = build_runners(configuration, parts)
    machine = build_machine(configuration, parts, runners, monotonic_s=monotonic_s)
    options = ConnectionOptions(kubeconfig=str(kubeconfig))
    session = await connect(options)
    times = LeaseTimes.of("me", lease_of(configuration))
    stand = Stand(times, "kube-system", "asched", ("asched",))
    leadership = PoolThread(
        session,
        stand,
        Metrics().leader,
        options=options,
        pools=leases_of(configuration),
        layout=layout_of(configuration),
    )

    def dispatcher(session, put):
        return Dispatcher(session, put, fence_s=lambda effect: scheduler.fence_s(effect))  # noqa: PLW0108 - not yet there

    scheduler = Scheduler(
        session,
        machine,
        make_dispatcher=dispatcher,
        kinds=machine.context.kinds,
        leadership=leadership,
    )
    server.create("nodes", a_node("n"))
    server.create("pods", a_pod("p"))
    runs = asyncio.ensure_future(scheduler.run())
    try:
        await until(lambda: bound(server) == {"p"})
        lasts_s = {
            lease["metadata"]["name"]: lease["spec"]["leaseDurationSeconds"]
            for lease in server.list("leases")
        }
        assert lasts_s["asched-pool-batch"] == 6
        assert lasts_s["asched-pool-default"] == 4
        scheduler.stop()
        await asyncio.wait_for(runs, HANG_S)
        leases = {lease["metadata"]["name"]: lease for lease in server.list("leases")}
        assert leases.keys() == {"asched", "asched-pool-batch", "asched-pool-default"}
        for pool in ("batch", "default"):
            lease = leases[f"asched-pool-{pool}"]
            assert not lease["spec"].get("holderIdentity")
            assert Term.of(lease).is_handed_on
    finally:
        runs.cancel()
        await asyncio.gather(runs, return_exceptions=True)
        await server.stop()
