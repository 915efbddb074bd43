"""What is remembered of things that are gone stays within its bound, however large these were."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

PRELUDE = """
from msgspec.structs import replace
from asched.core.model.kinds import POD
from asched.core.cluster.facts import Bound, Gone, Seen
from asched.core.framework.effects import Bind
from tests.builders import a_node, a_pod
from tests.playbook import Play

def rss():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096

def text(number, size):
    return f"{number:09d}" + "x" * (size - 9)

def pod(name, **metadata):
    built = a_pod(name).requests(cpu="1m").spec(schedulerName="default-scheduler").build()
    return replace(built, metadata=replace(built.metadata, **metadata))

play = Play(a_node("n1").allocatable(cpu="64", memory="64Gi", pods="110"))

def come_and_go(one):
    play.turn(Seen(POD, one), after_s=0.1)
    while not play.of(Bind):
        play.turn(after_s=0.1)
    (bind,) = play.of(Bind)
    play.turn(Bound(bind.id), Seen(POD, one.on("n1")))
    play.turn(Gone(POD, one.on("n1")))
"""

ANNOTATIONS = """
def make(n):
    come_and_go(pod(f"p{n}", annotations={"a": text(n, 256 << 10)}))
"""

#: Each pod has a class of its own, with many small labels and a long list of finalizers.
LABELS = """
def make(n):
    labels = {f"{n:05d}-{i:05d}": "v" for i in range(6_000)}
    finalizers = tuple(f"example.com/{n:05d}-{i:05d}" for i in range(30_000))
    come_and_go(pod(f"p{n}", labels=labels, finalizers=finalizers))
"""

#: Another object, which is replaced all the time.
CLAIMS = """
from asched.core.model.claim import ResourceClaim
from asched.core.model.decode import decode
from asched.core.model.kinds import RESOURCE_CLAIM

def make(n):
    names = [(f"r{i}", f"c{n}-{i}") for i in range(5_000)]
    requests = [{"name": name, "exactly": {"deviceClassName": of}} for name, of in names]
    metadata = {"name": "c", "namespace": "default", "uid": "u", "resourceVersion": str(n)}
    made = {"metadata": metadata, "spec": {"devices": {"requests": requests}}}
    play.turn(Seen(RESOURCE_CLAIM, decode(ResourceClaim, made)), after_s=0.1)
"""

MEASURED = """
for n in range({warm}):
    make(n)
before = rss()
for n in range({warm}, {warm} + {count}):
    make(n)
print((rss() - before) >> 20)
"""


@pytest.mark.parametrize(
    ("make", "warm", "count", "growth_mib"),
    [
        pytest.param(ANNOTATIONS, 100, 900, 40, id="annotations"),
        pytest.param(LABELS, 5, 60, 160, id="labels"),
        pytest.param(CLAIMS, 5, 120, 160, id="objects"),
    ],
)
def test_memory_stays_within_the_stated_bounds(
    make: str, warm: int, count: int, growth_mib: int
) -> None:
    """The history may keep 96 MiB."""
    program = PRELUDE + make + MEASURED.format(warm=warm, count=count)
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert int(done.stdout) < growth_mib
