"""Where allocated claims are good."""

from random import Random
from typing import Any

import pytest

from asched.core.model.claim import ResourceClaim
from asched.core.model.decode import decode
from asched.core.model.kinds import NODE
from asched.core.model.selector import NodeSelector, compile_term
from asched.core.plugins.devices import places as room
from asched.core.plugins.devices.places import BindingFailed, DevicePlaces, is_ready, only_name
from asched.core.state.cluster import Cluster
from asched.core.state.facts import Gone, Seen
from tests.core.plugins.dra_world import a_claim_object, a_node, allocated

BINDS = {"result": {"bindingConditions": ["ready"], "bindingFailureConditions": ["failed"]}}
START_S = 1_767_225_600.0  # 2026-01-01T00:00:00Z


def outside(now_s: float = 0.0, **status: Any) -> list[bool]:
    cluster = Cluster()
    cluster.wall_clock_s = now_s
    for node in a_node("n1", zone="a"), a_node("n2", zone="b"):
        cluster.apply(Seen(NODE, node))
    claim = decode(ResourceClaim, a_claim_object("c", **status))
    return DevicePlaces(cluster, 600).outside(claim).tolist()


def terms(*requirements: dict[str, Any]) -> dict[str, Any]:
    return {"nodeSelector": {"nodeSelectorTerms": [{"matchExpressions": list(requirements)}]}}


ZONE_B = {"key": "zone", "operator": "In", "values": ["b"]}
DEVICE = {"driver": "gpu.example.com", "pool": "n1", "device": "a"}


def conditions(name: str, status: str) -> list[dict[str, Any]]:
    return [{**DEVICE, "conditions": [{"type": name, "status": status}]}]


STARTED = {"allocationTimestamp": "2026-01-01T00:00:00Z"}


@pytest.mark.parametrize(
    ("status", "now_s", "expected"),
    [
        ({}, 0, [False, False]),
        (allocated(node="n2"), 0, [True, False]),
        (allocated(node="gone"), 0, [True, True]),
        (allocated(node=None), 0, [False, False]),
        (allocated(node=None, allocation=terms(ZONE_B)), 0, [True, False]),
        (allocated(node=None, devices=conditions("failed", "True"), **BINDS), 0, [True, True]),
        (allocated(node=None, devices=conditions("failed", "False"), **BINDS), 0, [False] * 2),
        (allocated(node=None, allocation=STARTED, **BINDS), START_S + 599, [False, False]),
        (allocated(node=None, allocation=STARTED, **BINDS), START_S + 601, [True, True]),
        (allocated(node=None, allocation=STARTED), START_S + 601, [False, False]),
        (
            allocated(node=None, allocation=STARTED, devices=conditions("ready", "True"), **BINDS),
            START_S + 601,
            [False, False],
        ),
    ],
)
def test_outside(status: dict[str, Any], now_s: float, expected: list[bool]) -> None:
    assert outside(now_s, **status) == expected


def test_the_timeout_is_over_only_after_it() -> None:
    late = [
        outside(now_s, **allocated(node=None, allocation=STARTED, **BINDS))
        for now_s in (0, START_S + 600, START_S + 600.5)
    ]
    assert late == [[False, False], [False, False], [True, True]]
    assert outside(START_S + 601, **allocated(node=None, **BINDS)) == [False, False]


def bound(*results: dict[str, Any] | None, devices: Any = None, **more: Any) -> ResourceClaim:
    """A claim with these results of an allocation, devices a, b and so on; None: not told."""
    listed = [
        {"request": "r0", "driver": "gpu.example.com", "pool": "n1", "device": device, **result}
        for device, result in zip("abc", results, strict=False)
        if result is not None
    ]
    found = listed if None not in results else None
    allocation = {"devices": {"results": found}, **more}
    return decode(ResourceClaim, a_claim_object("c", allocation=allocation, devices=devices))


def told(device: str, *conditions: tuple[str, str], **more: str) -> dict[str, Any]:
    listed = [{"type": name, "status": status, **more} for name, status in conditions]
    return {**DEVICE, "device": device, "conditions": listed}


TWO = {"bindingConditions": ["ready", "powered"]}
ONE = {"bindingConditions": ["ready"]}
READY = ("ready", "True")


@pytest.mark.parametrize(
    ("results", "devices", "ready"),
    [
        ((None,), None, True),
        ((), None, True),
        (({},), None, True),
        ((ONE,), None, False),
        ((ONE,), [{**DEVICE, "conditions": None}], False),
        ((ONE,), [told("a", READY)], True),
        ((ONE,), [told("b", READY)], False),
        ((ONE,), [{**told("a", READY), "pool": "n2"}], False),
        ((ONE,), [{**told("a", READY), "driver": "other"}], False),
        ((ONE,), [told("a", ("ready", "False"))], False),
        ((TWO,), [told("a", READY)], False),
        ((TWO,), [told("a", READY, ("powered", "Unknown"))], False),
        ((TWO,), [told("a", READY, ("powered", "True"))], True),
        (({}, ONE), None, False),
        (({}, ONE), [told("b", READY)], True),
        ((ONE, ONE), [told("a", READY)], False),
        ((ONE, ONE), [told("b", READY), told("a", READY)], True),
    ],
)
def test_a_claim_is_ready_once_each_device_meets_all_its_conditions(
    results: Any, devices: Any, ready: bool
) -> None:
    assert is_ready(bound(*results, devices=devices)) is ready


