"""A real API server, where its binaries are; `tests/conftest.py` makes a fixture of it."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

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


@contextmanager
def real_api_server() -> Iterator[str]:
    """The path of a kubeconfig for a server of its own; skips where there are no binaries."""
    if "KUBEBUILDER_ASSETS" not in os.environ:
        pytest.skip("KUBEBUILDER_ASSETS does not name a folder with etcd and kube-apiserver")
    folder = str(shared_path("bench/realcluster.py").parent)
    command = [sys.executable, "-c", HARNESS, folder]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        yield process.stdout.readline().decode().strip()
        process.stdin.close()
