from typing import Any

import pytest

from tests.conformance.outside_extender import deliberate, replay
from tests.support import recorded_lines

RECORD = "outside/extender/scenarios.jsonl.gz"


def records() -> list[dict[str, Any]]:
    return recorded_lines(RECORD)


def test_every_recorded_scenario_agrees() -> None:
    found = {r["name"]: replay(r) for r in records() if deliberate(r) is None}
    assert {name: differences for name, differences in found.items() if differences} == {}
    assert len(found) >= 90


def test_every_deliberate_difference_is_one() -> None:
    chosen = [record for record in records() if deliberate(record) is not None]
    assert len(chosen) == 5
    assert all(replay(record) for record in chosen)


@pytest.mark.parametrize(
    ("change", "where"),
    [
        ({"events": []}, "events"),
        ({"api": []}, "writes"),
        ({"pods": {"p": {"nodeName": None}}}, "pods"),
    ],
    ids=["events", "writes", "pods"],
)
def test_a_difference_is_seen_and_named(change: dict[str, Any], where: str) -> None:
    record = next(record for record in records() if record["name"] == "filter-names-subset")
    assert replay(record) == []
    assert any(line.startswith(where) for line in replay({**record, **change}))
