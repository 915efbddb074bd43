"""When a pod may preempt, and what it is told if it may not."""

import pytest

from asched.core.cluster.facts import Seen
from asched.core.framework.status import Code
from asched.core.model.kinds import DEVICE_CLASS, RESOURCE_CLAIM, RESOURCE_SLICE
from asched.core.plugins.default_preemption import DefaultPreemption
from tests.builders import a_node, a_pod
from tests.device_builders import DRIVER, a_claim, a_class, a_slice, asks
from tests.unit.core.preemption.stage import Stage, a_high, a_low

NOTHING = "no new claims to deallocate, preemption: "


def a_leaving(name: str, reason: str = "PreemptionByScheduler"):
    condition = {"type": "DisruptionTarget", "status": "True", "reason": reason}
    pod = a_low(name, "n1", cpu="2").status(conditions=[condition])
    return pod.metadata(deletionTimestamp="2026-01-01T00:00:00Z")


def full_node() -> Stage:
    stage = Stage()
    stage.nodes(a_node("n1").allocatable(cpu="2"))
    return stage


def test_a_pod_that_must_not_preempt_keeps_its_nomination() -> None:
    stage = full_node()
    stage.pod(a_low("low", "n1", cpu="2"))
    pod = stage.pod(a_high("high").spec(preemptionPolicy="Never"))
    result = stage.post_filter(pod)
    assert result.status.code is Code.UNSCHEDULABLE
    assert result.status.message == NOTHING + "not eligible due to preemptionPolicy=Never."
    assert result.nomination.node is None
    rejection = stage.rejection(pod)
    assert stage.plugin.candidates(stage.info(pod), rejection, stage.trial(pod)) == {}


@pytest.mark.parametrize("is_written", [True, False], ids=["by status", "in memory"])
def test_a_pod_waits_for_its_victims_to_leave(is_written: bool) -> None:
    stage = full_node()
    stage.pod(a_leaving("low"))
    pod = a_high("high")
    built = stage.pod(pod.status(nominatedNodeName="n1") if is_written else pod)
    if not is_written:
        stage.nominator.add(built, "n1")
    result = stage.post_filter(built)
    assert result.status.message == (
        NOTHING + "not eligible due to a terminating pod on the nominated node."
    )
    assert result.nomination.node is None


def test_pods_that_leave_for_other_reasons_are_not_waited_for() -> None:
    stage = full_node()
    stage.pod(a_leaving("low", reason="EvictionByEvictionAPI"))
    result = stage.post_filter(stage.pod(a_high("high").status(nominatedNodeName="n1")))
    assert (result.nomination.node, result.victims) == ("n1", ("default/low",))
    assert result.background is None, "its only victim is on its way out already"


def test_a_nominated_node_that_became_useless_is_not_waited_for() -> None:
    stage = Stage()
    stage.nodes(
        a_node("n1").allocatable(cpu="2").taints("gpu=yes:NoSchedule"),
        a_node("n2").allocatable(cpu="2"),
    )
    stage.pod(a_leaving("low"))
    stage.pod(a_low("other", "n2", cpu="2"))
    result = stage.post_filter(stage.pod(a_high("high").status(nominatedNodeName="n1")))
    assert result.nomination.node == "n2"


def test_a_pod_that_is_gone_meanwhile_is_an_error() -> None:
    stage = full_node()
    stage.pod(a_low("low", "n1", cpu="2"))
    pod = a_high("high").build()
    result = stage.post_filter(pod)
    assert result.status.code is Code.ERROR
    assert result.status.message == 'preemption: pod "high" not found'


def test_a_node_that_only_an_extender_refused_has_no_victims() -> None:
    from asched.core.framework.status import unschedulable

    stage = full_node()
    stage.pod(a_low("low", "n1", cpu="1"))
    pod = stage.pod(a_high("high", cpu="1"))
    assert stage.attempt(pod).node == "n1"
    info = stage.info(pod)
    state = stage.runner.cache.state_of(info)
    rejection = stage.runner.rejection(info, state, {0: unschedulable("extender says no")})
    result = stage.plugin.post_filter(info, rejection, stage.trial(pod))
    assert result.status.code is Code.ERROR
    assert result.status.message == ('preemption: expected at least one victim pod on node "n1"')


def test_a_filter_that_fails_once_the_victims_are_gone_is_an_error() -> None:
    """Where no node is left, its error is all that is told, and the nomination stays."""
    stage = Stage()
    stage.nodes(a_node("n1").allocatable(pods="1"))
    stage.pod(a_low("low", "n1"))
    claim = a_claim(asks(f"device.attributes['{DRIVER}'].missing == 1"))
    stage.cluster.apply(Seen(RESOURCE_CLAIM, claim))
    stage.cluster.apply(Seen(RESOURCE_SLICE, a_slice("a")))
    stage.cluster.apply(Seen(DEVICE_CLASS, a_class()))
    wanted = [{"name": "c", "resourceClaimName": "c"}]
    high = a_high("high").metadata(namespace="d").spec(resourceClaims=wanted)
    result = stage.post_filter(stage.pod(high))
    assert result.status.code is Code.ERROR
    assert result.status.message == (
        'preemption: running "DynamicResources" filter plugin: claim d/c: selector #0: '
        "CEL runtime error: no such key: missing"
    )
    assert result.nomination.node == "", "it is cleared"


def test_the_hint_leaves_waking_to_the_filters() -> None:
    (registration,) = DefaultPreemption(None, Stage().cluster).registrations()
    assert registration.trigger.label == "PodDelete"
    gone = a_pod("gone").on("n1").build()
    assert registration.hint(a_pod("waits").build(), gone, None).value == "QueueSkip"
