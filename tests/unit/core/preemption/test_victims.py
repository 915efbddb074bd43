"""Who has to go from one node, case by case; both ways of finding out."""

from copy import deepcopy
from dataclasses import dataclass

import pytest

from tests.builders import a_node
from tests.unit.core.preemption.stage import Stage, a_high, a_low


@dataclass(frozen=True)
class Case:
    """`pods` as name:priority:cpu:start; `guarded` ones are labelled and may not go."""

    name: str
    pods: str
    wants: str
    victims: list[str] | None
    guarded: str = ""
    violations: int = 0


CASES = [
    Case("the most important stays", "a:5:2:0 b:1:2:0", "2", ["b"]),
    Case("among equals the older stays", "a:1:2:9 b:1:2:1", "2", ["a"]),
    Case("equal priority is no victim", "a:1000:4:0", "2", None),
    Case("not enough even without all of them", "a:1000:3:0 b:1:1:0", "2", None),
    Case("small ones are put back around a big one", "a:9:3:0 b:5:1:0", "2", ["a"]),
    Case("a guarded pod is put back first", "a:5:2:0 b:1:2:0", "2", ["a"], guarded="b"),
    Case(
        "guarded pods go if nothing else helps",
        "a:5:2:0 b:1:2:0",
        "4",
        ["a", "b"],
        guarded="a b",
        violations=2,
    ),
]


@pytest.mark.parametrize("has_port", [False, True], ids=["by amounts", "by trial"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_victims(case: Case, has_port: bool) -> None:
    stage = Stage()
    stage.nodes(a_node("n1").allocatable(cpu="4"))
    stage.budget("guard", "default", "guarded", 0)
    for text in case.pods.split():
        name, priority, cpu, start = text.split(":")
        pod = a_low(name, "n1", int(priority), cpu, int(start))
        stage.pod(pod.labels(app="guarded") if name in case.guarded.split() else pod)
    pod = a_high("high", cpu=case.wants)
    found = stage.candidates(stage.pod(pod.host_port(80) if has_port else pod))
    if case.victims is None:
        assert found == {}
    else:
        names = [info.pod.metadata.name for info in found["n1"].victims]
        assert (names, found["n1"].violations) == (case.victims, case.violations)


def test_the_number_of_pods_is_an_amount_too() -> None:
    stage = Stage()
    stage.nodes(a_node("n1").allocatable(pods="2"))
    stage.pod(a_low("old", "n1", start=1))
    stage.pod(a_low("young", "n1", start=2))
    found = stage.candidates(stage.pod(a_high("high")))
    assert [info.pod.metadata.name for info in found["n1"].victims] == ["young"]


def test_a_port_is_freed_by_its_user_and_given_back_after_the_trial() -> None:
    stage = Stage()
    stage.nodes(a_node("n1"))
    user = stage.pod(a_low("user", "n1").host_port(80))
    stage.pod(a_low("other", "n1"))
    pod = stage.pod(a_high("high").host_port(80))
    before = deepcopy(stage.cluster.occupancy.ports)
    found = stage.candidates(pod)
    assert [info.pod for info in found["n1"].victims] == [user]
    assert stage.cluster.occupancy.ports == before