def test_without_an_allocation_nothing_is_ready() -> None:
    assert not is_ready(decode(ResourceClaim, a_claim_object("c")))


@pytest.mark.parametrize("failed", ["True", "False"])
def test_a_failure_is_told_with_its_reason_and_message(failed: str) -> None:
    fails = {**ONE, "bindingFailureConditions": ["lost", "failed"]}
    more = {"reason": "Broken", "message": 'the "card" is \\ gone'}
    claim = bound({}, fails, devices=[told("b", READY, ("failed", failed), **more)])
    if failed == "False":
        assert is_ready(claim)
        return
    with pytest.raises(BindingFailed) as problem:
        is_ready(claim)
    assert str(problem.value) == (
        'device binding failed: claim=c, reason=Broken, message="the \\"card\\" is \\\\ gone"'
    )


def test_one_device_that_binds_is_enough_to_be_late() -> None:
    cluster = Cluster()
    cluster.apply(Seen(NODE, a_node("n1")))
    cluster.wall_clock_s = START_S + 601
    places = DevicePlaces(cluster, 600)

    assert places.outside(bound({}, ONE, **STARTED)).tolist() == [True]
    assert places.outside(bound({}, {}, **STARTED)).tolist() == [False]


def random_terms(random: Random) -> list[dict[str, Any]]:
    """Of node selectors: names and labels, some of which make no sense."""

    def field() -> dict[str, Any]:
        key = random.choice(("metadata.name",) * 4 + ("metadata.namespace",))
        names = random.sample(NAMES, random.choice((1, 1, 1, 2, 0)))
        return {"key": key, "operator": random.choice(("In", "In", "NotIn")), "values": names}

    def expression() -> dict[str, Any]:
        operator = random.choice(("In", "NotIn", "Exists"))
        values = [] if operator == "Exists" else random.sample("abc", random.choice((1, 2)))
        return {"key": random.choice(("zone", "disk")), "operator": operator, "values": values}

    return [
        {
            "matchFields": [field() for _ in range(random.choice((0, 1, 1, 2)))],
            "matchExpressions": [expression() for _ in range(random.choice((0, 0, 1, 2)))],
        }
        for _ in range(random.choice((0, 1, 1, 2)))
    ]


NAMES = ["n0", "n1", "n2", "n3"]


@pytest.mark.parametrize("seed", range(20))
def test_nodes_that_come_go_and_change_are_judged_by_the_selector_anew(seed: int) -> None:
    """Node by node, term by term."""
    random = Random(seed)
    cluster, known = Cluster(), dict[str, Any]()
    places = DevicePlaces(cluster, 600)
    selectors = [{"nodeSelectorTerms": random_terms(random)} for _ in range(6)]
    selectors.append({})
    claims = [bound(nodeSelector=selector) for selector in selectors]
    for _ in range(25):
        name = random.choice(NAMES)
        if name in known and random.random() < 0.3:
            cluster.apply(Gone(NODE, known.pop(name)))
        else:
            labels = {
                key: random.choice("abc") for key in ("zone", "disk") if random.random() < 0.7
            }
            known[name] = a_node(name, **labels)
            cluster.apply(Seen(NODE, known[name]))
        for claim in claims:
            allocation = claim.status.allocation
            assert allocation is not None
            assert allocation.node_selector is not None
            terms = [compile_term(t) for t in allocation.node_selector.node_selector_terms or ()]
            found = places.outside(claim)
            for row, node in cluster.nodes.nodes():
                is_inside = any(term.matches(node.name, node.labels) for term in terms)
                assert found[row] == (not is_inside)


@pytest.mark.parametrize(("most_bytes", "kept"), [(0, 3), (39, 3), (40, 4), (49, 4), (50, 5)])
def test_rows_of_so_many_selectors_are_kept(
    most_bytes: int, kept: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As many as take so much, but never fewer than some; the oldest goes."""
    monkeypatch.setattr(room, "BYTES_MAX", most_bytes)
    monkeypatch.setattr(room, "SELECTORS_MIN", 3)
    cluster = Cluster()
    for number in range(9):  # and a byte more each
        cluster.apply(Seen(NODE, a_node(f"n{number}")))
    places = DevicePlaces(cluster, 600)
    claims = [
        decode(ResourceClaim, a_claim_object("c", **allocated(node=f"n{n}"))) for n in range(7)
    ]
    masks = [places.outside(claim) for claim in claims]

    assert len(places._outside) == kept
    assert places.outside(claims[-1]) is masks[-1]


def test_the_one_name_of_a_selector() -> None:
    def name_of(*terms: Any) -> str | None:
        return only_name(decode(NodeSelector, {"nodeSelectorTerms": list(terms)}))

    def field(**changes: Any) -> dict[str, Any]:
        return {"key": "metadata.name", "operator": "In", "values": ["n1"], **changes}

    only = {"matchFields": [field()]}
    assert name_of(only) == "n1"
    others = [
        (), (only, only), ({},), ({"matchFields": [field(), field()]},),
        ({**only, "matchExpressions": [ZONE_B]},), ({"matchFields": [field(operator="NotIn")]},),
        ({"matchFields": [field(values=["n1", "n2"])]},), ({"matchFields": [field(values=None)]},),
        ({"matchFields": [field(key="metadata.uid")]},), ({"matchFields": None},),
    ]  # fmt: skip
    assert [name_of(*terms) for terms in others] == [None] * len(others)
    assert only_name(decode(NodeSelector, {"nodeSelectorTerms": None})) is None
