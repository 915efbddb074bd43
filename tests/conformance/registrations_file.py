"""Compares what our plugins listen to with the recorded registrations."""

from pathlib import Path

from tests.conformance import registrations
from tests.conformance.cases import Result
from tests.conformance.world import build


def replay(path: Path) -> Result:
    """One result for the whole file."""
    world = build(None, {})
    runner = next(iter(world.runners.values()))
    result = Result(path.name, "registrations")
    result.missing = world.missing
    if not world.missing:
        result.differences = registrations.compare(path, runner.profile.registrations)
    return result
