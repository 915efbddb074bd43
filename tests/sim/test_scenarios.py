"""Runs that are the same in another process, and runs in which a rule was broken once.

A run of each scenario is played, and repeated from its recording, in test_recordings.py.
"""

import json
import os
import subprocess
import sys
from functools import cache
from typing import Final

import pytest

from asched_lab.sim.scenario import play
from asched_lab.sim.scenarios import SCENARIOS

#: Of these one more run is played, here and in another process.
TWICE: Final = ("SideBySide", "BusyDevices", "Gangs")


@pytest.mark.parametrize("name", TWICE)
def test_another_process_plays_the_same_run(name: str) -> None:
    """Whatever order Python keeps sets of strings or of tasks in, and however fast it is."""
    world = play(SCENARIOS[name], 0)

    assert world.ledger.bound_count, "nothing was bound, so nothing was tried"
    assert list(world.trace) == elsewhere()[name], "another process plays another run"


@cache
def elsewhere() -> dict[str, list[str]]:
    text = """
import json, sys
from asched_lab.sim.scenario import play
from asched_lab.sim.scenarios import SCENARIOS
for name in sys.argv[1:]:
    print(json.dumps([name, list(play(SCENARIOS[name], 0).trace)]))
"""
    printed = subprocess.run(
        [sys.executable, "-c", text, *TWICE],
        env={**os.environ, "PYTHONHASHSEED": "1"},
        capture_output=True,
        check=True,
    ).stdout
    return dict(map(json.loads, printed.splitlines()))


#: Lives in which a rule is broken by the code as it was before a defect was mended.
FOUND: Final = [
    ("Pools", 6),  # what a class was rejected for before its pool was held stayed cached
    ("NodeFlapping", 21),  # a lost binding was sent once more to a node that had become ill
    ("NodeFlapping", 24),  # ... or whose room a stranger had taken
    ("SideBySide", 27),
    ("BusyDevices", 61),  # devices were given back while it was unknown who got them
    ("BusyDevices", 62),  # what was in doubt was given back, and nobody heard of it
    ("BusyDevices", 73),  # a claim that an attempt of its own had left was gone, and it slept
    ("Gangs", 13),  # the judge counted a nominated pod of a gang twice
    ("StrangersApart", 301),  # a pod came near one that wanted to be alone
    ("ResizedGangs", 3),  # fewer pods were enough now, and a gang that had found no room slept
    (
        "InheritedDevices",
        34,
    ),  # a dead process's claim got a device late, which was given away
    ("MovedPods", 17),  # successors were not recognised, for the labels that bindings add
    ("SpreadServices", 100779),  # places without pods so far made a spread look better
    ("IncidentN4", 300),  # a claim was bound to a volume on another node than its pod's
]


@pytest.mark.parametrize(("name", "seed"), FOUND)
def test_what_was_found_once_stays_mended(name: str, seed: int) -> None:
    play(SCENARIOS[name], seed)
