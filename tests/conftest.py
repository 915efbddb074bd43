"""Asynchronous tests run on the loop that `asched run` runs on: uvloop where it is installed. What
was skipped, and why, is told in one line at the end.
"""

import asyncio
import os
import subprocess
import sys
from collections import Counter

import pytest

from asched.host.user_plugins import catalogue
from tests.shared import shared_path


def pytest_asyncio_loop_factories(config, item):
    try:
        import uvloop
    except ImportError:
        return {"asyncio": asyncio.new_event_loop}
    return {"uvloop": uvloop.new_event_loop}


_offered = catalogue.entry_points
#: Plugins that are installed where the tests run; no test knows of them.
THEIRS = frozenset(_offered(group=catalogue.GROUP))
catalogue.entry_points = lambda group: [o for o in _offered(group=group) if o not in THEIRS]


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
    """Of a real API server, where its binaries are."""
    if "KUBEBUILDER_ASSETS" not in os.environ:
        pytest.skip("KUBEBUILDER_ASSETS does not name a folder with etcd and kube-apiserver")
    folder = str(shared_path("bench/realcluster.py").parent)
    command = [sys.executable, "-c", HARNESS, folder]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        yield process.stdout.readline().decode().strip()
        process.stdin.close()


#: What a reason for skipping says -> what was missing, for the line at the end of a run.
MISSING = {
    "ASCHED_SHARED": "recordings of kube-scheduler (ASCHED_SHARED names their folder)",
    "KUBEBUILDER_ASSETS": "a real control plane (KUBEBUILDER_ASSETS names its folder)",
}


def pytest_terminal_summary(terminalreporter):
    """One line that says what a green run did not look at."""
    counts = Counter(
        next((missing for word, missing in MISSING.items() if word in reason), reason)
        for reason in map(_reason, terminalreporter.stats.get("skipped", ()))
    )
    if counts:
        listed = "; ".join(f"{count} for want of {what}" for what, count in sorted(counts.items()))
        terminalreporter.write_line(f"skipped: {listed}")


def _reason(report):
    text = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    return text.removeprefix("Skipped: ")
