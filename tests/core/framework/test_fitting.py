"""The filter half of an attempt says what an attempt would find."""

import numpy as np
import pytest

from asched.core.framework.attempt import Rejection
from asched.core.framework.results.nominated_filter import HELD_OFF
from asched.core.framework.runner import run_alone
from asched.core.framework.status import PointError
from asched.core.model.kinds import DEVICE_CLASS, POD, RESOURCE_CLAIM, RESOURCE_SLICE
from asched.core.state.facts import Gone, Seen
from tests.builders import PodBuilder, a_node, a_pod, term
from tests.core.dra.worlds import DRIVER, a_claim, a_class, a_slice, asks
from tests.core.framework.runners import a_runner

NODES = (
    a_node("n1").allocatable(cpu="1", memory="1Gi", pods="10"),
    a_node("n2").allocatable(cpu="2", memory="1Gi", pods="10"),
    a_node("n3").allocatable(cpu="4", memory="1Gi", pods="10").cordoned(),
)
PROMISED = a_pod("other").requests(cpu="1500m").status(nominatedNodeName="n2")


@pytest.mark.parametrize(
    ("pod", "fits"),
    [
        (a_pod().requests(cpu="1"), ["n1"]),
        (a_pod().requests(cpu="2"), []),
        (a_pod().requests(cpu="2").priority(9), ["n2"]),
        (a_pod().requests(cpu="1").tolerates("node.kubernetes.io/unschedulable"), ["n1", "n3"]),
        (a_pod().spec(volumes=[{"persistentVolumeClaim": {"claimName": "no"}, "name": "v"}]), []),
    ],
)
def test_it_fits_where_an_attempt_would_go(pod: PodBuilder, fits: list[str]) -> None:
    runner = a_runner(*NODES, waiting=PROMISED)
    cluster = runner.cluster
    info = cluster.classes.info_of(pod.build())

    fitting = runner.fitting(info)

    found = [cluster.nodes.node_at[row].name for row in np.flatnonzero(fitting.rows())]
    assert found == fits
    assert fitting.count == len(fits)
    for name, row in cluster.nodes.row_of.items():
        assert (fitting.status_on(row) is None) == (name in fits)
    attempted = run_alone(runner.schedule(info, 0))
    assert isinstance(attempted, Rejection) == (not fits)


def test_a_row_is_judged_as_it_is_supposed_to_be() -> None:
    runner = a_runner(*NODES)
    cluster = runner.cluster
    cluster.apply(Seen(POD, a_pod("big").requests(cpu="1").on("n1").build()))
    fitting = runner.fitting(cluster.classes.info_of(a_pod().requests(cpu="1").build()))

    assert fitting.status_on(0).reasons == ("Insufficient cpu",)
    with cluster.supposing().gone(cluster.pods_on(0).values(), 0):
        assert fitting.status_on(0) is None
    assert fitting.status_on(0).reasons == ("Insufficient cpu",)


def test_where_pre_filter_says_no_by_now_it_fits_nowhere_and_no_promise_matters() -> None:
    """It did a moment ago, and what was found of rows then says nothing any more."""
    runner = a_runner(*NODES, waiting=PROMISED)
    cluster = runner.cluster
    claim = a_claim(asks())
    for kind, thing in (
        (RESOURCE_CLAIM, claim),
        (DEVICE_CLASS, a_class()),
        (RESOURCE_SLICE, a_slice("a", nodeName="n1")),
        (RESOURCE_SLICE, a_slice("b", nodeName="n2", pool="n2")),
    ):
        cluster.apply(Seen(kind, thing))
    wanted = [{"name": "c", "resourceClaimName": "c"}]
    owner = {"apiVersion": "v1", "kind": "Job", "name": "j", "uid": "o", "controller": True}
    pod = a_pod(namespace="d").requests(cpu="1").metadata(ownerReferences=[owner])
    pod.spec(resourceClaims=wanted)
    info = cluster.classes.info_of(pod.build())
    fits = runner.fitting(info)
    assert (fits.count, fits.rows().tolist()) == (1, [True, False, False])
    assert {row: told.message for row, told in fits.in_words().items()} == {1: "Insufficient cpu"}
    cluster.refusals.note("o", "n1", cluster.wall_clock_s)
    assert runner.fitting(info).refused.told[0] == HELD_OFF
    cluster.apply(Gone(RESOURCE_CLAIM, claim))
    fits = runner.fitting(info)
    assert fits.rejection is not None
    assert (fits.count, fits.rows().any(), len(fits.refused.rows)) == (0, False, 0)
    assert fits.in_words() == {}
    assert fits.status_on(0) == fits.rejection


def test_a_row_that_pre_filter_rules_out_is_told_so() -> None:
    runner = a_runner(*NODES, waiting=PROMISED)
    only = a_pod().requires_nodes(term(fields=["metadata.name In n2"])).requests(cpu="1")
    fits = runner.fitting(runner.cluster.classes.info_of(only.build()))
    told = [fits.status_on(row) for row in range(3)]
    assert [one and one.message for one in told] == [
        "node(s) didn't satisfy plugin(s) [NodeAffinity]",
        "Insufficient cpu",
        "node(s) didn't satisfy plugin(s) [NodeAffinity]",
    ]
    assert fits.status_on(1, heeds_promises=False) is None


def test_a_filter_that_fails_somewhere_is_an_error_unless_that_is_spared() -> None:
    runner = a_runner(*NODES)
    cluster = runner.cluster
    broken = a_claim(asks(f"device.attributes['{DRIVER}'].missing == 1"))
    for kind, thing in (
        (RESOURCE_CLAIM, broken),
        (DEVICE_CLASS, a_class()),
        (RESOURCE_SLICE, a_slice("a")),
    ):
        cluster.apply(Seen(kind, thing))
    wanted = [{"name": "c", "resourceClaimName": "c"}]
    pod = cluster.classes.info_of(a_pod(namespace="d").spec(resourceClaims=wanted).build())
    with pytest.raises(PointError, match="no such key: missing"):
        runner.fitting(pod)
    spared = runner.fitting(pod, spares=True)
    assert not spared.rows()[cluster.nodes.row_of["n1"]]


def test_rows_may_be_restricted_by_a_mask_from_before_a_node_came() -> None:
    runner = a_runner(*NODES)
    fitting = runner.fitting(runner.cluster.classes.info_of(a_pod().requests(cpu="1").build()))

    assert fitting.rows(np.array([False, True])).tolist() == [False, True, False]
    assert fitting.rows(np.array([True])).tolist() == [True, False, False]
