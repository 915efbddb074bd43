"""What a plugin says of the lifetime of its answers must be true, or stale answers are used.

Plugins are found by `asking.py`; worlds change at random. An answer made before a change is
compared with one made after it, on all rows that the plugin's aspects, kinds, stamp and log call
unchanged.
"""

from random import Random

import msgspec
import numpy as np
import numpy.typing as npt
import pytest

from asched.core.cluster.nodes import Aspect
from asched.core.cluster.pods import PodInfo
from asched.core.framework.points import IDLE, CachedPlugin, FilterPlugin, ScorePlugin
from asched.core.model.pod import Pod
from tests.builders import all_rows, pending
from tests.conformance.contract import asking
from tests.conformance.contract.asking import FILTERS, MAKERS, SCORERS, Answer
from tests.conformance.contract.worlds import World, a_world, changes, random_pod

SEEDS = range(5)
CHANGES = 12


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", dict.fromkeys((*FILTERS, *SCORERS)))
def test_pods_with_equal_keys_get_equal_answers(name: str, seed: int) -> None:
    world = a_world(seed)
    plugin = MAKERS[name](None, world.cluster)
    assert isinstance(plugin, CachedPlugin)
    infos = [
        world.cluster.classes.info_of(version)
        for pod in world.waiting
        for version in (pod, _lookalike(pod))
    ]
    by_key: dict[object, object] = {}
    for info in infos:
        answers = [_on_live_rows(a, world) for a in _ask(plugin, info, world)]

        assert by_key.setdefault(plugin.share_key(info), answers) == answers


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", FILTERS)
def test_pods_with_equal_verdict_keys_are_rejected_alike_at_any_moment(
    name: str, seed: int
) -> None:
    """By the same plugin on the same rows, be it in other words."""
    world = a_world(seed)
    plugin = MAKERS[name](None, world.cluster)
    assert isinstance(plugin, CachedPlugin)
    for _ in changes(world, seed, CHANGES):
        by_key: dict[object, object] = {}
        for pod in world.waiting:
            info = world.cluster.classes.info_of(pod)
            (answer,) = _ask(plugin, info, world)[:1]
            said = answer.said.status.code, _on_live_rows(answer, world)

            assert by_key.setdefault(plugin.verdict_key(info), said) == said


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", dict.fromkeys((*FILTERS, *SCORERS)))
def test_answers_change_only_where_the_plugin_says_so(name: str, seed: int) -> None:
    world = a_world(seed)
    plugin = MAKERS[name](None, world.cluster)
    assert isinstance(plugin, CachedPlugin)
    if plugin.depends_on is None:
        pytest.skip("it is asked anew in every attempt")
    if isinstance(plugin, ScorePlugin) and plugin.reads_feasible:
        pytest.skip("its answers hold for one set of feasible nodes only")
    pods = [world.cluster.classes.info_of(pod) for pod in world.waiting]
    kept = [_ask(plugin, pod, world) for pod in pods]
    epoch, cursor = asking.kinds_epoch(plugin, world.cluster), world.cluster.nodes.log.end
    for _ in changes(world, seed, CHANGES):
        changed = _changed_rows(world, cursor, plugin.depends_on)
        moved = epoch != asking.kinds_epoch(plugin, world.cluster)
        for position, pod in enumerate(pods):
            fresh = _ask(plugin, pod, world)
            for old, new in zip(kept[position], fresh, strict=True):
                if moved or plugin.stamp(pod, old.said.data) != old.stamp:
                    continue
                told = old.moved_rows()
                if told is not None:
                    others = changed | told
                    assert _outside(others, old, world) == _outside(others, new, world)
            kept[position] = fresh
        epoch, cursor = asking.kinds_epoch(plugin, world.cluster), world.cluster.nodes.log.end


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", dict.fromkeys((*FILTERS, *SCORERS)))
def test_an_idle_plugin_has_nothing_to_say(name: str, seed: int) -> None:
    """It is left out, so it must let every node pass and give each the same."""
    world = a_world(seed)
    plugin = MAKERS[name](None, world.cluster)
    assert isinstance(plugin, CachedPlugin)
    for _ in changes(world, seed, CHANGES):
        for pod in world.waiting:
            info = world.cluster.classes.info_of(pod)
            if plugin.share_key(info) is IDLE:
                for answer in _ask(plugin, info, world):
                    assert not any(_on_live_rows(answer, world) or ())


@pytest.mark.parametrize("name", FILTERS)
def test_a_trial_is_judged_like_the_real_thing_and_leaves_no_trace(name: str) -> None:
    world, real = (a_world(5, rejoined=False) for _ in range(2))
    plugin, other = MAKERS[name](None, world.cluster), MAKERS[name](None, real.cluster)
    assert isinstance(plugin, FilterPlugin)
    assert isinstance(other, FilterPlugin)
    extra = random_pod(Random(5), "extra").on("node-0")
    real.see_pod(extra.build())
    row = world.cluster.nodes.row_of["node-0"]
    for pod in world.waiting:
        info, twin = (w.cluster.classes.info_of(pod) for w in (world, real))
        before = asking.codes(plugin, info, all_rows(world.cluster))
        with world.cluster.supposing().there([pending(world.cluster, extra)], row):
            during = asking.codes(plugin, info, all_rows(world.cluster))
        after = asking.codes(plugin, info, all_rows(world.cluster))
        expected = asking.codes(other, twin, all_rows(real.cluster))

        assert _on_live_rows(during, world) == _on_live_rows(expected, real)
        assert _on_live_rows(after, world) == _on_live_rows(before, world)


def _ask(plugin: CachedPlugin, pod: PodInfo, world: World) -> list[Answer]:
    answers = []
    if isinstance(plugin, FilterPlugin):
        answers.append(asking.codes(plugin, pod, all_rows(world.cluster)))
    if isinstance(plugin, ScorePlugin) and not plugin.reads_feasible:
        answers.append(asking.scores(plugin, pod, world.cluster, all_rows(world.cluster)))
    return answers


def _on_live_rows(answer: Answer, world: World) -> list[int] | None:
    return _outside(set(), answer, world)


def _outside(changed: set[int], answer: Answer, world: World) -> list[int] | None:
    """The answer for all live rows but these."""
    if answer.values is None:
        return None
    rows = [row for row in asking.live_rows(world.cluster).tolist() if row not in changed]
    values: npt.NDArray[np.int64] = answer.values
    return [int(values[row]) for row in rows]


def _changed_rows(world: World, cursor: int, aspects: Aspect) -> set[int]:
    rows = world.cluster.nodes.log.rows(cursor, int(aspects))
    assert rows is not None
    return set(rows)


def _lookalike(pod: Pod) -> Pod:
    """The same spec under another name and with one more label: another class of pods."""
    labels = {**(pod.metadata.labels or {}), "one": "more"}
    metadata = msgspec.structs.replace(pod.metadata, name="other", uid="other", labels=labels)
    return msgspec.structs.replace(pod, metadata=metadata)
