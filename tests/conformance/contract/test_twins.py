"""Every in-tree filter and score against its twin, on random clusters. Twins are found by the
plugin's name; a plugin without one stands in `NO_TWIN`.
"""

import re
from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import pytest

from asched import names
from asched.core.framework.points import FilterPlugin, ScorePlugin
from asched.core.framework.status import Code
from asched.core.model.pod import Pod
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
from tests.conformance.twins.picture import Picture, Place
from tests.support import ROOT

SEEDS = range(12)
CHANGES = 5

#: Arguments that a plugin's twin is tried with.
ARGS: dict[str, list[Any]] = {
    names.NODE_RESOURCES_FIT: fit_args(),
    names.NODE_RESOURCES_BALANCED_ALLOCATION: balance_args(),
    names.NODE_AFFINITY: affinity_args(),
}


#: Where the rule is written a second time for in-tree plugins without a twin of this form.
#: They read other pods of the whole cluster, volumes, claims or reservations.
NO_TWIN = {
    "PodTopologySpread": "tests/unit/core/plugins/pod_topology_spread/test_plugin.py",
    "InterPodAffinity": "tests/unit/core/plugins/inter_pod_affinity/test_plugin.py",
    "DynamicResources": "tests/unit/core/dra/test_twin.py",
    "VolumeRestrictions": "tests/unit/core/plugins/volumes/test_volumes.py",
    "NodeVolumeLimits": "tests/unit/core/plugins/volumes/test_volumes.py",
    "VolumeBinding": "tests/unit/core/plugins/volumes/test_volumes.py",
    "VolumeZone": "tests/unit/core/plugins/volumes/test_volumes.py",
    "Backfill": "tests/backfill/test_backfill.py",
}


def with_twin(plugins: list[str]) -> list[str]:
    return [name for name in plugins if name in IN_TREE and name not in NO_TWIN]


def twin_of(plugin: str, function: str) -> Any:
    """`NodeName` has its twin in `tests/conformance/twins/node_name.py`."""
    path = "tests.conformance.twins." + re.sub(r"(?<!^)(?=[A-Z])", "_", plugin).lower()
    twin = import_module(path) if find_spec(path) else None
    file = path.replace(".", "/")
    assert hasattr(twin, function), (
        f"{plugin} has no twin: write `{function}` in {file}.py, or a reason into NO_TWIN"
    )
    return twin


def test_what_has_no_twin_is_written_twice_elsewhere() -> None:
    assert NO_TWIN.keys() <= {*FILTERS, *SCORERS}
    assert [path for path in NO_TWIN.values() if not (ROOT / path).exists()] == []


@pytest.mark.parametrize("name", with_twin(FILTERS))
def test_the_random_clusters_have_nodes_that_fit_and_others(name: str) -> None:
    verdicts = {
        twin_of(name, "reject").reject(pod, place, picture, None) is None
        for picture, pod, place in _cases()
    }
    assert verdicts == {True, False}, f"what {name} reads is not in worlds.py"


@pytest.mark.parametrize("name", with_twin(SCORERS))
def test_the_random_clusters_have_nodes_of_different_scores(name: str) -> None:
    scores = {
        twin_of(name, "raw_score").raw_score(pod, place, picture, None)
        for picture, pod, place in _cases()
    }
    assert len(scores - {None}) > 1, f"what {name} reads is not in worlds.py"


def _cases() -> Iterator[tuple[Picture, Pod, Place]]:
    for world in map(a_world, SEEDS):
        picture = world.picture()
        for pod in world.waiting:
            for place in picture.places:
                yield picture, pod, place


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", with_twin(FILTERS))
def test_filter_says_what_its_twin_says(name: str, seed: int) -> None:
    world = a_world(seed)
    args = _args(name, seed)
    plugin = IN_TREE[name](args, world.cluster)
    assert isinstance(plugin, FilterPlugin)
    _compare_rejections(plugin, world, args)
    for _ in changes(world, seed, CHANGES):
        _compare_rejections(plugin, world, args)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", with_twin(SCORERS))
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
    twin = twin_of(plugin.name, "reject")
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
    twin = twin_of(plugin.name, "raw_score")
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
