"""Findings of a simulation."""

from asched_lab.sim.scenario import Broken, play
from asched_lab.sim.scenarios import SCENARIOS


def findings(name: str, seeds: range) -> str:
    """What a scenario complains about over some seeds; empty if it is content."""
    found = []
    for seed in seeds:
        try:
            play(SCENARIOS[name], seed)
        except Broken as broken:
            found += [f"{broken}".splitlines()[0], *broken.findings]
    return "\n".join(found)
