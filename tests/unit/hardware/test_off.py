"""With none of the plugins enabled, nothing of them is there."""

import json
import os
import subprocess
import sys
from importlib.metadata import entry_points

from tests.support import ROOT

THEIRS = ("asched.hardware", "asched_lab.trace", "scipy", "xxhash")

OFF = """
import gc, json, sys, tracemalloc
from asched.host.configuration.file import load_config
from asched.host.user_plugins.catalogue import Catalogue, discover
from asched.testing import World, node, pod

def a_day(catalogue):
    loaded = load_config("config/default.yaml", known=catalogue.known)
    world = World()
    world.start(loaded.configuration, catalogue, 0)
    world.add(*(node(f"n{at}", resources={"nvidia.com/gpu": 8}) for at in range(30)))
    for at in range(100):
        world.add(pod(f"p{at}", cpu=1 + at % 3))
    world.remove(node("n3"))
    return world

def counted(catalogue):
    calls, theirs = [0], [0]
    def seen(frame, event, arg):
        if event == "call":
            calls[0] += 1
            theirs[0] += "asched/hardware/" in frame.f_code.co_filename
    gc.collect()
    gc.disable()
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    sys.setprofile(seen)
    world = a_day(catalogue)
    sys.setprofile(None)
    held = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    gc.enable()
    (runner,) = world._machine.context.runners.values()
    followed = sorted(kind.resource for kind in runner.profile.kinds)
    return dict(calls=calls[0], theirs=theirs[0], held=held, followed=followed)

everything = discover()
assert len(everything.plugins) >= 11
for catalogue in (everything, Catalogue()):
    counted(catalogue)  # what is kept for good is made once
print(json.dumps(dict(
    offered=counted(everything),
    absent=counted(Catalogue()),
    loaded=sorted(name for name in sys.modules if name.startswith(tuple(sys.argv[1:]))),
)))
"""


def test_with_none_of_them_enabled_as_much_is_called_held_and_followed_as_if_none_were_there() -> (
    None
):
    code = [sys.executable, "-c", OFF, *THEIRS]
    environment = {**os.environ, "PYTHONHASHSEED": "0"}
    told = json.loads(
        subprocess.run(
            code, capture_output=True, text=True, check=True, cwd=ROOT, env=environment
        ).stdout
    )
    offered, absent = told["offered"], told["absent"]
    assert told["loaded"] == []
    assert offered["theirs"] == 0
    assert offered["calls"] > 10_000
    assert offered["calls"] == absent["calls"]
    assert abs(offered["held"] - absent["held"]) < 0.01 * absent["held"]
    assert offered["followed"] == absent["followed"]


def test_what_starts_the_scheduler_imports_none_of_them() -> None:
    code = (
        "import sys, asched.cli.main, asched.cli.run, asched.host.assemble;"
        f" print([name for name in sys.modules if name.startswith({THEIRS!r})])"
    )
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert told.stdout.strip() == "[]"


def test_every_entry_point_is_a_plugin_of_that_name() -> None:
    along = [one for one in entry_points(group="asched.plugins") if "asched.hardware" in one.value]
    assert along
    for one in along:
        assert one.load().name == one.name


def test_a_plugin_names_the_extra_that_it_needs() -> None:
    """xxhash is no dependency of asched."""
    code = "import sys; sys.modules['xxhash'] = None; import asched.hardware.numa.match"
    ran = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert "it needs xxhash: install asched[numa]" in ran.stderr
