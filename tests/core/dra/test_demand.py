"""What a pod needs of devices on a node: its claims, and what the node itself does not offer."""

from typing import Any

import pytest

from asched.core.dra.demand import IN_MEMORY, DeviceDemand, in_memory_claim
from asched.core.dra.ledger import DeviceLedger
from asched.core.dra.plan import AllocationError
from asched.core.model.claim import ResourceClaim
from asched.core.model.kinds import DEVICE_CLASS
from asched.core.model.node import Node
from asched.core.state.cluster import Cluster
from asched.core.state.facts import Seen
from tests.builders import a_node, a_pod, pending
from tests.core.dra.worlds import a_claim, a_class, asks

GPU, NIC = "example.com/gpu", "example.com/nic"
POD = a_pod("web", "d").requests({GPU: "2", "cpu": "1"})


def demand(
    *claims: ResourceClaim,
    pod: Any = POD,
    extended: ResourceClaim | None = None,
    classes: Any = None,
    has_user_claims: bool = False,
) -> DeviceDemand:
    cluster = Cluster()
    for made in classes or (a_class("gpu", extendedResourceName=GPU),):
        cluster.apply(Seen(DEVICE_CLASS, made))
    ledger = cluster.singleton(DeviceLedger)
    ledger.catch_up()
    return DeviceDemand(pending(cluster, pod), claims, extended, has_user_claims, ledger)


def of_devices(pod: Any = POD, **more: Any) -> DeviceDemand:
    """With a claim for extended resources, in memory alone."""
    return demand(pod=pod, extended=in_memory_claim(pod.build()), **more)


def node(**offered: str) -> Node:
    names = {"gpu": GPU, "nic": NIC}
    return a_node("n1").allocatable({names[k]: v for k, v in offered.items()}).build()


def test_a_pod_without_claims_needs_nothing() -> None:
    assert demand().is_empty
    assert not demand(a_claim(asks())).is_empty
    assert not of_devices().is_empty


@pytest.mark.parametrize(
    ("offered", "served"),
    [
        ({}, {GPU}),
        ({"gpu": "0"}, {GPU}),
        ({"gpu": "4"}, set()),
    ],
)
def test_devices_serve_what_the_node_does_not_offer(
    offered: dict[str, str], served: set[str]
) -> None:
    assert of_devices().served(node(**offered)) == served


def test_a_resource_that_nobody_offers_is_not_to_be_had() -> None:
    both = a_pod("web", "d").requests({GPU: "1", NIC: "1"})
    assert of_devices(both).served(node()) is None
    assert of_devices(both).served(node(nic="1")) == {GPU}
    assert of_devices(both).served(node(nic="0")) == {GPU}, "its filter says that there is none"
    idle = a_pod("web", "d").requests({GPU: "1", NIC: "0"})
    assert of_devices(idle).served(node()) == {GPU}


def test_plans_are_those_of_the_claims_and_of_what_devices_serve() -> None:
    claim = a_claim(asks())
    assert [p.claim for p in demand(claim).plans(frozenset())] == [claim]
    both = demand(claim, extended=in_memory_claim(POD.build()))
    assert [p.claim for p in both.plans(frozenset())] == [claim]
    with_devices = both.plans(frozenset({GPU}))
    assert with_devices[0].claim is claim
    assert with_devices[1].claim.metadata.name == IN_MEMORY
    ((request,),) = with_devices[1].requests
    assert request.count == 2
    assert request.device_class.metadata.name == "gpu"


def test_a_claim_of_its_own_is_planned_though_devices_serve_nothing() -> None:
    own = demand(extended=in_memory_claim(POD.build()), has_user_claims=True)
    (only,) = own.plans(frozenset())
    assert only.requests == ()
    assert only.claim.spec.devices.requests is None
    assert only.claim.metadata == in_memory_claim(POD.build()).metadata
    claim = a_claim(asks())
    assert [p.claim for p in demand(claim, has_user_claims=True).plans(frozenset())] == [claim]


def test_each_set_of_resources_is_planned_once() -> None:
    one = of_devices()
    assert one.variant(frozenset({GPU})) is one.variant(frozenset({GPU}))
    with pytest.raises(AllocationError):
        demand(a_claim(asks(of="unknown"))).plans(frozenset())


def test_equal_signatures_are_those_of_equal_needs() -> None:
    assert (
        demand(a_claim(asks(), name="a")).signature == demand(a_claim(asks(), name="b")).signature
    )
    assert demand(a_claim(asks())).signature != demand(a_claim(asks(count=2))).signature
    assert demand().signature != demand(has_user_claims=True).signature
    assert of_devices().signature != demand().signature


def test_a_claim_that_is_left_from_an_earlier_attempt_is_stale() -> None:
    assert not of_devices().is_stale
    left = a_claim(asks())
    assert demand(extended=left).is_stale
    assert not demand().is_stale
    assert demand(extended=left).signature != of_devices().signature


def test_the_claim_in_memory_is_nobody_else_s() -> None:
    claim = in_memory_claim(POD.build())
    assert (claim.metadata.name, claim.metadata.namespace) == (IN_MEMORY, "d")
    assert claim.metadata.uid == "extended/uid-web"
