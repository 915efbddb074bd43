"""What many tests need besides objects: recordings, patience, installed plugins, and garbage.

`tests/recordings/README.md` says what was recorded, and how.
"""

import gc
import gzip
import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from functools import _lru_cache_wrapper, cache
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, Final

import numpy.ma  # noqa: F401 - it leaves circles when NumPy imports it, at the first np.unique
import pytest

from asched.host.user_plugins.catalogue import GROUP, Catalogue, of_class
from asched_lab.measure.real import assets

ROOT = Path(__file__).resolve().parent.parent
RECORDINGS = ROOT / "tests" / "recordings"


def recorded_text(relative: str) -> str:
    """The text of a recorded file; `.gz` files are unpacked."""
    path = RECORDINGS / relative
    data = path.read_bytes()
    return (gzip.decompress(data) if path.suffix == ".gz" else data).decode()


def recorded_lines(relative: str) -> list[Any]:
    """The JSON values of a recorded file, one a line."""
    return [json.loads(line) for line in recorded_text(relative).splitlines() if line.strip()]


#: How long tests wait for what must come. A test that waits so long hangs, on any machine and
#: beside any other work; what comes sooner costs nothing.
HANG_S: Final = 300.0


#: Runs a control plane in a process of its own until its input ends.
CONTROL_PLANE = """
import asyncio
import sys

from asched_lab.measure.real import RealServer, assets


async def main():
    async with RealServer(assets()) as server:
        print(server.kubeconfig, flush=True)
        await asyncio.to_thread(sys.stdin.read)


asyncio.run(main())
"""


@contextmanager
def real_api_server() -> Iterator[str]:
    """The path of a kubeconfig for a server of its own; skips where there are no binaries."""
    if assets() is None:
        pytest.skip("KUBEBUILDER_ASSETS does not name a folder with etcd and kube-apiserver")
    command = [sys.executable, "-c", CONTROL_PLANE]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        yield process.stdout.readline().decode().strip()
        process.stdin.close()


@cache
def plugins_along() -> Catalogue:
    """Those of `asched.hardware`, whatever else is installed."""
    offered = [one for one in entry_points(group=GROUP) if one.value.startswith("asched.hardware.")]
    return Catalogue([of_class(one.load(), one.value) for one in offered])


@contextmanager
def uncollected() -> Iterator[Counter[str]]:
    """Within the block, garbage is collected by explicit calls only. Afterwards: by type, how many
    objects are in unused reference cycles, or referenced by one.
    """
    found: Counter[str] = Counter()
    _forget_of_other_tests()
    gc.unfreeze()
    gc.collect()
    gc.disable()
    try:
        yield found
        gc.set_debug(gc.DEBUG_SAVEALL)
        gc.unfreeze()
        gc.collect()
        types = map(type, gc.garbage)
        found.update(f"{one.__module__}.{one.__qualname__}" for one in types)
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()


def _forget_of_other_tests() -> None:
    """What caches keep of the plugins of other tests goes when the block brings plugins of its own,
    with whatever those tests hung on them.
    """
    for module in [m for name, m in sys.modules.items() if name.startswith("asched.")]:
        for cached in [v for v in vars(module).values() if isinstance(v, _lru_cache_wrapper)]:
            cached.cache_clear()
