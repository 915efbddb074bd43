"""One decision of another scheduler, judged: the same, as good, worse, or not to be had here."""

from typing import Any, ClassVar

import pytest

from asched.core.framework.points import FilterPlugin
from asched.core.state.nodes import Aspect
from asched.insight.shadow.finding import Agreement, OtherVerdict, ShadowFinding
from asched.insight.shadow.judging import ShadowJudge
from tests.builders import NodeBuilder, PodBuilder, a_node, a_pod
from tests.core.cycle.playbook import Play
from tests.core.framework.results.kernels import CpuScore

NO_CPU = "0/1 nodes are available: 1 Insufficient cpu."


class Scene:
    def __init__(self, *nodes: NodeBuilder, plugins: Any = (), **config: Any) -> None:
        self.play = Play(*nodes, plugins=plugins, **config)
        self.play.machine.is_active = False
        self.context = self.play.machine.context
        self.runner = self.context.runners["default-scheduler"]
        self.judge = ShadowJudge(self.context, self.runner)

    def placed(self, pod: PodBuilder, node: str) -> ShadowFinding:
        return self.judge.placed(pod.build(), node)

    def refused(self, pod: PodBuilder, message: str, nominated: str = "") -> ShadowFinding:
        return self.judge.refused(pod.build(), message, nominated)


def room(name: str, cpu: int = 4) -> NodeBuilder:
    return a_node(name).allocatable(cpu=str(cpu), memory="8Gi", pods="110")


def wants(cpu: str = "1") -> PodBuilder:
    return a_pod("web").requests(cpu=cpu, memory="1Gi")


def test_the_same_node_is_the_same() -> None:
    found = Scene(room("n1")).placed(wants(), "n1")
    assert found == ShadowFinding(
        "default/web", "default-scheduler", OtherVerdict.PLACED, Agreement.SAME, "n1", "n1"
    )


def test_another_node_with_as_high_a_score_is_as_right() -> None:
    scene = Scene(room("n1"), room("n2"))
    outcomes = {scene.placed(wants(), node).outcome for node in ("n1", "n2")}
    assert outcomes == {Agreement.SAME, Agreement.TIE}


def test_a_node_with_a_lower_score_is_told_with_who_made_the_difference() -> None:
    scene = Scene(room("n1", 64), room("n2", 2), plugins=(CpuScore,))
    found = scene.placed(wants(), "n2")
    assert (found.outcome, found.ours) == (Agreement.SCORE, "n1")
    points = {one["plugin"]: one for one in found.details["points"]}
    gains = {name: one["ours"] - one["theirs"] for name, one in points.items()}
    assert gains[found.plugin] == max(gains.values()) > 0
    for whose, total in (("theirs", "score"), ("ours", "ours")):
        assert sum(one[whose] for one in points.values()) == found.details[total]
    assert points["CpuScore"] == {"plugin": "CpuScore", "weight": 1, "theirs": 2, "ours": 64}


def test_a_node_that_does_not_fit_is_told_by_whom() -> None:
    scene = Scene(room("n1"), room("n2", 1))
    found = scene.placed(wants("2"), "n2")
    assert (found.outcome, found.plugin) == (Agreement.REFUSED, "NodeResourcesFit")
    assert (found.ours, found.details) == ("n1", {"reason": "Insufficient cpu"})
    nowhere = Scene(room("n1", 1)).placed(wants("2"), "n1")
    assert (nowhere.outcome, nowhere.plugin, nowhere.ours) == (
        Agreement.REFUSED,
        "NodeResourcesFit",
        "",
    )


def test_a_node_that_nobody_knows_is_unknown() -> None:
    assert Scene(room("n1")).placed(wants(), "n9").outcome is Agreement.UNKNOWN_NODE


def test_who_scores_a_part_of_the_nodes_may_miss_the_best() -> None:
    nodes = [room(f"n{number}", 64) for number in range(130)]
    nodes.append(room("small", 2))
    found = Scene(*nodes, percentageOfNodesToScore=1).placed(wants(), "small")
    assert (found.outcome, found.details["fits"]) == (Agreement.SAMPLED, 131)
    every = Scene(*nodes, percentageOfNodesToScore=100).placed(wants(), "small")
    assert every.outcome is Agreement.SCORE


def test_the_same_refusal_is_the_same() -> None:
    ours = Scene(room("n1")).refused(wants("9"), "x").details["ours"]
    assert ours.startswith(NO_CPU)
    assert Scene(room("n1")).refused(wants("9"), ours).outcome is Agreement.SAME
    found = Scene(room("n1")).refused(wants("9"), "no room")
    assert (found.outcome, found.details["message"]) == (Agreement.WORDS, "no room")


def test_what_is_refused_there_and_fits_here_is_placeable() -> None:
    found = Scene(room("n1")).refused(wants(), NO_CPU)
    assert (found.verdict, found.outcome, found.ours) == (
        OtherVerdict.UNSCHEDULABLE,
        Agreement.PLACEABLE,
        "n1",
    )


def test_room_that_is_made_elsewhere_is_told_and_nothing_comes_of_it() -> None:
    scene = Scene(room("n1"), room("n2"))
    for number, priority in ((1, 5), (2, 1)):
        low = a_pod(f"low{number}").requests(cpu="4").priority(priority).on(f"n{number}")
        scene.play.see(low)
    vip = wants("4").priority(9)
    scene.play.see(vip)
    first = scene.refused(vip, "x")
    message = first.details["ours"]
    assert first.ours == "n2", "the less important one goes"
    assert scene.refused(vip, message, "n2").outcome is Agreement.SAME
    assert scene.refused(vip, message, "n1").outcome is Agreement.NOMINATION
    assert scene.refused(vip, message).outcome is Agreement.NOMINATION
    assert len(scene.context.nominator) == 0
    assert len(scene.play.parts.cluster.placed) == 2


class Failing(FilterPlugin):
    name = "Failing"
    depends_on: ClassVar = Aspect.LABELS

    def filter(self, pod: Any, nodes: Any, data: Any) -> Any:
        raise ZeroDivisionError("oops")


@pytest.mark.parametrize("verdict", list(OtherVerdict))
def test_what_fails_here_is_an_error(verdict: OtherVerdict) -> None:
    scene = Scene(room("n1"), plugins=[Failing])
    found = (
        scene.placed(wants(), "n1")
        if verdict is OtherVerdict.PLACED
        else scene.refused(wants(), "no room")
    )
    assert found.outcome is Agreement.ERROR
    assert "ZeroDivisionError: oops" in found.details["error"]


def test_where_extenders_have_a_say_a_difference_is_nobody_s_fault() -> None:
    scene = Scene(room("n1"), room("n2", 1))
    scene.runner.consults = lambda _info: True  # type: ignore[method-assign]
    assert scene.placed(wants("2"), "n1").outcome is Agreement.SAME
    assert scene.placed(wants("2"), "n2").outcome is Agreement.EXTENDER
    assert scene.refused(wants(), NO_CPU).outcome is Agreement.EXTENDER
