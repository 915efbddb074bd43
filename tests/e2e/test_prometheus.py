"""A real Prometheus scrapes a running scheduler over HTTPS with a token."""

import asyncio
import json
import shutil
import sys
import urllib.parse
import urllib.request

import pytest

from asched_lab.apiserver.server import ApiServer
from tests.e2e.inside import a_pod
from tests.support import HANG_S
from tests.unit.host.processes import free_port

SCRAPE = """
global: {{scrape_interval: 1s, scrape_timeout: 1s}}
scrape_configs:
  - job_name: kube-scheduler
    scheme: https
    tls_config: {{insecure_skip_verify: true}}
    authorization: {{credentials: sesame}}
    static_configs: [{{targets: ["127.0.0.1:{port}"]}}]
"""
ATTEMPT = "scheduler_scheduling_attempt_duration_seconds_bucket"
POINT = "scheduler_framework_extension_point_duration_seconds_bucket"
#: What dashboards and alerts for kube-scheduler ask; each must find something.
QUERIES = (
    'up{job="kube-scheduler"} == 1',
    'absent(absent(up{job="kube-scheduler"} == 1))',
    "sum(scheduler_pending_pods) by (queue)",
    "sum(rate(scheduler_schedule_attempts_total[1m])) by (result)",
    f"histogram_quantile(0.99, sum(rate({ATTEMPT}[1m])) without (instance, pod))",
    f"histogram_quantile(0.9, sum(rate({POINT}[1m])) by (extension_point, le))",
    "sum(rate(rest_client_requests_total[1m])) by (code)",
    "process_resident_memory_bytes",
    'leader_election_master_status{name="asched"} == 1',
)


def ask(port, query):
    address = f"http://127.0.0.1:{port}/api/v1/query?{urllib.parse.urlencode({'query': query})}"
    try:
        with urllib.request.urlopen(address, timeout=5) as answer:
            return json.load(answer)["data"]["result"]
    except OSError:
        return []


@pytest.fixture
async def server(tmp_path):
    server = ApiServer()
    await server.start(token="sesame")
    (tmp_path / "kubeconfig").write_text(server.kubeconfig())
    resources = {"cpu": "4", "memory": "4Gi", "pods": "50"}
    server.create(
        "nodes",
        {
            "metadata": {"name": "n1"},
            "status": {"allocatable": resources, "capacity": resources},
        },
    )
    yield server
    await server.stop()


async def test_prometheus_finds_what_dashboards_ask_for(server, tmp_path):
    prometheus = shutil.which("prometheus")
    if prometheus is None:
        pytest.skip("prometheus is not installed (Debian has a package of that name)")
    kubeconfig, port, own_port = tmp_path / "kubeconfig", free_port(), free_port()
    (tmp_path / "prometheus.yml").write_text(SCRAPE.format(port=port))
    asched = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "asched", "run", "--kubeconfig", str(kubeconfig)),
        *("--bind-address=127.0.0.1", f"--secure-port={port}", "--scheduler-name=asched"),
        f"--authentication-kubeconfig={kubeconfig}",
        f"--authorization-kubeconfig={kubeconfig}",
        stderr=asyncio.subprocess.DEVNULL,
    )
    watcher = await asyncio.create_subprocess_exec(
        *(prometheus, f"--config.file={tmp_path}/prometheus.yml"),
        *(f"--storage.tsdb.path={tmp_path}/data", f"--web.listen-address=127.0.0.1:{own_port}"),
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        missing, number = set(QUERIES), 0
        async with asyncio.timeout(HANG_S):
            while missing:
                server.create("pods", a_pod(f"p{number}", "1m"))  # rates need something to rise
                number += 1
                await asyncio.sleep(0.5)
                found = {q for q in missing if await asyncio.to_thread(ask, own_port, q)}
                missing -= found
    except TimeoutError:
        pytest.fail(f"nothing was found for {sorted(missing)}")
    finally:
        for process in (watcher, asched):
            process.terminate()
            await process.wait()
