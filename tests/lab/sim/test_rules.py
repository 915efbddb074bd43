"""The checker's own reading of the rules, against what kube-scheduler was recorded to decide."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from asched_lab.sim.checker import EndState
from tests.conformance.cases import DECLARED
from tests.support import recorded_lines

#: Families whose rules the checker knows whole.
FAMILIES = ("hostports", "interpod", "mixed", "nodeaffinity", "resources", "spread", "taints")
#: Words of configurations that change a rule.
ARGUMENTS = ("addedAffinity", "ignoredResource", "disabled", "defaultConstraints")


def is_covered(case: dict[str, Any]) -> bool:
    """Not: profiles that change rules, nominations, resizes under way, volumes, errors, faults of
    kube-scheduler.
    """
    objects, pod = case["objects"], case["pod"]
    configuration = json.dumps(case["config"] or {})
    nominated = any(
        (one.get("status") or {}).get("nominatedNodeName")
        for one in (*objects.get("pods", ()), pod)
    )
    return (
        "feasible" in case["expect"]
        and not case["expect"].get("error")
        and DECLARED.isdisjoint(case.get("tags", ()))
        and not any(word in configuration for word in ARGUMENTS)
        and not nominated
        and "allocatedResources" not in json.dumps(objects.get("pods", ()))
        and not pod["spec"].get("volumes")
    )


def cases(family: str) -> Iterator[dict[str, Any]]:
    return filter(is_covered, recorded_lines(f"conformance/{family}.jsonl.gz"))


@pytest.mark.parametrize("family", FAMILIES)
def test_the_checker_finds_the_nodes_that_kube_scheduler_found(family: str) -> None:
    compared = 0
    for case in cases(family):
        objects = case["objects"]
        end = EndState(objects["nodes"], objects.get("pods", ()), objects.get("namespaces", ()))
        ours = sorted(name for name in end.nodes if end.fits(name, case["pod"]))
        assert ours == sorted(case["expect"]["feasible"]), case["name"]
        compared += 1
    assert compared >= 15
