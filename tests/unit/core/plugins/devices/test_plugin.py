"""DynamicResources up to Reserve: who waits, which nodes are left, what is given up."""

from typing import Any

import msgspec
import numpy as np
import pytest

from asched.core.cluster.facts import Seen
from asched.core.dra import allocator
from asched.core.framework.effects import Patch
from asched.core.framework.points import PostFilterResult, PreFilterResult
from asched.core.framework.rejection import Rejection
from asched.core.framework.runner import Decision, run_alone
from asched.core.framework.status import Code, PointError, unresolvable
from asched.core.model.kinds import DEVICE_CLASS, NODE, POD, RESOURCE_CLAIM, RESOURCE_SLICE
from asched.core.model.pod import Pod, PodResourceClaimStatus
from asched.core.plugins.devices.plugin import DynamicResources
from tests.conformance.world import build
from tests.device_builders import (
    GPU,
    DraWorld,
    a_claim_object,
    a_claiming_pod,
    a_class,
    a_device,
    a_device_node,
    a_slice,
    allocated,
    asks,
    first_of,
)

NO = "cannot allocate all claims"
ROOM = {"allocatable": {"cpu": "8", "pods": "110"}}
AWAY = "resourceclaim not available on the node"


def post_filter(world: DraWorld, pod: Pod, codes: dict[str, int]) -> PostFilterResult:
    """What PostFilter says when its own filter gave these codes."""
    height = world.cluster.nodes.height
    told = np.zeros(height, dtype=np.int32)
    for name, code in codes.items():
        told[world.cluster.nodes.row_of[name]] = code
    rejection = Rejection(
        world.info(pod),
        plugins=[world.plugin],
        first_rejector=(told > 0).astype(np.int32),
        codes=told,
        live=np.ones(height, dtype=np.bool_),
    )
    found = world.plugin.post_filter(world.info(pod), rejection, None)  # type: ignore[arg-type]
    assert isinstance(found, PostFilterResult)
    return found


# --- PreFilter
# ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("claim", "pod", "message"),
    [
        (None, a_claiming_pod("c"), 'could not find ResourceClaim "d/c"'),
        (
            a_claim_object("c", asks(of="nope")),
            a_claiming_pod("c"),
            "request r0: device class nope does not exist",
        ),
        (
            a_claim_object("c", first_of(asks(), asks(of="nope"))),
            a_claiming_pod("c"),
            "request r0/s1: device class nope does not exist",
        ),
        (
            a_claim_object("c", {"firstAvailable": []}),
            a_claiming_pod("c"),
            "resource claim d/c, request r0: unknown request type",
        ),
        (
            a_claim_object(
                "c", **allocated(reservedFor=[{"name": str(i), "uid": str(i)} for i in range(256)])
            ),
            a_claiming_pod("c"),
            "resourceclaim in use",
        ),
    ],
)
def test_pods_that_wait(claim: dict[str, Any] | None, pod: Pod, message: str) -> None:
    found = DraWorld(*([claim] if claim else [])).attempt(pod)
    assert isinstance(found, PreFilterResult)
    assert found.status == unresolvable(message)


def test_a_claim_in_flight_makes_other_pods_wait() -> None:
    world = DraWorld(a_claim_object("c"))
    first = a_claiming_pod("c", name="first")
    assert world.attempt(first) == {"n1": "", "n2": NO}
    assert world.plugin.reserve(world.info(first), "n1", None).is_success

    found = world.attempt(a_claiming_pod("c", name="second"))

    assert isinstance(found, PreFilterResult)
    assert found.status.message == "resource claim d/c is in the process of being allocated"


# --- Filter
# ------------------------------------------------------------------------------------------


def test_nodes_without_devices_are_rejected() -> None:
    assert DraWorld(a_claim_object("c")).attempt(a_claiming_pod("c")) == {"n1": "", "n2": NO}


def test_an_allocated_claim_holds_its_pod_to_its_node() -> None:
    world = DraWorld(a_claim_object("c", **allocated()))
    assert world.attempt(a_claiming_pod("c")) == {"n1": "", "n2": AWAY}


def test_failing_allocation_is_told_before_a_claim_elsewhere() -> None:
    world = DraWorld(a_claim_object("x", **allocated(node="n1")), a_claim_object("y"))
    assert world.attempt(a_claiming_pod("x", "y")) == {"n1": "", "n2": NO}


def test_devices_held_by_other_claims_are_gone() -> None:
    world = DraWorld(
        a_claim_object("x", **allocated("a")),
        a_claim_object("y", **allocated("b")),
        a_claim_object("c"),
    )
    assert world.attempt(a_claiming_pod("c")) == {"n1": NO, "n2": NO}


def test_answers_follow_claims_slices_classes_and_labels() -> None:
    world = DraWorld(a_claim_object("c", asks(count=2)))
    pod = a_claiming_pod("c")
    assert world.attempt(pod) == {"n1": "", "n2": NO}
    taken = world.see_claim(a_claim_object("x", **allocated("a")))
    assert world.attempt(pod) == {"n1": NO, "n2": NO}
    world.lose(RESOURCE_CLAIM, taken)
    assert world.attempt(pod) == {"n1": "", "n2": NO}
    selector = {"matchExpressions": [{"key": "k", "operator": "Exists"}]}
    far = a_slice("p", "q", pool="net", nodeSelector={"nodeSelectorTerms": [selector]})
    world.see(RESOURCE_SLICE, far)
    assert world.attempt(pod) == {"n1": "", "n2": NO}
    world.cluster.nodes.put(a_device_node("n2", k="v"))
    assert world.attempt(pod) == {"n1": "", "n2": ""}
    world.see(DEVICE_CLASS, a_class("gpu", "false"))
    assert world.attempt(pod) == {"n1": NO, "n2": NO}


def test_a_broken_selector_is_an_error_that_names_the_claim() -> None:
    world = DraWorld(a_claim_object("x", asks("nope")), a_claim_object("y", asks("nope")))
    for name in "xy":
        found = world.attempt(a_claiming_pod(name, name=f"p{name}"))
        assert isinstance(found, dict)
        assert found["n1"].startswith(f"claim d/{name}: selector #0: CEL compile error: ")


def test_an_invalid_pool_rejects_its_node_alone() -> None:
    world = DraWorld(a_claim_object("c", asks(count=2)))
    world.see(RESOURCE_SLICE, a_slice("x", "x", pool="bad", nodeName="n2"))
    expected = {"n1": "", "n2": "invalid resource pools were encountered"}
    assert world.attempt(a_claiming_pod("c")) == expected


# --- extended resources
# ------------------------------------------------------------------------------


def extended_world(*claims: dict[str, Any]) -> DraWorld:
    world = DraWorld(
        *claims,
        nodes=(a_device_node("n1"), a_device_node("n2"), a_device_node("plugin", {GPU: "4"})),
    )
    world.see(DEVICE_CLASS, a_class("gpu", extendedResourceName=GPU))
    return world


def test_devices_serve_a_resource_where_the_node_does_not() -> None:
    world = extended_world()
    assert world.attempt(a_claiming_pod(gpu="2")) == {"n1": "", "n2": NO, "plugin": ""}
    assert world.attempt(a_claiming_pod(name="q", gpu="3")) == {"n1": NO, "n2": NO, "plugin": ""}


def test_a_claim_left_from_an_earlier_attempt_is_deleted() -> None:
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "uid-p", "controller": True}
    metadata = {
        "annotations": {"resource.kubernetes.io/extended-resource-claim": "true"},
        "ownerReferences": [owner],
        "finalizers": ["resource.kubernetes.io/delete-protection", "other"],
    }
    world = extended_world(a_claim_object("left", metadata=metadata))
    pod = a_claiming_pod(gpu="1")
    stale = "cannot schedule extended resource claim"
    assert world.attempt(pod) == dict.fromkeys(("n1", "n2", "plugin"), stale)

    found = post_filter(world, pod, dict.fromkeys(("n1", "n2"), allocator.STALE_EXTENDED))

    assert found.status.message == "deletion of ResourceClaim completed"
    assert found.background is not None
    first = next(found.background)
    assert isinstance(first, Patch)
    assert first.body["metadata"]["finalizers"] == ["other"]


# --- PostFilter
# --------------------------------------------------------------------------------------


def test_a_claim_of_our_own_on_the_wrong_node_is_deallocated() -> None:
    own = [{"resource": "pods", "name": "p", "uid": "uid-p"}]
    world = DraWorld(a_claim_object("c", **allocated(reservedFor=own)))
    pod = a_claiming_pod("c")
    world.attempt(pod)

    found = post_filter(world, pod, {"n2": allocator.UNAVAILABLE})

    assert found.status.code is Code.UNSCHEDULABLE
    assert found.status.message == "deallocation of ResourceClaim completed"
    assert found.background is not None
    effect = next(found.background)
    assert isinstance(effect, Patch)
    assert effect.subresource == "status"
    assert effect.body["status"] == {"allocation": None, "reservedFor": None, "devices": None}
    assert effect.body["metadata"]["resourceVersion"] == "1"


def test_a_claim_that_others_use_is_kept() -> None:
    other = [{"resource": "pods", "name": "q", "uid": "uid-q"}]
    world = DraWorld(a_claim_object("c", **allocated(reservedFor=other)))
    pod = a_claiming_pod("c")
    world.attempt(pod)
    found = post_filter(world, pod, {"n2": allocator.UNAVAILABLE})
    assert found.status.message == "still not schedulable"
    assert found.background is None


def test_a_claim_that_kept_the_pod_from_no_node_is_kept() -> None:
    world = DraWorld(a_claim_object("c", **allocated()))
    pod = a_claiming_pod("c")
    world.attempt(pod)
    assert post_filter(world, pod, {}).status.message == "still not schedulable"


# --- Score and Reserve
# -------------------------------------------------------------------------------


def test_earlier_alternatives_score_more() -> None:
    model = 'device.attributes["gpu.example.com"].model == "x"'
    world = DraWorld(a_claim_object("c", first_of(asks(model), asks())))
    fancy = a_device("x", attributes={"model": "x"})
    plain = a_device("y", attributes={"model": "y"})
    world.see(RESOURCE_SLICE, a_slice(plain))
    world.see(RESOURCE_SLICE, a_slice(fancy, pool="n2", nodeName="n2"))
    info = world.info(a_claiming_pod("c"))
    result = world.plugin.pre_filter(info)
    assert world.plugin.filter(info, world.cluster.view(), result.data).tolist() == [0, 0]
    raw = world.plugin.score(info, world.cluster.view(), None)
    assert raw.tolist() == [7, 8]
    assert world.plugin.normalize(raw, None).tolist() == [87, 100]


def test_alternatives_of_allocated_claims_count_where_others_are_to_be_allocated() -> None:
    shared = allocated("net", node=None, result={"request": "r0/s0", "pool": "net"})
    world = DraWorld(
        a_claim_object("x", first_of(asks(), asks()), **shared),
        a_claim_object("y", first_of(asks("false"), asks())),
    )
    for names, expected in (("x", "y"), 8 + 7), (("x",), 0):
        info = world.info(a_claiming_pod(*names, name="-".join(names)))
        world.plugin.filter(info, world.cluster.view(), world.plugin.pre_filter(info).data)
        assert world.plugin.score(info, world.cluster.view(), None)[0] == expected


def test_a_reservation_is_given_back() -> None:
    world = DraWorld(a_claim_object("c", asks(count=2)), a_claim_object("e"))
    info = world.info(a_claiming_pod("c"))
    world.attempt(info.pod)
    assert world.plugin.reserve(info, "n1", None).is_success
    assert world.attempt(a_claiming_pod("e", name="q")) == {"n1": NO, "n2": NO}

    world.plugin.unreserve(info, "n1")
    world.plugin.unreserve(info, "n1")  # and once more

    assert world.attempt(a_claiming_pod("e", name="q")) == {"n1": "", "n2": NO}


def test_an_allocation_in_flight_survives_newer_versions_of_its_claim() -> None:
    world = DraWorld(a_claim_object("c", asks(count=2)), a_claim_object("e"))
    info = world.info(a_claiming_pod("c"))
    world.attempt(info.pod)
    world.plugin.reserve(info, "n1", None)
    world.see_claim(a_claim_object("c", asks(count=2), metadata={"resourceVersion": "2"}))
    assert world.attempt(a_claiming_pod("e", name="q")) == {"n1": NO, "n2": NO}


def test_an_error_ends_the_attempt_only_where_the_filter_was_reached() -> None:
    """Upstream stops at the first rejecting filter of a node, and so never meets the error."""
    world = build(None, {"nodes": [], "deviceclasses": [], "resourceclaims": []})
    cordoned = {"metadata": {"name": "n1"}, "spec": {"unschedulable": True}, "status": ROOM}
    for kind, obj in (
        (NODE, cordoned),
        (DEVICE_CLASS, {"metadata": {"name": "gpu"}, "spec": {}}),
        (RESOURCE_CLAIM, a_claim_object("c", asks("nope"))),
    ):
        world.see(kind, obj)
    world.cluster.apply(Seen(RESOURCE_SLICE, a_slice("a")))
    pod = a_claiming_pod("c")
    world.cluster.apply(Seen(POD, pod))
    info = world.cluster.classes.info_of(pod)
    runner = world.runner_for(pod)
    assert isinstance(run_alone(runner.schedule(info, 0)), Rejection)
    world.see(NODE, {**cordoned, "spec": {}})
    with pytest.raises(PointError, match='running "DynamicResources" filter plugin: claim d/c: '):
        run_alone(runner.schedule(info, 0))


def test_equal_pods_do_not_get_the_same_device() -> None:
    """Nothing but the reservation of the first happens before the second is tried."""
    world = build(None, {"nodes": [{"metadata": {"name": "n1"}, "status": ROOM}]})
    world.cluster.apply(Seen(RESOURCE_SLICE, a_slice("a", "b")))
    world.cluster.apply(Seen(DEVICE_CLASS, a_class()))
    pods = [a_claiming_pod("x", name=f"p{i}", template=True) for i in range(3)]
    for i, pod in enumerate(pods):
        owner = {"apiVersion": "v1", "kind": "Pod", "name": f"p{i}", "uid": pod.uid}
        metadata = {"uid": f"claim-{i}", "ownerReferences": [{**owner, "controller": True}]}
        world.see(RESOURCE_CLAIM, a_claim_object(f"x{i}", metadata=metadata))
        told = [PodResourceClaimStatus("x", f"x{i}")]
        status = msgspec.structs.replace(pod.status, resource_claim_statuses=tuple(told))
        pods[i] = msgspec.structs.replace(pod, status=status)
        world.cluster.apply(Seen(POD, pods[i]))
    runner = world.runner_for(pods[0])
    plugin = runner.profile.plugins["DynamicResources"]
    assert isinstance(plugin, DynamicResources)
    for pod in pods[:2]:
        info = world.cluster.classes.info_of(pod)
        found = run_alone(runner.schedule(info, 0))
        assert isinstance(found, Decision)
        world.cluster.assume(info, found.node)
        assert plugin.reserve(info, found.node, found.state.data_of(plugin.name)).is_success
    last = run_alone(runner.schedule(world.cluster.classes.info_of(pods[2]), 0))
    assert isinstance(last, Rejection)
    assert last.reason_counts() == {NO: 1}
