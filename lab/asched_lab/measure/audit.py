"""The load of an audit on a real control plane: processor time and bytes per page of metadata.

    KUBEBUILDER_ASSETS=FOLDER python -m asched_lab.measure.audit [--pods N]

Creates pods that no scheduler places, reads them page by page as `host/audit` does, and prints what
a page of 500 cost the API server, etcd and this process; their idle load is measured before and
subtracted.
"""

# ruff: noqa: T201 - a command prints

import argparse
import asyncio
import json
import sys
from time import process_time, time

from asched.core.model.kinds import POD
from asched.kube.session import ConnectionOptions, Session, connect
from asched.kube.watch import Reflector
from asched.ops.audit.heads import Heads
from asched_lab.bench.report import commit, machine_line
from asched_lab.measure.real import RealServer, assets

ROUNDS = 10
IDLE_S = 10.0
CREATORS = 16
POD_MANIFEST = {
    "metadata": {"generateName": "p-", "labels": {f"label-{n}": "x" * 20 for n in range(8)}},
    "spec": {
        "schedulerName": "other",
        "containers": [
            {
                "name": f"c{number}",
                "image": "registry.example.com/team/app:v1.2.3",
                "env": [{"name": f"E{n}", "value": "v" * 30} for n in range(20)],
                "resources": {"requests": {"cpu": "1", "memory": "1Gi"}},
            }
            for number in range(2)
        ],
    },
}


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m asched_lab.measure.audit", description=__doc__)
    parser.add_argument("--pods", type=int, default=2_000, metavar="N")
    wanted = parser.parse_args(argv).pods
    folder = assets()
    if folder is None:
        print("KUBEBUILDER_ASSETS does not name a folder with etcd and kube-apiserver")
        return 2
    print(machine_line(), f"commit {commit() or 'unknown'}", sep="; ", flush=True)
    asyncio.run(_measure(RealServer(folder), wanted))
    return 0


async def _measure(server: RealServer, wanted: int) -> None:
    async with server:
        session = await connect(ConnectionOptions(kubeconfig=server.kubeconfig))
        await _create(session, wanted)
        before, since_s = _used(server), time()
        await asyncio.sleep(IDLE_S)
        idle = {name: (s - before[name]) / (time() - since_s) for name, s in _used(server).items()}
        heads = Heads(Reflector(POD, session.general, lambda _: None))
        before, since_s, own_s, pages, objects = _used(server), time(), process_time(), 0, 0
        for _ in range(ROUNDS):
            async for page, _version in heads.pages(0.0):
                pages, objects = pages + 1, objects + len(page)
        took_s, own_s = time() - since_s, process_time() - own_s
        after = _used(server)
        await session.close()
    print(f"{pages} pages, {objects} objects, {took_s / pages * 1000:.0f} ms a page by the clock")
    for name, used_s in after.items():
        cost_s = used_s - before[name] - idle[name] * took_s
        print(f"{name}: {cost_s / pages * 1000:.1f} ms of processor time a page")
    print(f"here: {own_s / pages * 1000:.1f} ms")


async def _create(session: Session, wanted: int) -> None:
    body, turns = json.dumps(POD_MANIFEST).encode(), asyncio.Semaphore(CREATORS)

    async def create() -> None:
        async with turns:
            path = "/api/v1/namespaces/default/pods"
            reply = await session.general.request("POST", path, body)
            assert reply.status == 201, reply

    await asyncio.gather(*(create() for _ in range(wanted)))


def _used(server: RealServer) -> dict[str, float]:
    return {process.name: process.usage()["cpu_s"] for process in server._processes}


if __name__ == "__main__":
    sys.exit(main())
