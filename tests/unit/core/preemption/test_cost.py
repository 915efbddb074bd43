"""The rules by which one candidate is chosen, each where the rules before it are even."""

import numpy as np
import pytest

from asched.core.framework.preemption_trial import Candidate
from asched.core.preemption.cost import best_of, cheapest, cost_of
from tests.unit.core.preemption.stage import Stage, a_low

#: name, then per node its victims as priority@start with the violations, then the nodes left.
CASES = [
    ("fewest violations", {"a": ("9@1", 0), "b": ("1@1", 1)}, "a"),
    ("lowest top priority", {"a": ("9@1", 0), "b": ("8@1 8@1 8@1", 0)}, "b"),
    ("smallest sum", {"a": ("10@1 5@1", 0), "b": ("10@1", 0)}, "b"),
    ("a negative priority still weighs", {"a": ("0@1 -10@1", 0), "b": ("0@1", 0)}, "b"),
    ("latest start of the oldest top victim", {"a": ("5@1 5@9", 0), "b": ("5@2 5@3", 0)}, "b"),
    ("only the top priority's starts count", {"a": ("5@2 4@9", 0), "b": ("5@3 4@1", 0)}, "b"),
    ("all even", {"a": ("5@2", 0), "b": ("5@2", 0)}, "ab"),
]


@pytest.mark.parametrize(("name", "nodes", "left"), CASES, ids=[case[0] for case in CASES])
def test_choice(name: str, nodes: dict[str, tuple[str, int]], left: str) -> None:
    stage = Stage()
    candidates = []
    for node, (victims, violations) in nodes.items():
        infos = []
        for number, text in enumerate(victims.split()):
            priority, _, start = text.partition("@")
            pod = a_low(f"{node}{number}", node, priority=int(priority), start=int(start))
            infos.append(stage.info(pod.build()))
        candidates.append(Candidate(node, 0, tuple(infos), violations))
    assert {found.node for found in best_of(candidates)} == set(left)
    costs = np.array([cost_of(c.victims, c.violations) for c in candidates], dtype=np.int64).T
    assert {candidates[at].node for at in cheapest(costs, np.arange(len(candidates)))} == set(left)
