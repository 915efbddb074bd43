"""Claims made ready for the search: classes looked up, shapes checked, selectors in a row."""

from typing import Any

import pytest

from asched.core.dra.devices import ReadyDevice
from asched.core.dra.plan import AllocationError, PlannedRequest, plan
from asched.core.dra.pools import ReadySlice
from asched.core.dra.selector_answers import SelectorAnswers
from asched.core.model.claim import Device, DeviceClass, ResourceClaim
from asched.core.model.decode import decode
from asched.core.model.meta import ObjectMeta
from tests.core.dra.worlds import a_claim, a_class, a_device, a_slice, asks, first_of

CLASSES = {"gpu": a_class("gpu", "device.driver != 'x'"), "nic": a_class("nic")}


def requests(claim: ResourceClaim) -> list[list[PlannedRequest]]:
    return [list(alternatives) for alternatives in plan(claim, CLASSES.get).requests]


def one(*selectors: str, **fields: Any) -> PlannedRequest:
    ((request,),) = requests(a_claim(asks(*selectors, **fields)))
    return request


def device(**fields: Any) -> Any:
    (found,) = ReadySlice(a_slice(a_device("d", **fields))).devices
    return found


def test_requests_and_their_alternatives_are_named_as_results_name_them() -> None:
    claim = a_claim(asks(count=2), first_of(asks(), asks(of="nic")))
    made = plan(claim, CLASSES.get)
    assert [[r.full_name for r in alternatives] for alternatives in made.requests] == [
        ["r0"],
        ["r1/s0", "r1/s1"],
    ]
    assert made.is_list == (False, True)
    assert made.claim is claim
    assert made.requests[0][0].count == 2
    assert made.requests[1][1].device_class is CLASSES["nic"]


def test_what_is_not_given_is_empty() -> None:
    bare = {"deviceClassName": "bare", "allocationMode": "ExactCount", "count": 1}
    known = {"bare": DeviceClass(metadata=ObjectMeta(name="bare"))}
    ((request,),) = plan(a_claim(bare), known.get).requests
    assert (request.selectors, request.tolerations) == ((), ())
    untainted = decode(Device, {"name": "d"})
    assert request.tolerates(ReadyDevice(a_slice("d"), untainted, SelectorAnswers()))
    assert plan(ResourceClaim(), CLASSES.get).requests == ()


def test_an_alternative_has_no_admin_access() -> None:
    ((alternative,),) = requests(a_claim(first_of(asks())))
    assert not alternative.admin


def test_a_known_answer_costs_nothing() -> None:
    asked = device()
    selects, cost = one("true").selects(asked)
    assert selects
    assert cost == 4, "device, its driver, !=, and the 15 letters of it"
    assert one("true").selects(asked) == (True, 0)


def test_what_is_asked_for() -> None:
    assert one(all=True).takes_all
    assert not one().takes_all
    assert one(adminAccess=True).admin
    assert not one().admin
    assert one(capacity={"requests": {"memory": "1Gi"}}).capacity == {"memory": "1Gi"}
    assert one().capacity is None


def test_selectors_of_the_class_come_first_and_say_whose_they_are() -> None:
    assert [(s.owner, s.position) for s in one("true", "false").selectors] == [
        ("class gpu", 0),
        ("claim d/c", 0),
        ("claim d/c", 1),
    ]


def test_the_first_selector_that_says_no_ends_it() -> None:
    assert one("true").selects(device())[0]
    answer, cost = one("false", "1 / 0 == 1").selects(device())
    assert not answer
    assert cost > 0


@pytest.mark.parametrize(
    ("selector", "words"),
    [
        ("1 / 0 == 1", "claim d/c: selector #1: CEL runtime error: division by zero"),
        ("nonsense", "claim d/c: selector #1: CEL compile error: "),
    ],
)
def test_a_selector_without_an_answer_ends_the_attempt(selector: str, words: str) -> None:
    with pytest.raises(AllocationError) as error:
        one("true", selector).selects(device())
    assert words in str(error.value)
    assert error.value.cost > 0


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
