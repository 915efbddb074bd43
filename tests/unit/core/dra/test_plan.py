"""Claims made ready for the search: classes looked up, shapes checked, selectors in a row."""

from typing import Any

import pytest

from asched.core.dra.plan import AllocationError, PlannedRequest, plan
from asched.core.dra.pools import ReadySlice
from asched.core.model.claim import ResourceClaim
from asched.core.model.decode import decode
from tests.device_builders import a_claim, a_class, a_device, a_slice, asks

CLASSES = {"gpu": a_class("gpu", "device.driver != 'x'"), "nic": a_class("nic")}


def requests(claim: ResourceClaim) -> list[list[PlannedRequest]]:
    return [list(alternatives) for alternatives in plan(claim, CLASSES.get).requests]


def one(*selectors: str, **fields: Any) -> PlannedRequest:
    ((request,),) = requests(a_claim(asks(*selectors, **fields)))
    return request


def device(**fields: Any) -> Any:
    (found,) = ReadySlice(a_slice(a_device("d", **fields))).devices
    return found


def taint(key: str = "k", value: str = "", effect: str = "NoSchedule") -> dict[str, str]:
    return {"key": key, "value": value, "effect": effect}


@pytest.mark.parametrize(
    ("taints", "tolerations", "is_tolerated"),
    [
        ([], [], True),
        ([taint()], [], False),
        ([taint(effect="NoExecute")], [], False),
        ([taint(effect="None")], [], True),
        ([taint()], [{"key": "k", "operator": "Exists"}], True),
        ([taint()], [{"key": "other", "operator": "Exists"}], False),
        ([taint()], [{"operator": "Exists"}], True),
        ([taint()], [{"operator": "Exists", "effect": "NoSchedule"}], True),
        ([taint()], [{"operator": "Exists", "effect": "NoExecute"}], False),
        ([taint(value="a")], [{"key": "k", "operator": "Equal", "value": "a"}], True),
        ([taint(value="a")], [{"key": "k", "value": "a"}], True),
        ([taint(value="a")], [{"key": "k", "operator": "Equal", "value": "b"}], False),
        ([taint(value="a")], [{"key": "k", "operator": "Near", "value": "a"}], False),
        ([taint("a"), taint("b")], [{"key": "a", "operator": "Exists"}], False),
        ([taint("a"), taint("b")], [{"operator": "Exists"}], True),
    ],
)
def test_every_hard_taint_is_to_be_tolerated(
    taints: Any, tolerations: Any, is_tolerated: bool
) -> None:
    assert one(tolerations=tolerations).tolerates(device(taints=taints)) == is_tolerated


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"deviceClassName": ""}, "missing device class name"),
        ({"deviceClassName": "unknown"}, 'deviceclass.resource.k8s.io "unknown" not found'),
        ({"allocationMode": "Some"}, "unsupported count mode Some"),
        ({"selectors": [{}]}, "selector #0: CEL expression empty"),
    ],
)
def test_a_claim_that_makes_no_sense_is_named(asked: Any, words: str) -> None:
    with pytest.raises(AllocationError) as error:
        requests(a_claim({**asks(), **asked}))
    assert str(error.value).startswith("claim d/c, request r0")
    assert words in str(error.value)


def test_a_request_of_a_later_kind_is_named() -> None:
    spec = {"devices": {"requests": [{"name": "r0"}]}}
    claim = decode(ResourceClaim, {"metadata": {"name": "c", "namespace": "d"}, "spec": spec})
    with pytest.raises(AllocationError, match="unsupported request type"):
        requests(claim)
