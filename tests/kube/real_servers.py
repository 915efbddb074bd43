"""A real API server for the client."""

import os
import subprocess
import sys
from contextlib import asynccontextmanager

import pytest

from asched_lab.apiserver.server import ApiServer
from tests.shared import shared_path

#: Runs the shared harness in a process of its own until its input ends.
HARNESS = """
import sys
sys.path.insert(0, sys.argv[1])
from realcluster import RealCluster
with RealCluster() as cluster:
    print(cluster.kubeconfig, flush=True)
    sys.stdin.read()
    for process in cluster.procs:
        process.kill()
"""


@pytest.fixture(scope="session")
def real_kubeconfig():
    if "KUBEBUILDER_ASSETS" not in os.environ:
        pytest.skip("KUBEBUILDER_ASSETS does not name a folder with etcd and kube-apiserver")
    folder = str(shared_path("bench/realcluster.py").parent)
    command = [sys.executable, "-c", HARNESS, folder]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        yield process.stdout.readline().decode().strip()
        process.stdin.close()


@asynccontextmanager
async def running(folder):
    server = ApiServer()
    await server.start(tls=True, token="secret")
    server.path = folder / "kubeconfig"
    server.path.write_text(server.kubeconfig())
    try:
        yield server
    finally:
        await server.stop()
