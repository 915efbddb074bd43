"""Rejections: made once for equals while nothing moves, and anew for everybody else."""

from typing import Any

import numpy as np

from asched.core.config.defaults import default_configuration
from asched.core.framework.attempt import Rejection
from asched.core.framework.points import FilterPlugin
from asched.core.framework.runner import Runner, run_alone
from asched.core.framework.status import Reason
from asched.core.model.kinds import NODE, POD
from asched.core.state.facts import Seen
from asched.host.assemble import Parts, build_runners
from tests.builders import PodBuilder, a_node, a_pod, pending
from tests.core.cycle.playbook import Play


class Scene:
    def __init__(self) -> None:
        self.parts = Parts.fresh()
        self.cluster = self.parts.cluster
        self.runner: Runner = build_runners(default_configuration("s"), self.parts)["s"]
        for name in ("n1", "n2"):
            self.see(NODE, a_node(name).allocatable(cpu="2"))

    def see(self, kind: Any, builder: Any) -> None:
        self.cluster.apply(Seen(kind, builder.build()))

    def try_(self, pod: PodBuilder, within: Any = None) -> Rejection:
        found = run_alone(self.runner.schedule(pending(self.cluster, pod), 0, within))
        assert isinstance(found, Rejection)
        return found


def large(name: str = "web", cpu: str = "3") -> PodBuilder:
    return a_pod(name).requests(cpu=cpu).metadata(uid=name)


def test_equals_share_one_and_others_do_not() -> None:
    scene = Scene()
    first = scene.try_(large())
    assert scene.try_(large("equal")) is first
    assert first.message() == "0/2 nodes are available: 2 Insufficient cpu."
    assert scene.try_(large("larger", "4")) is not first
    assert scene.try_(large("labelled").labels(app="x")) is not first
    assert scene.try_(large().priority(1)) is not first


def test_whatever_moves_has_it_made_anew() -> None:
    scene = Scene()
    first = scene.try_(large())
    scene.see(NODE, a_node("n2").allocatable(cpu="2").cordoned())
    second = scene.try_(large("equal"))
    assert second.message() == (
        "0/2 nodes are available: 1 Insufficient cpu, 1 node(s) were unschedulable."
    )
    assert first.message() == "0/2 nodes are available: 2 Insufficient cpu."
    scene.see(POD, a_pod("placed").requests(cpu="1").on("n1"))
    assert scene.try_(large("third")) is not second
    scene.see(NODE, a_node("n3").allocatable(cpu="1"))
    assert scene.try_(large("fourth")).node_count == 3


def test_who_is_told_something_of_its_own_shares_nothing() -> None:
    scene = Scene()
    first = scene.try_(large())
    nominated = large("nominated").status(nominatedNodeName="n1")
    assert scene.try_(nominated) is not first
    within = scene.cluster.nodes.columns.read("live").copy()
    within[scene.cluster.nodes.row_of["n2"]] = False
    assert scene.try_(large(), within[: scene.cluster.nodes.height]).node_count == 1
    info = pending(scene.cluster, large())
    state = scene.runner.cache.state_of(info)
    blamed = scene.runner.rejection(info, state, {}, frozenset({"Extender"}))
    assert blamed.unschedulable_plugins == {"NodeResourcesFit", "Extender"}
    assert scene.try_(large()).unschedulable_plugins == {"NodeResourcesFit"}


class Moody(FilterPlugin):
    """Says something else each time: what it reads, nobody knows."""

    name = "Moody"
    reasons = (Reason("not today", resolvable=True),)

    def filter(self, pod: Any, nodes: Any, data: Any) -> Any:
        return np.ones(nodes.size, dtype=np.int32)


def test_where_a_filter_is_asked_anew_each_time_nothing_is_shared() -> None:
    play = Play(a_node("n1"), plugins=[Moody])
    play.machine.is_active = False
    (runner,) = play.machine.context.runners.values()
    first, second = (
        run_alone(runner.schedule(pending(play.parts.cluster, large(name, "1")), 0))
        for name in ("one", "two")
    )
    assert first is not second
    assert first.message() == second.message() == "0/1 nodes are available: 1 not today."
