"""What every plugin owes the framework: those in the tree, and those that come along in the form
users have. They are found; nobody lists them here.
"""

import re

import numpy as np
import pytest

from asched.core.cluster.cluster import Cluster
from asched.core.cluster.view import NodeView
from asched.core.framework.points import FilterPlugin, ScorePlugin
from asched_lab.pages.headers import header_of
from tests.builders import all_rows
from tests.conformance.contract import asking
from tests.conformance.contract.asking import FILTERS, MAKERS, SCORERS
from tests.conformance.contract.worlds import a_world

SEEDS = range(5)
#: Lines of every header in this order, and what a plugin does, one of them at least.
OWES = ["Retry", "Cost", "Source"]
DOES = ("Rejects", "Prefers", "Orders", "Binds", "Waits", "Evicts")


@pytest.mark.parametrize("name", MAKERS)
def test_the_header_lines_say_what_it_does_when_it_is_retried_and_what_it_costs(name: str) -> None:
    text = header_of(type(MAKERS[name](None, Cluster())))

    headings = re.findall(r"^([A-Z][a-z]+) {2,}\S", text, re.MULTILINE)

    assert set(DOES) & set(headings), f"a line that begins with one of {', '.join(DOES)}"
    assert [h for h in headings if h in OWES] == OWES, f"lines {', '.join(OWES)}, in this order"


@pytest.mark.parametrize("name", MAKERS)
def test_its_name_is_the_one_it_is_listed_under(name: str) -> None:
    assert MAKERS[name](None, Cluster()).name == name


@pytest.mark.parametrize("name", MAKERS)
def test_registrations_name_a_resource_and_are_the_same_each_time(name: str) -> None:
    plugin = MAKERS[name](None, Cluster())

    registrations = plugin.registrations()

    assert registrations is not None
    assert all(r.trigger.resource and r.trigger.action for r in registrations)
    again = plugin.registrations() or ()
    assert [r.trigger for r in again] == [r.trigger for r in registrations]


@pytest.mark.parametrize("name", FILTERS)
def test_filter_answers_for_an_empty_cluster(name: str) -> None:
    cluster = Cluster()
    plugin = MAKERS[name](None, cluster)
    assert isinstance(plugin, FilterPlugin)
    for pod in a_world(0).waiting:
        answer = asking.codes(plugin, cluster.classes.info_of(pod), all_rows(cluster))

        assert answer.values is None or answer.values.shape == (0,)


@pytest.mark.parametrize("name", SCORERS)
def test_score_answers_for_an_empty_view(name: str) -> None:
    world = a_world(1)
    plugin = MAKERS[name](None, world.cluster)
    assert isinstance(plugin, ScorePlugin)
    nothing = NodeView(world.cluster.nodes, np.zeros(0, dtype=np.int32))
    for pod in world.waiting:
        info = world.cluster.classes.info_of(pod)
        answer = asking.scores(plugin, info, world.cluster, nothing)

        assert answer.values is None or answer.values.shape == (0,)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", FILTERS)
def test_codes_are_int32_and_each_is_explained_as_a_rejection(name: str, seed: int) -> None:
    world = a_world(seed)
    plugin = MAKERS[name](None, world.cluster)
    assert isinstance(plugin, FilterPlugin)
    for pod in world.waiting:
        info = world.cluster.classes.info_of(pod)
        codes = asking.codes(plugin, info, all_rows(world.cluster)).values
        if codes is None:
            continue

        assert codes.dtype == np.int32
        for code in set(codes[asking.live_rows(world.cluster)].tolist()) - {0}:
            status = plugin.explain(info, code)
            assert status.is_rejection
            assert status.reasons
            assert all(status.reasons)


@pytest.mark.parametrize("name", FILTERS)
def test_reasons_are_declared(name: str) -> None:
    plugin = MAKERS[name](None, Cluster())
    assert isinstance(plugin, FilterPlugin)

    assert plugin.reasons or type(plugin).explain is not FilterPlugin.explain


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", FILTERS)
def test_few_rows_in_any_order_are_judged_as_all_are(name: str, seed: int) -> None:
    world = a_world(seed)
    plugin = MAKERS[name](None, world.cluster)
    assert isinstance(plugin, FilterPlugin)
    rows = np.random.default_rng(seed).permutation(asking.live_rows(world.cluster))
    for pod in world.waiting:
        info = world.cluster.classes.info_of(pod)
        whole = asking.codes(plugin, info, all_rows(world.cluster)).values
        for some in (rows, rows[:3], rows[:1]):
            part = asking.codes(plugin, info, NodeView(world.cluster.nodes, some)).values

            assert (whole is None) == (part is None)
            if whole is not None and part is not None:
                assert part.tolist() == whole[some].tolist()


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", SCORERS)
def test_few_rows_in_any_order_are_scored_as_all_are(name: str, seed: int) -> None:
    world = a_world(seed)
    plugin = MAKERS[name](None, world.cluster)
    assert isinstance(plugin, ScorePlugin)
    rows = np.random.default_rng(seed).permutation(asking.live_rows(world.cluster))
    for pod in world.waiting:
        info = world.cluster.classes.info_of(pod)
        whole = asking.scores(plugin, info, world.cluster, all_rows(world.cluster))
        for some in (rows, rows[:3], rows[:1]):
            view = NodeView(world.cluster.nodes, some)
            part = asking.scores(plugin, info, world.cluster, view)

            assert (whole.values is None) == (part.values is None)
            if whole.values is not None and part.values is not None:
                assert part.values.tolist() == whole.values[some].tolist()
                assert part.values.dtype == np.int64


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", SCORERS)
def test_final_scores_lie_between_0_and_100(name: str, seed: int) -> None:
    world = a_world(seed)
    plugin = MAKERS[name](None, world.cluster)
    assert isinstance(plugin, ScorePlugin)
    live = asking.live_rows(world.cluster)
    for pod in world.waiting:
        info = world.cluster.classes.info_of(pod)
        answer = asking.scores(plugin, info, world.cluster, all_rows(world.cluster))
        if answer.values is None:
            continue
        raw = answer.values[live]
        final = plugin.normalize(raw, answer.said.data) if plugin.normalizes else raw

        assert final.shape == raw.shape
        assert final.min() >= 0
        assert final.max() <= 100


@pytest.mark.parametrize("name", MAKERS)
def test_asking_changes_no_column(name: str) -> None:
    world = a_world(3)
    plugin = MAKERS[name](None, world.cluster)
    columns = world.cluster.nodes.columns
    before = {column: array.copy() for column, array in columns.write.items()}
    for pod in world.waiting:
        info = world.cluster.classes.info_of(pod)
        answers = []
        if isinstance(plugin, FilterPlugin):
            answers.append(asking.codes(plugin, info, all_rows(world.cluster)).values)
        if isinstance(plugin, ScorePlugin):
            view = all_rows(world.cluster)
            answers.append(asking.scores(plugin, info, world.cluster, view).values)

        for values in answers:
            if values is not None and values.flags.writeable:
                values[:] = 77  # the framework writes into what it was given
        for column, array in before.items():
            if column in columns.write:
                kept = columns.write[column]
                inside = tuple(slice(0, length) for length in array.shape)
                assert np.array_equal(kept[inside], array), column
