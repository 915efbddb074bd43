import json
from pathlib import Path

import pytest

import asched
from asched.core.config.gates import (
    CHANGES,
    DEFAULT_GATES,
    GATES,
    HONOURED,
    LOCKED,
    PARENTS,
    REFUSED,
    GateError,
    parse,
    parse_bool,
    resolve,
)
from tests.support import recorded_text

MIXED = (
    "set kube feature gates with default empty prefix or kube: prefix consistently, do not mix use"
)


def test_every_recorded_gate_is_known_with_its_stage_and_default() -> None:
    recorded = json.loads(recorded_text("outside/flags/feature_gates.json"))
    for row in recorded:
        assert GATES[row["gate"]] == (row["stage"], row["default"])
    assert {name for name, (stage, _) in GATES.items() if stage != "GA"} == {
        row["gate"] for row in recorded
    }


def test_the_tables_agree_with_each_other() -> None:
    assert set(GATES) >= LOCKED
    known = set(GATES).union(*(changes.moved for changes in CHANGES.values()))
    assert {*PARENTS, *(gate for parents in PARENTS.values() for gate in parents)} <= known
    assert parse([]).enabled == DEFAULT_GATES


def test_gates_add_up_and_the_last_value_wins() -> None:
    given = ["GenericWorkload=true,GangScheduling=T", " OpportunisticBatching = 0 "]
    assert parse(["kube:GenericWorkload=true"]).enabled["GenericWorkload"]
    assert parse([":GenericWorkload=true"]).enabled["GenericWorkload"]
    state = parse([*given, "OpportunisticBatching=1"]).enabled
    assert state["GangScheduling"]
    assert state["OpportunisticBatching"]


def test_groups_move_their_stage_but_not_gates_that_are_named() -> None:
    state = resolve({"AllBeta": False, "OpportunisticBatching": True}).enabled
    assert not state["NodeDeclaredFeatures"]
    assert state["OpportunisticBatching"]
    assert resolve({"AllAlpha": True}).enabled["GangScheduling"]


def partition(text: str) -> tuple[str, str, str]:
    return text.partition("=")


def default(gate: str) -> str:
    return str(GATES[gate][1]).lower()


def flipped(gate: str) -> list[str]:
    """The gate away from its default, with whatever upstream's dependencies ask for."""
    value = not GATES[gate][1]
    moved = {gate}
    while True:
        more = {
            other
            for other, parents in PARENTS.items()
            if not value and moved & set(parents) and GATES[other][1]
        }
        more |= {parent for name in moved if value for parent in PARENTS.get(name, ())}
        if more <= moved:
            return [f"{name}={str(value).lower()}" for name in sorted(moved, key=gate.__ne__)]
        moved |= more


@pytest.mark.parametrize("gate", sorted(GATES.keys() - {"AllAlpha", "AllBeta"}))
def test_every_gate_has_an_effect_or_says_that_it_has_none_or_is_refused(gate: str) -> None:
    away = [name for name, _, value in map(partition, flipped(gate)) if value != default(name)]
    if gate in LOCKED or any(name in REFUSED for name in away):
        with pytest.raises(GateError, match=gate):
            parse(flipped(gate))
        return
    warnings = parse(flipped(gate)).warnings
    told = f"feature gate {gate} has no effect on this scheduler" in warnings
    assert told is not (gate in HONOURED)


def test_the_gates_that_are_honoured_are_read_somewhere() -> None:
    tables = {"gate_table.py", "gates.py"}
    sources = [
        path.read_text(encoding="utf-8")
        for path in Path(asched.__file__).parent.rglob("*.py")
        if path.name not in tables
    ]
    groups = {"AllAlpha", "AllBeta"}
    unread = {
        gate for gate in HONOURED - groups if not any(f'"{gate}"' in text for text in sources)
    }
    assert unread == set()


def test_a_locked_gate_may_be_named_with_its_own_value() -> None:
    named = [f"{gate}={str(DEFAULT_GATES[gate]).lower()}" for gate in LOCKED]
    assert parse(named).enabled == DEFAULT_GATES


def test_a_group_does_not_bring_in_what_is_not_implemented() -> None:
    with pytest.raises(GateError, match="feature gate DRAListTypeAttributes=true is refused: "):
        parse(["AllAlpha=true"])


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (
            "SchedulerQueueingHints=false",
            "cannot set feature gate SchedulerQueueingHints to false, feature is locked to true",
        ),
        (
            "GangScheduling=true",
            (
                "GangScheduling is enabled, but depends on features that are disabled: "
                "[GenericWorkload]"
            ),
        ),
        ("x", "missing bool value for x"),
        ("wardle:x=true,kube:y=true,x=true", MIXED),
        ("x=true,kube:x=true", MIXED),
        ("wardle:x=true", "component not registered: wardle"),
        ("a:b:c=true", "component not registered: a"),
        ("kube:1.36", "missing bool value for 1.36"),
        (
            "GenericWorkload=true,kube:GenericWorkload=false",
            MIXED,
        ),
        (
            "NodeDeclaredFeatures=maybe",
            "invalid value of NodeDeclaredFeatures=maybe, err: must be true or false",
        ),
    ],
)
def test_what_cannot_be_set_is_refused(value: str, text: str) -> None:
    with pytest.raises(GateError) as caught:
        parse([value])
    assert str(caught.value) == text


def test_all_orphans_are_named() -> None:
    with pytest.raises(GateError) as caught:
        parse(["NodeDeclaredFeatures=false"])
    assert str(caught.value).startswith("[")
    assert str(caught.value).count("depends on features that are disabled") == 4


def test_an_unknown_gate_and_an_alpha_gate_are_warnings() -> None:
    gates = parse(["NoSuchGate=true", "StorageCapacityScoring=true"])
    assert gates.warnings[0] == "unrecognized feature gate: NoSuchGate"
    assert gates.warnings[1].endswith("this is unsupported: features=[StorageCapacityScoring]")


def test_booleans_are_gos() -> None:
    assert [parse_bool(text) for text in ("1", "t", "TRUE", "0", "f", "False")] == [True] * 3 + [
        False
    ] * 3
    with pytest.raises(ValueError):
        parse_bool("yes")
