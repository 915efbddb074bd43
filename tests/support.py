"""What many tests need besides objects: recordings, patience, installed plugins, and garbage.

The recorded corpora lie in `ASCHED_SHARED`, by default `../shared` beside the checkout. The project
never needs them to run. A test that reads them skips visibly where they are absent.
"""

import gc
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from functools import _lru_cache_wrapper, cache
from importlib.metadata import entry_points
from pathlib import Path
from typing import Final

import numpy.ma  # noqa: F401 - it leaves circles when NumPy imports it, at the first np.unique
import pytest

from asched.host.user_plugins.catalogue import GROUP, Catalogue, of_class

ROOT = Path(__file__).resolve().parent.parent
SHARED = Path(os.environ.get("ASCHED_SHARED", ROOT.parent / "shared"))


def shared_path(relative: str) -> Path:
    """The path of a recorded file, or a visible skip of the calling test."""
    path = SHARED / relative
    if not path.exists():
        pytest.skip(f"{relative} is not here; set ASCHED_SHARED to the folder of the recordings")
    return path


#: How long tests wait for what must come. A test that waits so long hangs, on any machine and
#: beside any other work; what comes sooner costs nothing.
HANG_S: Final = 300.0


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
