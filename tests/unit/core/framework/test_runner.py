"""One attempt: what is told of nodes that were looked at apart, and points without scorers."""

import numpy as np
import pytest

from asched.core.cluster.facts import Seen
from asched.core.config.defaults import configuration, default_configuration
from asched.core.framework.rejection import Rejection
from asched.core.framework.results.peaks import NOT_FEASIBLE
from asched.core.framework.runner import Decision, run_alone
from asched.core.framework.status import PointError
from asched.core.model.kinds import DEVICE_CLASS, NODE, RESOURCE_CLAIM, RESOURCE_SLICE
from asched.host.assemble import Parts, build_runners
from tests.builders import a_node, a_pod, pending, term
from tests.device_builders import DRIVER, a_claim, a_class, a_device, a_slice, asks


def test_the_nominated_node_is_told_of_though_it_was_ruled_out() -> None:
    """It is tried before the node names of PreFilter are looked at."""
    parts = Parts.fresh()
    runner = build_runners(default_configuration("s"), parts)["s"]
    for node in (a_node("n1"), a_node("n2").cordoned(), a_node("n3")):
        parts.cluster.apply(Seen(NODE, node.build()))
    only_n2 = a_pod().requires_nodes(term(fields=["metadata.name In n2"]))

    found = run_alone(runner.schedule(pending(parts.cluster, only_n2), 0))
    assert isinstance(found, Rejection)
    assert found.message() == (
        "0/3 nodes are available: 1 node(s) were unschedulable, "
        "2 node(s) didn't satisfy plugin(s) [NodeAffinity]."
    )

    nominated = only_n2.metadata(name="other", uid="other").status(nominatedNodeName="n1")
    found = run_alone(runner.schedule(pending(parts.cluster, nominated), 0))
    assert isinstance(found, Rejection)
    assert found.message() == (
        "0/3 nodes are available: 1 node(s) didn't match Pod's node affinity/selector, "
        "1 node(s) didn't satisfy plugin(s) [NodeAffinity], 1 node(s) were unschedulable."
    )


def test_who_turned_the_nominated_node_down_is_named_with_those_who_ruled_out_the_rest() -> None:
    parts = Parts.fresh()
    runner = build_runners(default_configuration("s"), parts)["s"]
    for node in (a_node("n1").taints("gpu=yes:NoSchedule"), a_node("n2").cordoned(), a_node("n3")):
        parts.cluster.apply(Seen(NODE, node.build()))
    only_n2 = a_pod().requires_nodes(term(fields=["metadata.name In n2"]))

    found = run_alone(
        runner.schedule(pending(parts.cluster, only_n2.status(nominatedNodeName="n1")), 0)
    )
    assert isinstance(found, Rejection)
    assert found.message() == (
        "0/3 nodes are available: 1 node(s) didn't satisfy plugin(s) "
        "[NodeAffinity TaintToleration], 1 node(s) had untolerated taint(s), "
        "1 node(s) were unschedulable."
    )


def test_the_nominated_node_is_tried_whatever_the_node_names() -> None:
    """They come from PreFilter; with the filter disabled nothing else stands against the node."""
    disabled = {"filter": {"disabled": [{"name": "NodeAffinity"}]}}
    parts = Parts.fresh()
    profile = {"schedulerName": "s", "plugins": disabled}
    runner = build_runners(configuration({"profiles": [profile]}), parts)["s"]
    for node in (a_node("n1"), a_node("n2")):
        parts.cluster.apply(Seen(NODE, node.build()))
    only_n2 = a_pod().requires_nodes(term(fields=["metadata.name In n2"]))

    found = run_alone(runner.schedule(pending(parts.cluster, only_n2), 0))
    assert isinstance(found, Decision)
    assert found.node == "n2"
    nominated = only_n2.metadata(name="other", uid="other").status(nominatedNodeName="n1")
    found = run_alone(runner.schedule(pending(parts.cluster, nominated), 0))
    assert isinstance(found, Decision)
    assert found.node == "n1"


def test_errors_elsewhere_do_not_count_while_the_nominated_node_fits() -> None:
    """The others are only looked at if it does not."""
    parts = Parts.fresh()
    runner = build_runners(default_configuration("s"), parts)["s"]
    for node in (a_node("n1"), a_node("n2").cordoned()):
        parts.cluster.apply(Seen(NODE, node.build()))
    broken = a_claim(asks(f"device.attributes['{DRIVER}'].missing == 1"))
    slices = (a_slice("a"), a_slice("b", nodeName="n2", pool="other"))
    parts.cluster.apply(Seen(RESOURCE_CLAIM, broken))
    parts.cluster.apply(Seen(DEVICE_CLASS, a_class()))
    wanted = [{"name": "c", "resourceClaimName": "c"}]
    picky = a_pod(namespace="d").spec(resourceClaims=wanted)
    for each in slices:
        parts.cluster.apply(Seen(RESOURCE_SLICE, each))
    with pytest.raises(PointError, match="no such key: missing"):
        run_alone(runner.schedule(pending(parts.cluster, picky), 0))

    good = a_device("good", attributes={"missing": 1})
    parts.cluster.apply(Seen(NODE, a_node("n3").build()))
    parts.cluster.apply(Seen(RESOURCE_SLICE, a_slice(good, nodeName="n3", pool="third")))
    nominated = picky.metadata(name="other", uid="other").status(nominatedNodeName="n3")
    found = run_alone(runner.schedule(pending(parts.cluster, nominated), 0))
    assert isinstance(found, Decision)
    assert found.node == "n3"
    nominated = picky.metadata(name="third", uid="third").status(nominatedNodeName="n2")
    with pytest.raises(PointError, match="no such key: missing"):
        run_alone(runner.schedule(pending(parts.cluster, nominated), 0))


def test_without_scorers_every_feasible_node_has_one_point() -> None:
    disabled = {"score": {"disabled": [{"name": "*"}]}}
    profile = {"schedulerName": "s", "plugins": disabled}
    parts = Parts.fresh()
    runner = build_runners(configuration({"profiles": [profile]}), parts)["s"]
    for node in (a_node("n1"), a_node("n2")):
        parts.cluster.apply(Seen(NODE, node.build()))
    pod = pending(parts.cluster, a_pod())
    state = runner.cache.state_of(pod)
    state.update(pod)

    assert state.rank(pod).tolist()[:2] == [1, 1]
    assert state.rank(pod, np.array([True, False])).tolist()[:2] == [1, NOT_FEASIBLE]
