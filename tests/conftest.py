"""Asynchronous tests run on the loop that `asched run` runs on: uvloop where it is installed. What
was skipped, and why, is told in one line at the end.
"""

import asyncio
import gc
import os
import sys
from collections import Counter

import pytest

from asched.host.user_plugins import catalogue
from asched.serve import connections
from tests.support import real_api_server

# Hundreds of tests start a process, and each worker imports all test files: without cached bytecode
# every one of them compiles all modules again, which doubles the time of the whole run.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False


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


# Tests ask the port of a scheduler in their own process more often than its share of the processor
# allows; tests of the share start a process.
connections.CREDIT_S = 3600.0


def pytest_collection_finish():
    """No collection of garbage looks through the tests."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session")
def real_kubeconfig():
    with real_api_server() as path:
        yield path


#: What a reason for skipping says -> what was missing, for the line at the end of a run.
MISSING = {
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
