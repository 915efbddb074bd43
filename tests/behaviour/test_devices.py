"""Devices for claims, as kube-scheduler 1.36.3 gives them out; facts in, effects out."""

from typing import Any

import msgspec
import pytest

from asched.core.cluster.facts import Seen
from asched.core.framework.effects import Bind, EmitEvent, Patch
from asched.core.model.claim import DeviceTaintRule, ResourceClaim
from asched.core.model.decode import decode
from asched.core.model.kinds import (
    DEVICE_CLASS,
    DEVICE_TAINT_RULE,
    RESOURCE_CLAIM,
    RESOURCE_SLICE,
)
from tests.builders import a_node
from tests.device_builders import (
    DRIVER,
    a_claim_object,
    a_claiming_pod,
    a_class,
    a_device,
    a_slice,
    asks,
)
from tests.playbook import Play

TAINT = {"key": "broken", "effect": "NoSchedule"}
HALF = {"consumesCounters": [{"counterSet": "set", "counters": {"mem": {"value": "20"}}}]}


def play_with(*devices: dict[str, Any], gates: dict[str, bool] | None = None, **args: Any) -> Play:
    """One node whose devices share a counter of 40; `args` are those of DynamicResources."""
    own = {"pluginConfig": [{"name": "DynamicResources", "args": args}]} if args else {}
    profile = {"schedulerName": "default-scheduler", **own}
    play = Play(a_node("n1"), gates=gates, profiles=[profile])
    counters = [{"name": "set", "counters": {"mem": {"value": "40"}}}]
    play.turn(
        Seen(DEVICE_CLASS, a_class()),
        Seen(RESOURCE_SLICE, a_slice(*devices, of=2, name="devices")),
        Seen(RESOURCE_SLICE, a_slice(of=2, name="counters", sharedCounters=counters)),
    )
    return play


def devices_for(play: Play, *requests: dict[str, Any], **devices: Any) -> list[str]:
    """The devices that a pod's claim gets; none if the pod has to wait."""
    finalizers = ["resource.kubernetes.io/delete-protection"]
    claim = a_claim_object("c", *requests, metadata={"finalizers": finalizers})
    claim["spec"]["devices"] |= devices
    pod = a_claiming_pod("c")
    spec = msgspec.structs.replace(pod.spec, scheduler_name="default-scheduler")
    play.turn(Seen(RESOURCE_CLAIM, decode(ResourceClaim, claim)))
    play.see(msgspec.structs.replace(pod, spec=spec))
    if not play.of(Patch):
        assert not play.of(Bind)
        return []
    body = msgspec.to_builtins(play.the(Patch).body)
    results = body["status"]["allocation"]["devices"]["results"]
    return [result["device"] for result in results]


def test_a_device_turned_down_by_a_taint_leaves_its_counters_to_others() -> None:
    play = play_with(
        a_device("a", taints=[TAINT], **HALF), a_device("b", **HALF), a_device("c", **HALF)
    )
    assert devices_for(play, asks(count=2)) == ["b", "c"]


def test_a_device_turned_down_by_a_constraint_leaves_its_counters_to_others() -> None:
    numas = {"a": 0, "b": 1, "c": 0}
    play = play_with(
        *(a_device(name, attributes={"numa": numa}, **HALF) for name, numa in numas.items())
    )
    same = [{"requests": [], "matchAttribute": f"{DRIVER}/numa"}]
    assert devices_for(play, asks(count=2), constraints=same) == ["a", "c"]


def test_a_share_that_is_given_back_leaves_its_counters_to_others() -> None:
    """The first request tries the shared device, which leaves the second one too little."""
    all_of_it = [{"counterSet": "set", "counters": {"mem": {"value": "40"}}}]
    play = play_with(
        a_device("shared", allowMultipleAllocations=True, consumesCounters=all_of_it),
        a_device("whole", attributes={"numa": 0}, consumesCounters=all_of_it),
        a_device("other"),
    )
    only_whole = asks(f'has(device.attributes["{DRIVER}"].numa)')
    assert devices_for(play, asks(), only_whole) == ["other", "whole"]


@pytest.mark.parametrize(
    ("selector", "found"),
    [(None, ["a"]), ({}, []), ({"driver": DRIVER}, []), ({"device": "b"}, ["a"])],
)
def test_a_taint_rule_without_a_selector_taints_nothing(
    selector: dict[str, str] | None, found: list[str]
) -> None:
    """An empty selector selects every device; an absent one none, as the API says."""
    play = play_with(a_device("a"), gates={"DRADeviceTaintRules": True})
    spec: dict[str, Any] = {"taint": TAINT}
    if selector is not None:
        spec["deviceSelector"] = selector
    rule = decode(DeviceTaintRule, {"metadata": {"name": "r", "uid": "r"}, "spec": spec})
    play.turn(Seen(DEVICE_TAINT_RULE, rule))
    assert devices_for(play, asks()) == found


@pytest.mark.parametrize(
    ("timeout_ns", "is_placed"), [(1, False), (10_000, False), (10**9, True), (0, True)]
)
def test_a_filter_timeout_is_a_number_of_devices(timeout_ns: int, is_placed: bool) -> None:
    """As in kube-scheduler, zero is no limit; however short another one is, it is a limit."""
    devices = [a_device(f"d{number}") for number in range(40)]
    play = play_with(*devices, filterTimeout=timeout_ns)
    assert len(devices_for(play, asks(count=20))) == (20 if is_placed else 0)
    told = [event.note for event in play.of(EmitEvent) if event.reason == "FailedScheduling"]
    assert ["timed out trying to allocate devices" in note for note in told] == [True] * len(told)
    assert bool(told) != is_placed
