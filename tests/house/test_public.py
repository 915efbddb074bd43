"""Tests of behaviour use the public interfaces listed here, so that they outlive a redesign."""

import ast
from pathlib import Path

BEHAVIOUR = Path(__file__).resolve().parents[1] / "behaviour"

#: A module with all that is below it, and the interface that it is.
PUBLIC = {
    "asched.cli.main": "the command line",
    "asched.core.cycle.attempt.Attempt": "what extensions are given",
    "asched.core.cycle.extension": "the extension of the cycle",
    "asched.core.cycle.orders": "orders that the machine is given",
    "asched.core.framework.effects": "what the machine asks for",
    "asched.core.framework.group_post_filter": "the plugin protocol for groups",
    "asched.core.framework.points": "the plugin protocol",
    "asched.core.framework.status": "what plugins answer",
    "asched.core.model": "objects of the API",
    "asched.core.cluster.facts": "what the machine is given",
    "asched.names": "names that clients write",
    "asched.plugin": "the plugin protocol",
    "asched.testing": "tests of plugins",
    "asched_lab": "servers and clusters to run against",
}


def imported(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module:
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
    return {name for name in found if name.partition(".")[0] in ("asched", "asched_lab")}


def test_tests_of_behaviour_import_public_interfaces_only() -> None:
    found = [
        f"{path.name}: {name}"
        for path in sorted(BEHAVIOUR.rglob("*.py"))
        for name in sorted(imported(path))
        if not any(f"{name}.".startswith(f"{public}.") for public in PUBLIC)
    ]
    assert not found
