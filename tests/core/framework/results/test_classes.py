"""The state of a class: filters folded into a mask, asked again where what they read has moved."""

from typing import Any

import numpy as np
import pytest

from asched.core.framework.points import FilterPlugin, PreFilterPlugin, PreFilterResult
from asched.core.framework.results.classes import ClassState
from asched.core.framework.status import PointError, Status, unresolvable, unschedulable
from asched.core.model.kinds import NODE, POD
from asched.core.state.cluster import Cluster
from asched.core.state.facts import Seen
from asched.core.state.nodes import Aspect
from tests.builders import PodBuilder, a_node, a_pod
from tests.core.cycle.playbook import Play
from tests.core.framework.results.kernels import Cpus


class Narrow(PreFilterPlugin, FilterPlugin):
    """Narrows to the nodes it is told; its filter rejects rows of `full`."""

    name = "Narrow"
    depends_on = Aspect(0)
    reads_counts = True
    names: frozenset[str] | None = None
    status = unschedulable("x")
    rejects = False
    full: frozenset[int] = frozenset()
    asked = 0
    version = 0

    def stamp(self, pod: Any, data: Any) -> Any:
        return type(self).version

    def pre_filter(self, pod: Any) -> PreFilterResult:
        type(self).asked += 1
        if type(self).rejects:
            return PreFilterResult(type(self).status)
        return PreFilterResult(node_names=type(self).names, data="prepared")

    def filter(self, pod: Any, nodes: Any, data: Any) -> Any:
        full = type(self).full
        return np.array([2 * (row in full) for row in nodes.row_numbers()], dtype=np.int32)

    def explain(self, pod: Any, code: int) -> Status:
        return unresolvable("narrow")


@pytest.fixture
def narrow(monkeypatch: pytest.MonkeyPatch) -> type[Narrow]:
    """A class of its own for each test."""
    return type("Narrow", (Narrow,), {"asked": 0})


class Big(Cpus):
    name = "Big"


class Scene:
    def __init__(self, *plugins: Any, count: int = 3) -> None:
        nodes = [a_node(f"n{at}").allocatable(cpu="8") for at in range(count)]
        self.play = Play(*nodes, plugins=plugins)
        self.cluster: Cluster = self.play.parts.cluster
        self.runner = self.play.machine.context.runners["default-scheduler"]
        self.info = self.cluster.classes.info_of(a_pod("web").requests(cpu="1").build())

    @property
    def state(self) -> ClassState:
        return self.runner.cache.state_of(self.info)

    def updated(self) -> list[bool]:
        self.state.update(self.info)
        return self.state.feasible.tolist()

    def offer(self, **cpus: int) -> None:
        for name, cpu in cpus.items():
            self.cluster.apply(Seen(NODE, a_node(name).allocatable(cpu=str(cpu)).build()))

    def see(self, pod: PodBuilder) -> None:
        self.cluster.apply(Seen(POD, pod.build()))


def test_filters_are_folded_into_a_mask_that_follows_the_rows() -> None:
    scene = Scene(Big)
    assert scene.updated() == [True] * 3
    scene.offer(n1=2)
    assert scene.updated() == [True, False, True]
    assert (scene.state.feasible_count, scene.state.fits(0), scene.state.fits(1)) == (
        2,
        True,
        False,
    )
    scene.offer(n1=8)
    assert scene.updated() == [True] * 3


def test_the_first_filter_that_rejects_a_row_judges_it(narrow: Any) -> None:
    narrow.full = frozenset({1, 2})
    scene = Scene(Big, narrow)
    scene.offer(n1=2)
    scene.updated()
    judge, codes, plugins = scene.state.judges()
    said = [plugins[at - 1].name if at else "" for at in judge.tolist()]
    by_name = dict(zip(("n0", "n1", "n2"), zip(said, codes.tolist(), strict=True), strict=True))
    order = [plugin.name for plugin in plugins]
    first = ("Big", 1) if order.index("Big") < order.index("Narrow") else ("Narrow", 2)
    assert by_name == {"n0": ("", 0), "n1": first, "n2": ("Narrow", 2)}


