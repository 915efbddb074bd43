"""asched asks asched: the client with whole nodes, the server standing alone, over HTTPS."""

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

from asched_lab.apiserver.server import ApiServer
from tests.builders import a_node, a_pod
from tests.e2e.extenders import PLUGIN, running
from tests.support import HANG_S
from tests.unit.kube.conftest import Certificates


def document(kubeconfig: Path, port: int, made: Certificates) -> dict[str, Any]:
    certificate, key = made.issue("asched")
    extender = {
        "urlPrefix": f"https://127.0.0.1:{port}",
        "filterVerb": "filter",
        "prioritizeVerb": "prioritize",
        "weight": 100,
        "enableHTTPS": True,
        "tlsConfig": {
            "caFile": str(made.ca_file),
            "certFile": str(certificate),
            "keyFile": str(key),
        },
    }
    return {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "leaderElection": {"leaderElect": False},
        "clientConnection": {"kubeconfig": str(kubeconfig)},
        "profiles": [{"schedulerName": "asched"}],
        "extenders": [extender],
    }


def pod(name: str) -> dict[str, Any]:
    built = a_pod(name).spec(schedulerName="asched").json
    del built["metadata"]["uid"]
    return built


async def once(server: ApiServer, name: str, is_settled: Any) -> dict[str, Any]:
    async with asyncio.timeout(HANG_S):
        while True:
            for found in server.list("pods"):
                if found["metadata"]["name"] == name and is_settled(found):
                    return found
            await asyncio.sleep(0.05)


def scheduled(pod):
    """The condition PodScheduled, or None."""
    conditions = pod["status"].get("conditions") or ()
    return next((c for c in conditions if c["type"] == "PodScheduled"), None)


async def test_whole_nodes_go_there_and_decisions_come_back(
    tmp_path: Path, unused_tcp_port: int
) -> None:
    server = ApiServer(kubelet=False)
    await server.start()
    made = Certificates(tmp_path)
    (tmp_path / "kubeconfig").write_text(server.kubeconfig())
    (tmp_path / "rule.py").write_text(PLUGIN)
    config = document(tmp_path / "kubeconfig", unused_tcp_port, made)
    (tmp_path / "config.yaml").write_text(json.dumps(config))
    asched = [sys.executable, "-m", "asched"]
    extender = [*asched, "extender", "--standalone", f"--port={unused_tcp_port}"]
    extender += ["--plugin", str(tmp_path / "rule.py"), "--client-ca-file", str(made.ca_file)]
    extender += ["--tls-cert-file", str(made.server_file)]
    extender += ["--tls-private-key-file", str(made.server_key)]
    scheduler = [*asched, "run", "--config", str(tmp_path / "config.yaml"), "--secure-port=0"]
    try:
        for number in range(3):
            server.create("nodes", a_node(f"e{number}").allocatable().json)
        with running(scheduler, tmp_path / "scheduler.log"):
            server.create("pods", pod("early"))
            early = await once(server, "early", scheduled)
            told = scheduled(early)
            assert told["reason"] == "SchedulerError", told
            assert "connection refused" in told["message"]
            with running(extender, tmp_path / "extender.log"):
                bound = await once(server, "early", lambda p: p["spec"].get("nodeName"))
                assert bound["spec"]["nodeName"] == "e2"
    finally:
        await server.stop()
