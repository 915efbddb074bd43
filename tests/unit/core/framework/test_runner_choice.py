"""Which nodes an attempt looks at, which it takes, and who is asked to make room or to bind."""

from typing import Any

import numpy as np
import pytest

from asched.core.cluster.facts import Seen
from asched.core.cluster.pods import PodInfo
from asched.core.framework.effects import Pause
from asched.core.framework.points import PostFilterPlugin, PostFilterResult
from asched.core.framework.rejection import Rejection
from asched.core.framework.runner import Decision, Runner, run_alone
from asched.core.framework.status import PointError
from asched.core.model.kinds import NODE, POD
from tests.builders import NodeBuilder, PodBuilder, a_node, a_pod, pending, term
from tests.playbook import Play

NODES = 12


class Scene:
    """Twelve nodes of four CPUs; of `n0` three are taken, so that it is the worst."""

    def __init__(self, *plugins: Any, nodes: int = NODES, **config: Any) -> None:
        named = [a_node(f"n{i}").allocatable(cpu="4", memory="8Gi", pods="9") for i in range(nodes)]
        self.play = Play(*named, plugins=plugins, **config)
        self.play.machine.is_active = False
        self.cluster = self.play.parts.cluster
        self.context = self.play.machine.context
        if nodes:
            self.see(a_pod("there").requests(cpu="3").on("n0"))

    @property
    def runner(self) -> Runner:
        return self.context.runners["default-scheduler"]

    def see(self, *objects: PodBuilder | NodeBuilder) -> None:
        for each in objects:
            kind = POD if isinstance(each, PodBuilder) else NODE
            self.play.turn(Seen(kind, each.build()))

    def rows(self, *names: str) -> Any:
        within = np.zeros(self.cluster.nodes.height, dtype=np.bool_)
        within[[self.cluster.nodes.row_of[name] for name in names]] = True
        return within

    def pod(self, pod: PodBuilder) -> PodInfo:
        return pending(self.cluster, pod.spec(schedulerName="default-scheduler"))

    def found(self, pod: PodBuilder, seed: int = 0, within: Any = None) -> Decision | Rejection:
        answer: Decision | Rejection = run_alone(self.runner.schedule(self.pod(pod), seed, within))
        return answer

    def node(self, pod: PodBuilder, seed: int = 0, within: Any = None) -> Decision:
        found = self.found(pod, seed, within)
        assert isinstance(found, Decision), found.message()
        return found


def test_where_a_part_of_the_nodes_is_to_be_scored_no_more_are() -> None:
    """Never fewer than a hundred; the next pod's begin behind them, also within a part."""
    scene = Scene(nodes=404, percentageOfNodesToScore=1)
    drawn = [scene.node(a_pod(), seed) for seed in range(3)]
    assert {one.feasible for one in drawn} == {100}
    assert [one.row // 100 for one in drawn] == [0, 1, 2]
    names = [f"n{i}" for i in range(101)]
    few = scene.node(a_pod(), 0, scene.rows(*names))
    assert (few.node in names, few.feasible) == (True, 100)
    assert scene.node(a_pod()).row // 100 == 1, "behind those of the part"
    narrowed = a_pod().requires_nodes(*(term(fields=[f"metadata.name In {n}"]) for n in names))
    half = Scene(nodes=404, percentageOfNodesToScore=50)
    half.see(*(a_node(f"n{i}").labels(disk="ssd") for i in range(220)))
    assert half.node(a_pod().selects(disk="ssd")).feasible == 202, "half of all, not of these"
    assert half.node(a_pod()).feasible == 202
    assert half.node(narrowed).feasible == 100, "a half of those that are looked at, at least 100"


def a_room(name: str, answer: Any) -> Any:
    class Room(PostFilterPlugin):
        asked = 0

        def post_filter(self, pod: Any, rejection: Any, trial: Any) -> Any:
            type(self).asked += 1
            return answer() if callable(answer) else answer

    Room.name = name
    return Room


def post_filtered(*plugins: Any) -> PostFilterResult:
    """Of those plugins alone."""
    enabled = [{"name": plugin.name} for plugin in plugins]
    points = {
        "multiPoint": {"enabled": enabled},
        "postFilter": {"disabled": [{"name": "DefaultPreemption"}]},
    }
    profile = {"schedulerName": "default-scheduler", "plugins": points}
    play = Play(a_node("n1"), plugins=plugins, profiles=[profile])
    context = play.machine.context
    runner = context.runners["default-scheduler"]
    play.machine.is_active = False
    pod = pending(play.parts.cluster, a_pod().requests(cpu="99"))
    rejection = run_alone(runner.schedule(pod, 0))
    assert isinstance(rejection, Rejection)
    trial = runner.trial(runner.cache.state_of(pod), context.waiting, 5, 7.0)
    assert (trial.seed, trial.now_s, trial.scheduler_name) == (5, 7.0, "default-scheduler")
    result: PostFilterResult = run_alone(runner.post_filter(pod, rejection, trial))
    return result


def test_who_makes_room_may_yield_effects_and_nothing_else() -> None:
    """Nobody is there to answer effects here; that they come out tells as much."""

    def steps(effect: Any) -> Any:
        yield effect

    with pytest.raises(PointError, match=r"Pause.* needs an answer"):
        post_filtered(a_room("A", lambda: steps(Pause())))
    with pytest.raises(PointError, match='running postFilter plugin "A": answered 7 '):
        post_filtered(a_room("A", lambda: steps(7)))
