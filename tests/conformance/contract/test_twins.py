"""Every kernel against its twin, on random clusters. Twins are found by the plugin's name."""

import re
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import Any

import pytest

from asched import names
from asched.core.framework.points import FilterPlugin, ScorePlugin
from asched.core.framework.status import Code
from asched.core.plugins import IN_TREE
from tests.builders import all_rows
from tests.conformance.contract import asking
from tests.conformance.contract.asking import FILTERS, SCORERS
from tests.conformance.contract.worlds import (
    World,
    a_world,
    affinity_args,
    balance_args,
    changes,
    fit_args,
)

SEEDS = range(12)
CHANGES = 5

#: Arguments that a plugin's twin is tried with.
ARGS: dict[str, list[Any]] = {
    names.NODE_RESOURCES_FIT: fit_args(),
    names.NODE_RESOURCES_BALANCED_ALLOCATION: balance_args(),
    names.NODE_AFFINITY: affinity_args(),
}


def twin_of(plugin: str) -> ModuleType | None:
    """`NodeName` has its twin in `tests/conformance/twins/node_name.py`."""
    path = "tests.conformance.twins." + re.sub(r"(?<!^)(?=[A-Z])", "_", plugin).lower()
    return import_module(path) if find_spec(path) else None


def with_function(plugins: list[str], function: str) -> list[str]:
    return [plugin for plugin in plugins if hasattr(twin_of(plugin), function)]


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", with_function(FILTERS, "reject"))
def test_filter_says_what_its_twin_says(name: str, seed: int) -> None:
    world = a_world(seed)
    args = _args(name, seed)
    plugin = IN_TREE[name](args, world.cluster)
    assert isinstance(plugin, FilterPlugin)
    _compare_rejections(plugin, world, args)
    for _ in changes(world, seed, CHANGES):
        _compare_rejections(plugin, world, args)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", with_function(SCORERS, "raw_score"))
def test_score_says_what_its_twin_says(name: str, seed: int) -> None:
    world = a_world(seed)
    args = _args(name, seed)
    plugin = IN_TREE[name](args, world.cluster)
    assert isinstance(plugin, ScorePlugin)
    _compare_scores(plugin, world, args)
    for _ in changes(world, seed, CHANGES):
        _compare_scores(plugin, world, args)


def _args(name: str, seed: int) -> Any:
    choices = [None, *ARGS.get(name, ())]
    return choices[seed % len(choices)]


def _compare_rejections(plugin: FilterPlugin, world: World, args: Any) -> None:
    twin: Any = twin_of(plugin.name)
    picture = world.picture()
    for pod in world.waiting:
        info = world.cluster.classes.info_of(pod)
        answer = asking.codes(plugin, info, all_rows(world.cluster))
        for place in picture.places:
            expected = twin.reject(pod, place, picture, args)
            if answer.values is None:
                # Left out, every node would do; rejected as a whole, none would.
                assert (expected is None) == (answer.said.status.code is Code.SKIP)
                continue
            code = int(answer.values[world.cluster.nodes.row_of[place.node.name]])
            if answer.said.node_names is not None and place.node.name not in answer.said.node_names:
                assert expected is not None
                continue
            status = plugin.explain(info, code) if code else None
            told = status and (list(status.reasons), status.code is Code.UNSCHEDULABLE)
            assert told == expected, (pod, place)


def _compare_scores(plugin: ScorePlugin, world: World, args: Any) -> None:
    twin: Any = twin_of(plugin.name)
    picture = world.picture()
    rows = [world.cluster.nodes.row_of[place.node.name] for place in picture.places]
    for pod in world.waiting:
        info = world.cluster.classes.info_of(pod)
        answer = asking.scores(plugin, info, world.cluster, all_rows(world.cluster))
        expected = [twin.raw_score(pod, place, picture, args) for place in picture.places]
        if answer.values is None:
            assert expected == [None] * len(expected)
            continue
        raw = answer.values[rows]
        assert raw.tolist() == expected, pod
        assert plugin.normalizes == hasattr(twin, "normalized")
        if plugin.normalizes:
            assert plugin.normalize(raw, answer.said.data).tolist() == twin.normalized(expected)
