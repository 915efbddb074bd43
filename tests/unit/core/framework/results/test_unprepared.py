"""Plugins that are disabled at preFilter or preScore alone."""

import pytest

from asched.core.cluster.facts import Seen
from asched.core.config.defaults import configuration
from asched.core.framework.rejection import Rejection
from asched.core.framework.runner import Decision, Runner, run_alone
from asched.core.framework.status import Code, PointError
from asched.core.framework.waiting import WaitingPods
from asched.core.model.kinds import NODE
from asched.host.assemble import Parts, build_runners
from tests.builders import NodeBuilder, PodBuilder, a_node, a_pod, pending

PRE_FILTER = {
    "NodePorts": 'reading "PreFilterNodePorts" from cycleState: not found',
    "NodeResourcesFit": 'error reading "PreFilterNodeResourcesFit" from cycleState: not found',
    "VolumeRestrictions": 'cannot read "PreFilterVolumeRestrictions" from cycleState',
    "VolumeBinding": "not found",
    "PodTopologySpread": 'reading "PreFilterPodTopologySpread" from cycleState: not found',
    "InterPodAffinity": 'error reading "PreFilterInterPodAffinity" from cycleState: not found',
    "DynamicResources": "not found",
    "NodeDeclaredFeatures": (
        'error reading "PreFilterNodeDeclaredFeatures" from cycle-state: not found'
    ),
}
PRE_SCORE = {
    "TaintToleration": 'failed to read "PreScoreTaintToleration" from cycleState: not found',
    "PodTopologySpread": 'error reading "PreScorePodTopologySpread" from cycleState: not found',
    "InterPodAffinity": 'failed to read "PreScoreInterPodAffinity" from cycleState: not found',
}


def a_runner(point: str, plugin: str, *nodes: NodeBuilder) -> Runner:
    """A default profile with the plugin disabled at one point."""
    profile = {"schedulerName": "s", "plugins": {point: {"disabled": [{"name": plugin}]}}}
    parts = Parts.fresh()
    runner = build_runners(configuration({"profiles": [profile]}), parts)["s"]
    for node in nodes:
        parts.cluster.apply(Seen(NODE, node.build()))
    return runner


def attempt(runner: Runner, pod: PodBuilder) -> Decision | Rejection:
    return run_alone(runner.schedule(pending(runner.cluster, pod), 0))


@pytest.mark.parametrize(("plugin", "text"), PRE_FILTER.items())
def test_a_filter_without_what_it_prepares_is_an_error(plugin: str, text: str) -> None:
    runner = a_runner("preFilter", plugin, a_node("n1"), a_node("n2"))
    with pytest.raises(PointError) as error:
        attempt(runner, a_pod())
    assert str(error.value) == f'running "{plugin}" filter plugin: {text}'


def test_it_is_none_where_an_earlier_filter_said_no() -> None:
    runner = a_runner("preFilter", "InterPodAffinity", a_node("n1").cordoned())
    found = attempt(runner, a_pod())
    assert isinstance(found, Rejection)
    assert found.message() == "0/1 nodes are available: 1 node(s) were unschedulable."


@pytest.mark.parametrize("plugin", ["NodeAffinity", "VolumeZone", "NodeVolumeLimits"])
def test_some_filters_can_do_without(plugin: str) -> None:
    runner = a_runner("preFilter", plugin, a_node("n1"), a_node("n2").labels(disk="ssd"))
    found = attempt(runner, a_pod().selects(disk="ssd"))
    assert isinstance(found, Decision)
    assert found.node == "n2"


def test_without_its_turn_dynamic_resources_ends_the_making_of_room() -> None:
    runner = a_runner("preFilter", "DynamicResources", a_node("n1").cordoned())
    pod = pending(runner.cluster, a_pod())
    rejection = run_alone(runner.schedule(pod, 0))
    assert isinstance(rejection, Rejection)
    trial = runner.trial(runner.cache.state_of(pod), WaitingPods(), 0, 0.0)
    result = run_alone(runner.post_filter(pod, rejection, trial))
    assert (result.status.code, result.status.message) == (Code.ERROR, "not found")


@pytest.mark.parametrize(("plugin", "text"), PRE_SCORE.items())
def test_a_scorer_without_what_it_prepares_is_an_error(plugin: str, text: str) -> None:
    runner = a_runner("preScore", plugin, a_node("n1"), a_node("n2"))
    with pytest.raises(PointError) as error:
        attempt(runner, a_pod())
    assert str(error.value) == (f'running Score plugins: plugin "{plugin}" failed with: {text}')


def test_a_single_node_is_not_scored() -> None:
    runner = a_runner("preScore", "TaintToleration", a_node("n1"))
    assert isinstance(attempt(runner, a_pod()), Decision)


@pytest.mark.parametrize("plugin", ["NodeAffinity", "NodeResourcesFit"])
def test_some_scorers_can_do_without(plugin: str) -> None:
    runner = a_runner("preScore", plugin, a_node("n1"), a_node("n2"))
    assert isinstance(attempt(runner, a_pod()), Decision)


def test_a_pod_without_requests_is_balanced_nowhere() -> None:
    runner = a_runner("preScore", "NodeResourcesBalancedAllocation", a_node("n1"), a_node("n2"))
    found = attempt(runner, a_pod())
    assert isinstance(found, Decision)
    for row in (0, 1):
        scorers, points = found.state.ranking.points_of(row)
        given = dict(zip((name for name, _ in scorers), points[1::2], strict=True))
        assert given["NodeResourcesBalancedAllocation"] == 0
