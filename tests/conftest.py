"""Asynchronous tests run on the loop that `asched run` runs on: uvloop where it is installed."""

import asyncio
import gc
import os
import random
import sys
from itertools import groupby

import pytest

from asched.host.user_plugins import catalogue
from asched.serve import connections
from tests import skips
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


# The tests of a file do not depend on each other: they run in an order of their own each time. The
# workers of one run inherit the seed.
SEED = os.environ.setdefault("ASCHED_TEST_ORDER", str(random.randrange(10_000)))


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Shuffle the tests of each file; files keep their order."""
    order = random.Random(SEED)
    for _, of_file in groupby(enumerate(list(items)), key=lambda entry: entry[1].path):
        places, tests = zip(*of_file, strict=True)
        for place, test in zip(places, order.sample(tests, len(tests)), strict=True):
            items[place] = test


def pytest_terminal_summary(terminalreporter):
    """Print what a run did not check, and how to repeat its order where a test failed."""
    for line in skips.summary(terminalreporter.stats.get("skipped", ())):
        terminalreporter.write_line(line)
    if terminalreporter.stats.get("failed") or terminalreporter.stats.get("error"):
        terminalreporter.write_line(f"order of the tests in each file: ASCHED_TEST_ORDER={SEED}")


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session):
    """With ASCHED_SKIPS=limited, fail where more tests skip than `tests/skips.py` lists."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if os.environ.get("ASCHED_SKIPS") == "limited" and reporter is not None:
        found = skips.beyond(reporter.stats.get("skipped", ()))
        if found and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED
