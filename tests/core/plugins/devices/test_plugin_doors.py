"""DynamicResources beside the search: arguments and gates, what is given up, what is kept."""

from typing import Any

import numpy as np
import pytest

from asched.core.config.args import DynamicResourcesArgs
from asched.core.config.gates import DEFAULT_GATES
from asched.core.dra import answer_codes
from asched.core.framework.attempt import Rejection
from asched.core.framework.points import IDLE, PostFilterResult, PreFilterResult
from asched.core.framework.status import SKIP, SUCCESS, unresolvable
from asched.core.model.kinds import (
    DEVICE_CLASS,
    DEVICE_TAINT_RULE,
    RESOURCE_CLAIM,
)
from asched.core.plugins.devices import plugin as room
from asched.core.plugins.devices.plugin import DynamicResources
from tests.core.dra.worlds import a_class, asks, first_of
from tests.core.plugins.dra_world import GPU, DraWorld, a_claim_object, a_node, a_pod, allocated
from tests.heard import heard

OWN = {"resource": "pods", "name": "p", "uid": "uid-p"}
OTHER = {"resource": "pods", "name": "q", "uid": "uid-q"}
IN_VAIN = "still not schedulable"
GIVEN_BACK = "deallocation of ResourceClaim completed"
START_S = 1_767_225_600.0  # 2026-01-01T00:00:00Z


def prepared(world: DraWorld, *claims: str, **requests: str) -> Any:
    """The pod `p` after PreFilter."""
    info = world.info(a_pod(*claims, **requests))
    world.plugin.pre_filter(info)
    return info


# --- arguments and gates -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("timeout_ns", "steps"), [(None, 0), (0, 0), (10**9, 100_000), (25_000, 2), (19_999, 1)]
)
def test_a_filters_timeout_is_so_many_steps(timeout_ns: int | None, steps: int) -> None:
    args = DynamicResourcesArgs(filter_timeout_ns=timeout_ns)

    assert DynamicResources(args, DraWorld().cluster)._steps_max == steps


@pytest.mark.parametrize(("timeout_ns", "after_s"), [(None, 600), (5 * 10**9, 5)])
def test_devices_have_so_long_to_be_bound(timeout_ns: int | None, after_s: int) -> None:
    started = {"allocationTimestamp": "2026-01-01T00:00:00Z"}
    binds = {"bindingConditions": ["ready"]}
    world = DraWorld(a_claim_object("c", **allocated(allocation=started, result=binds)))
    world.plugin = DynamicResources(
        DynamicResourcesArgs(binding_timeout_ns=timeout_ns), world.cluster
    )
    fits = []
    for now_s in (after_s - 1, after_s + 1):
        world.cluster.wall_clock_s = START_S + now_s
        found = world.attempt(a_pod("c"))
        assert isinstance(found, dict)
        fits.append(found["n1"] == "")

    assert fits == [True, False]


@pytest.mark.parametrize("heeds", [True, False])
def test_rules_of_taints_are_followed_where_they_count(heeds: bool) -> None:
    gates = {**DEFAULT_GATES, "DRADeviceTaintRules": heeds}
    plugin = DynamicResources(None, DraWorld().cluster, gates)

    assert (DEVICE_TAINT_RULE in plugin.kinds) is heeds
    rules = "resource.k8s.io/DeviceTaintRule: Add, Delete, Update"
    assert list(heard(plugin.registrations())) == [
        "Node: Add, UpdateNodeAllocatable, UpdateNodeLabel",
        "resource.k8s.io/ResourceClaim: Add, Update",
        "Pod: UpdatePodGeneratedResourceClaim",
        "resource.k8s.io/DeviceClass: Add, Update",
        "resource.k8s.io/ResourceSlice: Add, Update",
        *([rules] if heeds else []),
    ]
    assert list(heard(plugin.extra_events())) == [
        "resource.k8s.io/ResourceClaim: Delete",
        "resource.k8s.io/ResourceSlice: Delete",
        "resource.k8s.io/DeviceClass: Delete",
        "Pod: Delete",
    ]


def test_without_prioritized_lists_alternatives_keep_a_pod_waiting_and_score_nothing() -> None:
    world = DraWorld(a_claim_object("c", first_of(asks(), asks())), a_claim_object("plain"))
    world.plugin = DynamicResources(
        None, world.cluster, {**DEFAULT_GATES, "DRAPrioritizedList": False}
    )

    found = world.attempt(a_pod("c"))

    assert isinstance(found, PreFilterResult)
    assert found.status == unresolvable(
        "resource claim d/c, request r0: has subrequests, but the DRAPrioritizedList feature is"
        " disabled"
    )
    info = world.info(a_pod("plain", name="q"))
    assert world.plugin.pre_filter(info).status.is_success
    assert world.plugin.score(info, world.cluster.view(), None).tolist() == [0, 0]


# --- what pods share, and what is kept of them ---------------------------------------------------


@pytest.mark.parametrize(
    ("pod", "may_need"),
    [
        (a_pod(), False),
        (a_pod(cpu="1"), False),
        (a_pod(gpu="0"), False),
        (a_pod(gpu="1"), True),
        (a_pod("c"), True),
    ],
)
def test_pods_that_ask_for_no_devices_are_all_alike(pod: Any, may_need: bool) -> None:
    world = DraWorld()
    info, plugin = world.info(pod), world.plugin

    assert (plugin.share_key(info) is IDLE) is not may_need
    assert (plugin.stamp(info, None) == plugin.stamp(info, None)) is not may_need


def test_devices_are_asked_for_by_what_is_not_zero() -> None:
    world = DraWorld()
    world.see(DEVICE_CLASS, a_class("gpu", extendedResourceName=GPU))

    assert world.plugin.pre_filter(world.info(a_pod(gpu="0"))).status == SKIP
    assert world.plugin.pre_filter(world.info(a_pod(gpu="1"))).status.is_success


def test_what_an_earlier_attempt_found_is_forgotten() -> None:
    claim = a_claim_object("c")
    world = DraWorld(claim)
    info = prepared(world, "c")
    assert post_filter(world, info).status.message == IN_VAIN

    world.lose(RESOURCE_CLAIM, world.see_claim(claim))
    assert not world.plugin.pre_filter(info).status.is_success

    assert post_filter(world, info).status.message == "no new claims to deallocate"


def test_of_so_many_pods_the_last_attempt_is_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "PREPARED_MAX", 3)
    world = DraWorld(a_claim_object("c"))
    infos = [world.info(a_pod("c", name=f"p{number}")) for number in range(4)]
    for info in infos:
        world.plugin.pre_filter(info)

    told = [post_filter(world, info).status.message for info in infos]

    assert told == ["no new claims to deallocate", IN_VAIN, IN_VAIN, IN_VAIN]


def test_a_claim_that_many_use_is_still_good_for_the_pod_that_is_one_of_them() -> None:
    users = [{**OTHER, "uid": str(number)} for number in range(255)]
    world = DraWorld(a_claim_object("c", **allocated(reservedFor=[*users, OWN])))

    assert isinstance(world.attempt(a_pod("c")), dict)
    found = world.attempt(a_pod("c", name="q"))
    assert isinstance(found, PreFilterResult)
    assert found.status == unresolvable("resourceclaim in use")


# --- what is given up ----------------------------------------------------------------------------


def post_filter(
    world: DraWorld, info: Any, code: int = 0, *, by_itself: bool = True, **more: Any
) -> PostFilterResult:
    """What it says if row n2 was rejected with this code, by itself or a filter before it."""
    height = world.cluster.nodes.height
    row = np.arange(height) == world.cluster.nodes.row_of["n2"]
    plugins = [world.plugin] if by_itself else [object(), world.plugin]
    rejection = Rejection(
        info,
        plugins=more.pop("plugins", plugins),
        judge=(row & (code > 0)).astype(np.int32),
        codes=(row * code).astype(np.int32),
        live=np.ones(height, dtype=np.bool_),
        **more,
    )
    found = world.plugin.post_filter(info, rejection, None)  # type: ignore[arg-type]
    assert isinstance(found, PostFilterResult)
    return found


@pytest.mark.parametrize(
    ("holders", "told"),
    [
        (None, GIVEN_BACK),
        ([], GIVEN_BACK),
        ([OWN], GIVEN_BACK),
        ([OTHER], IN_VAIN),
        ([OWN, OTHER], IN_VAIN),
        ([OTHER, OWN], IN_VAIN),
    ],
)
def test_a_claim_is_given_back_that_nobody_else_uses(holders: Any, told: str) -> None:
    world = DraWorld(a_claim_object("c", **allocated(reservedFor=holders)))
    info = prepared(world, "c")

    found = post_filter(world, info, answer_codes.UNAVAILABLE)

    assert found.status.message == told
    assert (found.background is None) is (told is IN_VAIN)


def test_only_claims_that_stood_alone_against_a_node_are_given_back() -> None:
    world = DraWorld(a_claim_object("c", **allocated()))
    info, code = prepared(world, "c"), answer_codes.UNAVAILABLE

    for more in (
        {"by_itself": False},
        {"plugins": []},
        {"pre_filter": unresolvable("volumes").by("VolumeBinding")},
    ):
        assert post_filter(world, info, code, **more).status.message == IN_VAIN
    assert post_filter(world, info, code + 1).status.message == IN_VAIN
    assert post_filter(world, info, code).status.message == GIVEN_BACK


def test_of_several_claims_the_first_that_is_elsewhere_is_given_back() -> None:
    world = DraWorld(
        a_claim_object("free"),
        a_claim_object("everywhere", **allocated("net", node=None, result={"pool": "net"})),
        a_claim_object("away", **allocated()),
    )
    info = prepared(world, "free", "everywhere", "away")

    found = post_filter(world, info, answer_codes.UNAVAILABLE)

    assert found.background is not None
    assert next(found.background).name == "away"  # type: ignore[union-attr]


def may_make_room(world: DraWorld, info: Any) -> bool:
    return world.plugin.may_make_room(info, None, None)  # type: ignore[arg-type]


def test_room_may_be_made_where_an_allocation_may_be_given_up() -> None:
    world = DraWorld(a_claim_object("free"), a_claim_object("away", **allocated()))
    assert not may_make_room(world, world.info(a_pod("free")))  # before PreFilter
    assert not may_make_room(world, prepared(world, "free"))
    assert may_make_room(world, prepared(world, "away"))
    assert may_make_room(world, prepared(world, "free", "away"))
    info = prepared(world, "free")
    world.plugin.filter(info, world.cluster.view(), world.plugin.pre_filter(info).data)
    assert world.plugin.reserve(info, "n1", None).is_success
    assert not may_make_room(world, info)  # what is in flight is not to be given up
    assert not world.plugin.may_evict(info, None)  # type: ignore[arg-type]


def test_room_may_be_made_where_a_claim_for_extended_resources_is_stale() -> None:
    world = DraWorld(nodes=(a_node("n1"), a_node("n2")))
    world.see(DEVICE_CLASS, a_class("gpu", extendedResourceName=GPU))
    assert not may_make_room(world, prepared(world, gpu="1"))
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "uid-p", "controller": True}
    metadata = {
        "annotations": {"resource.kubernetes.io/extended-resource-claim": "true"},
        "ownerReferences": [owner],
    }
    world.see_claim(a_claim_object("left", metadata=metadata))

    info = prepared(world, gpu="1")

    assert may_make_room(world, info)
    assert post_filter(world, info).status.message == "deletion of ResourceClaim completed"


# --- reserve and bind ----------------------------------------------------------------------------


def test_a_node_that_is_gone_has_nothing_to_reserve_or_to_choose() -> None:
    world = DraWorld(a_claim_object("c"))
    info = prepared(world, "c")

    assert world.plugin.reserve(info, "gone", None).message == "node gone is gone"
    assert world.plugin.choices(info, "gone", None) == 1
    assert world.plugin.choices(world.info(a_pod(name="q")), "n1", None) == 1


def test_only_what_is_reserved_is_bound() -> None:
    world = DraWorld(a_claim_object("c"))
    info, plugin = prepared(world, "c"), world.plugin
    assert plugin.pre_bind_pre_flight(info, "n1") == SKIP
    with pytest.raises(StopIteration) as ended:
        next(plugin.pre_bind(info, "n1"))
    assert ended.value.value == SUCCESS
    assert plugin.chosen(info) == ()

    assert plugin.reserve(info, "n1", None).is_success
    assert plugin.pre_bind_pre_flight(info, "n1") == SUCCESS
    plugin.unreserve(info, "n1")
    assert plugin.pre_bind_pre_flight(info, "n1") == SKIP


@pytest.mark.parametrize("ends_well", [True, False])
def test_what_is_bound_is_reserved_no_more_and_what_is_not_is(
    ends_well: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = DraWorld(a_claim_object("c"))
    info, plugin = prepared(world, "c"), world.plugin
    assert plugin.reserve(info, "n1", None).is_success

    def bind(_pod: Any, node: str, _reserved: Any) -> Any:
        assert node == "n1"
        return SUCCESS if ends_well else unresolvable("in vain")
        yield

    monkeypatch.setattr(plugin._binding, "bind", bind)
    with pytest.raises(StopIteration) as ended:
        next(plugin.pre_bind(info, "n1"))

    assert ended.value.value.is_success is ends_well
    assert plugin.pre_bind_pre_flight(info, "n1") == (SKIP if ends_well else SUCCESS)
