"""Replays recorded configuration documents against our loader, defaulting, merging and validation.

Each line holds a document, the feature gates that differ from the default, and what kube-scheduler
1.36.2 made of it: the effective text, the plugins of every profile and point, the extenders in
order of use, or its errors. Whether a document is accepted and what it means is compared; the texts
of errors are our own.
"""

import gzip
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from asched.core.config.construct import election_faults
from asched.core.config.gates import resolve as resolve_gates
from asched.core.config.merge import WEIGHTED
from asched.core.config.text import effective
from asched.core.config.v1 import POINTS
from asched.host.configuration.file import ConfigError, LoadedConfig, load_config

#: Defaults of our own (docs/parity.md): kube-scheduler's value and ours, where a file says nothing.
OWN_DEFAULTS: Mapping[str, tuple[int, int]] = {
    "qps": (50, -1),
    "minCandidateNodesPercentage": (10, 100),
}
#: Differences that cannot be avoided, by case name, each with its reason. None is known.
UNAVOIDABLE: Mapping[str, str] = {}


def replay(path: Path) -> tuple[int, int, list[str]]:
    """Run every recorded document; returns (passed, failed, one line for each that failed)."""
    passed = failed = 0
    differences: list[str] = []
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            if not line.strip():
                continue
            case = json.loads(line)
            found = compare(case)
            if found and case["name"] not in UNAVOIDABLE:
                failed += 1
                differences.append(f"{case['name']}: {'; '.join(found)}")
            else:
                passed += 1
    return passed, failed, differences


def compare(case: Mapping[str, Any]) -> list[str]:
    """What differs for one recorded document; an empty list means agreement."""
    gates = resolve_gates(case.get("gates") or {}).enabled
    try:
        loaded = load_config(text=case["input"], gates=gates, legacy=False)
    except ConfigError as error:
        return [f"refused, must pass: {error}"] if case["ok"] else []
    # An election that kube-scheduler refuses at its start has an effective configuration, too.
    is_refused = bool(election_faults(loaded.configuration))
    found = [] if case["ok"] is not is_refused else [f"must {'pass' if case['ok'] else 'fail'}"]
    return found + _compare_effective(case, loaded)


def _compare_effective(case: Mapping[str, Any], loaded: LoadedConfig) -> list[str]:
    found = []
    if case.get("effective") is not None:
        found += differences_of(case["effective"], effective(loaded.configuration), "effective")
    if case.get("profiles") is not None:
        found += differences_of(case["profiles"], profiles_of(loaded), "profiles")
    if case.get("extenders") is not None:
        ours = [extender.url_prefix for extender in loaded.extenders]
        found += differences_of(case["extenders"], ours, "extenders")
    return found


def profiles_of(loaded: LoadedConfig) -> dict[str, dict[str, list[dict[str, Any]]]]:
    """Plugins by scheduler name and point, in the form of the record."""
    return {
        resolved.scheduler_name: {
            point: [
                {"name": plugin.name, "weight": plugin.weight}
                if point in WEIGHTED
                else {"name": plugin.name}
                for plugin in resolved.at(point)
            ]
            for point in POINTS
            if resolved.at(point)
        }
        for resolved in loaded.profiles
    }


def differences_of(wanted: Any, got: Any, where: str) -> list[str]:
    if isinstance(wanted, dict) and isinstance(got, dict):
        return [
            text
            for key in sorted({*wanted, *got})
            for text in (
                differences_of(wanted[key], got[key], f"{where}.{key}")
                if key in wanted and key in got
                else [f"{where}.{key} is {'missing' if key in wanted else 'too much'}"]
            )
        ]
    if isinstance(wanted, list) and isinstance(got, list) and len(wanted) == len(got):
        return [
            text
            for i, (one, other) in enumerate(zip(wanted, got, strict=True))
            for text in differences_of(one, other, f"{where}[{i}]")
        ]
    is_own = OWN_DEFAULTS.get(where.rpartition(".")[2]) == (wanted, got)
    same = is_own or (wanted == got and isinstance(wanted, bool) is isinstance(got, bool))
    return [] if same else [f"{where} is {got!r}, must be {wanted!r}"]
