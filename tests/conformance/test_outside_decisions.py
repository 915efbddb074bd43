"""Decisions that were seen from outside of kube-scheduler are ours, and a difference is noticed."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.conformance.outside_decisions import minor_of, replay
from tests.support import recorded_lines

Json = dict[str, Any]
CASES: list[Json] = recorded_lines("outside-decisions/1.36.3.jsonl.gz")


def test_every_recorded_decision_agrees() -> None:
    found = {case["name"]: replay(case).differences for case in CASES}
    assert len(found) == 500
    assert {name: differences for name, differences in found.items() if differences} == {}
    assert {case["scheduler"] for case in CASES} == {"v1.36.3"}


def turn_points(seen: Json) -> None:
    chosen = seen["choices"][1]["node"]
    seen["choices"][1]["points"] = {n: 0 if n == chosen else 1000 for n in seen["feasible"]}


@pytest.mark.parametrize(
    ("field", "change", "named"),
    [
        ("feasible", lambda seen: seen["feasible"].pop(), "feasible"),
        ("choices", turn_points, "best with"),
        ("choices", lambda seen: seen.pop("choices"), "fits"),
        ("plugins", lambda seen: seen["plugins"].append("NodePorts"), "plugins"),
        ("condition", lambda seen: seen["condition"].update(message="0/1"), "condition"),
        ("condition", lambda seen: seen["event"].update(note="0/1"), "event"),
        ("candidates", lambda seen: seen["candidates"].pop(), "candidates"),
        ("nominated", lambda seen: seen["victims"].pop(), "preemption"),
    ],
)
def test_a_difference_is_named(field: str, change: Callable[[Json], Any], named: str) -> None:
    case = next(
        case
        for case in CASES
        if field in case["seen"] and len(case["seen"].get("feasible") or "ab") > 1
    )
    changed = json.loads(json.dumps(case))
    change(changed["seen"])
    assert any(line.startswith(named) for line in replay(changed).differences)


def test_the_rules_are_those_of_the_recorded_version() -> None:
    assert [minor_of(v) for v in ("v1.37.0-rc.1", "v1.36.3", "0.1.0", "")] == [
        "1.37",
        "1.36",
        "1.36",
        "1.36",
    ]