def test_rows_that_pre_filter_left_out_are_out_and_may_still_be_judged(narrow: Any) -> None:
    narrow.names = frozenset({"n1"})
    narrow.full = frozenset({2})
    scene = Scene(narrow)
    assert scene.updated() == [False, True, False]
    assert scene.state.fits(1)
    assert scene.state.fits(0), "the filters have nothing against it"
    assert not scene.state.fits(2)
    scene.cluster.nodes.remove("n0")
    scene.updated()
    assert not scene.state.fits(0)


def test_counts_that_moved_have_pre_filter_folded_again_if_it_says_something_else(
    narrow: Any,
) -> None:
    scene = Scene(narrow)
    assert scene.updated() == [True] * 3
    before = narrow.asked
    scene.see(a_pod("plain").requests(cpu="1").on("n0"))
    scene.updated()
    assert narrow.asked == before, "no count moved"
    narrow.names, narrow.version = frozenset({"n2"}), 1
    scene.see(a_pod("port").host_port(80).on("n0"))
    assert scene.updated() == [False, False, True]
    assert narrow.asked == before + 1
    narrow.names, narrow.version = None, 2
    scene.see(a_pod("port2").host_port(81).on("n0"))
    assert scene.updated() == [True] * 3


def test_a_rejection_of_pre_filter_is_asked_about_again(narrow: Any) -> None:
    narrow.rejects = True
    scene = Scene(narrow)
    outcome = scene.state.update(scene.info)
    assert outcome.rejection == unschedulable("x").by("Narrow")
    narrow.rejects, narrow.version = False, 1
    assert scene.updated() == [True] * 3
    assert scene.state.update(scene.info).rejection is None


def test_what_pre_filter_prepared_is_found_by_its_plugin(narrow: Any) -> None:
    scene = Scene(narrow)
    scene.updated()
    assert scene.state.data_of("Narrow") == "prepared"
    assert scene.state.data_of("Unknown") is None


class Failing(Big):
    name = "Failing"
    errors_from = 1


def test_a_filter_that_fails_ends_the_attempt_unless_one_node_is_looked_at_first() -> None:
    scene = Scene(Failing)
    scene.updated()
    scene.offer(n1=2)
    scene.state.update(scene.info, spares=True)
    with pytest.raises(PointError, match='running "Failing" filter plugin'):
        scene.state.end_on_errors(scene.info)
    with pytest.raises(PointError):
        scene.updated()


class Left(Big):
    """Is asked about rows alone that nobody rejected before."""

    name = "Left"
    depends_on = None
    asks_left = True
    rows: list[list[int]]

    def filter(self, pod: Any, nodes: Any, data: Any) -> Any:
        type(self).rows.append(nodes.row_numbers().tolist())
        return np.zeros(nodes.size, dtype=np.int32)


def test_a_filter_may_be_asked_about_what_others_left(narrow: Any) -> None:
    Left.rows = []
    narrow.names = frozenset({"n0", "n1"})
    scene = Scene(Big, narrow, Left)
    scene.offer(n1=2)
    scene.updated()
    assert Left.rows == [[0]]
    assert not scene.state.fits(2), "nobody has asked it about that row"
    scene.updated()
    assert Left.rows == [[0], [0]], "it is asked every time"


def test_a_ranking_over_some_rows_is_not_kept() -> None:
    scene = Scene()
    scene.updated()
    whole = scene.state.rank(scene.info).tolist()
    some = scene.state.rank(scene.info, np.array([True, False, False]))
    assert some[0] > some[1] == some[2]
    assert scene.state.rank(scene.info).tolist() == whole


def test_states_are_told_apart_and_name_their_filters() -> None:
    one, other = Scene(Big), Scene()
    assert one.state.number != other.state.number
    one.updated()
    assert "Big" in one.state.filters
    assert {"NodeResourcesFit", "NodeName", "TaintToleration"} <= set(one.state.filters)
