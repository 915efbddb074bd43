"""Whose pods go, if a pod of a gang is one of those that could."""

import pytest

from asched.core.plugins.default_preemption import DefaultPreemption
from asched.core.plugins.gang_sparing_preemption import GangSparingPreemption
from asched.core.preemption.gang_budgets import ANNOTATIONS, LABELS
from tests.builders import PodBuilder, a_node
from tests.unit.core.preemption.stage import Stage, a_high, a_low

MARKS = [
    *({"annotations": {mark: "train"}} for mark in ANNOTATIONS),
    *({"labels": {mark: "train"}} for mark in LABELS),
    {"labels": {"scheduling.x-k8s.io/pod-group": "train"}},
]


def stage_of(plugin: type[DefaultPreemption], nodes: int = 2) -> Stage:
    stage = Stage(plugin.name)
    stage.nodes(*(a_node(f"n{n + 1}").allocatable(cpu="2") for n in range(nodes)))
    return stage


def of_gang(name: str, node: str, mark: dict[str, dict[str, str]]) -> PodBuilder:
    return a_low(name, node, cpu="2").metadata(**mark)


@pytest.mark.parametrize("mark", MARKS, ids=lambda mark: "".join(*mark.values()))
def test_a_single_pod_goes_although_it_matters_more(mark: dict[str, dict[str, str]]) -> None:
    stage = stage_of(GangSparingPreemption)
    stage.pod(of_gang("one-of-eight", "n1", mark))
    stage.pod(a_low("single", "n2", cpu="2").priority(5))
    assert stage.post_filter(stage.pod(a_high("high"))).victims == ("default/single",)


def test_on_one_node_too() -> None:
    stage = stage_of(GangSparingPreemption, nodes=1)
    stage.pod(a_low("one-of-eight", "n1", cpu="1").metadata(**MARKS[0]))
    stage.pod(a_low("single", "n1", cpu="1").priority(5))
    high = a_high("high").requests(cpu="1")
    assert stage.post_filter(stage.pod(high)).victims == ("default/single",)


def test_without_a_choice_the_gang_loses_one() -> None:
    stage = stage_of(GangSparingPreemption, nodes=1)
    stage.pod(of_gang("one-of-eight", "n1", MARKS[0]))
    assert stage.post_filter(stage.pod(a_high("high"))).victims == ("default/one-of-eight",)


def test_by_default_it_is_as_upstream_has_it() -> None:
    stage = stage_of(DefaultPreemption)
    stage.pod(of_gang("one-of-eight", "n1", MARKS[0]))
    stage.pod(a_low("single", "n2", cpu="2").priority(5))
    assert stage.post_filter(stage.pod(a_high("high"))).victims == ("default/one-of-eight",)
