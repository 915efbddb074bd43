"""Answers against a plain rule: each node is searched by itself, with an inventory of its own."""

import random
from collections.abc import Callable
from typing import Any

import pytest

from asched.core.dra import answer_codes as codes
from asched.core.dra.allocator import NodeRejected, OutOfSteps, Solution, allocate
from asched.core.dra.answers import AnswerBook, Answers, score_allocated
from asched.core.dra.demand import DeviceDemand, in_memory_claim
from asched.core.dra.inventory import Inventory
from asched.core.dra.ledger import DeviceLedger
from asched.core.dra.plan import AllocationError
from asched.core.model.claim import AllocationResult, ResourceClaim
from asched.core.model.decode import decode
from asched.core.model.kinds import DEVICE_CLASS, NODE, RESOURCE_CLAIM, RESOURCE_SLICE
from asched.core.state import change_log
from asched.core.state.budget import OutOfTurn
from asched.core.state.cluster import Cluster
from asched.core.state.facts import Gone, Seen
from tests.builders import a_node, a_pod, pending
from tests.core.dra.worlds import a_claim, a_class, a_device, a_slice, asks, first_of, held

GPU, NIC = "example.com/gpu", "example.com/nic"
STEPS_MAX = 40
ZONE = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "zone", "operator": "Exists"}]}]}


class Play:
    """A cluster to which things happen by chance."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.cluster = Cluster()
        self.ledger = self.cluster.singleton(DeviceLedger)
        self.book = AnswerBook(self.ledger, self.cluster.nodes, STEPS_MAX)
        self.step = 0
        for number in range(4):
            self.node(f"n{number}")
        for name in ("gpu", "big"):
            self.device_class(name)
        self.wanted = [self.claim(n) for n in range(5)]

    def node(self, name: str) -> None:
        made = a_node(name).allocatable({GPU: str(self.rng.randrange(2))} | self.some(NIC))
        self.cluster.apply(Seen(NODE, made.labels(self.some("zone")).build()))

    def some(self, key: str) -> dict[str, str]:
        return {key: "1"} if self.rng.random() < 0.4 else {}

    def device_class(self, name: str) -> None:
        selector = self.rng.choice(["true", "true", 'device.driver == "gpu.example.com"', "false"])
        extended = GPU if name == "gpu" and self.rng.random() < 0.8 else None
        made = a_class(name, selector, extendedResourceName=extended)
        self.cluster.apply(Seen(DEVICE_CLASS, made))

    def slice(self, number: int) -> None:
        where: dict[str, Any] = self.rng.choice(
            [{"nodeName": f"n{number}"}] * 3
            + [{"allNodes": True}, {"nodeSelector": ZONE}, {"perDeviceNodeSelection": True}]
        )
        devices = []
        for at in range(self.rng.randrange(4)):
            own = {"nodeName": f"n{at}"} if "perDeviceNodeSelection" in where else {}
            numa = {"attributes": {"numa": self.rng.randrange(2)}}
            devices.append(a_device(f"g{self.rng.choice((at, at, 0))}", **numa, **own))
        record = a_slice(*devices, pool=f"n{number}", **where)
        self.cluster.apply(Seen(RESOURCE_SLICE, record))

    def happen(self) -> None:
        rng, cluster, number = self.rng, self.cluster, self.rng.randrange(6)
        self.step += 1
        match rng.randrange(10):
            case 0 | 1 | 2:
                self.slice(number)
            case 3 if known := cluster.all(RESOURCE_SLICE):
                cluster.apply(Gone(RESOURCE_SLICE, known[rng.choice(sorted(known))]))
            case 4 | 5:
                claim = a_claim(name=f"c{self.step}").allocated(
                    held(f"g{rng.randrange(3)}", pool=f"n{number}")
                )
                cluster.apply(Seen(RESOURCE_CLAIM, claim))
            case 6 if known := cluster.all(RESOURCE_CLAIM):
                cluster.apply(Gone(RESOURCE_CLAIM, known[rng.choice(sorted(known))]))
            case 7 if (gone := cluster.node_of(f"n{number}")) and rng.random() < 0.5:
                cluster.apply(Gone(NODE, gone))
            case 8 if rng.random() < 0.3:
                self.device_class(rng.choice(["gpu", "big"]))
            case _:
                self.node(f"n{number}")

    def claim(self, number: int) -> ResourceClaim:
        one, two = asks(of="gpu"), asks(of="big", count=2)
        listed = first_of(asks(of="big", count=3), two, one)
        alike = {"constraints": [{"matchAttribute": "gpu.example.com/numa"}]}
        wanted = ([one], [one, two], [listed], [asks(of="gpu", all=True)], [listed, listed])[number]
        return a_claim(*wanted, name=f"w{number}", **(alike if self.rng.random() < 0.5 else {}))

    def wants(self) -> Callable[[], DeviceDemand]:
        """A demand of some claims, of extended resources, or of both; made anew at each call."""
        rng = self.rng
        claims = tuple(rng.sample(self.wanted, rng.choice((0, 1, 1, 2))))
        pod = a_pod("web", "d").requests({GPU: "1"} | self.some(NIC))
        extended = None
        if not claims or rng.random() < 0.3:
            extended = in_memory_claim(pod.build())
            if rng.random() < 0.2:
                extended = self.wanted[0]  # left from an earlier attempt
        has_user_claims = bool(claims) or rng.random() < 0.2
        info = pending(self.cluster, pod)
        return lambda: DeviceDemand(info, claims, extended, has_user_claims, self.ledger)

    def expected(self, demand: DeviceDemand, name: str) -> tuple[int, int, Any]:
        """(code, score, devices) of one node."""
        node = self.cluster.node_of(name)
        assert node is not None
        served = demand.served(node) if demand.extended is not None else frozenset[str]()
        if demand.is_stale:
            return codes.STALE_EXTENDED, 0, None
        if served is None:
            return codes.CANNOT_FIT, 0, None
        try:
            plans = demand.plans(served)
            slices = self.cluster.all(RESOURCE_SLICE).values()
            pools = Inventory(slices).pools_for(name, node.labels)
            place = (name, node.labels)
            found = allocate(pools, plans, self.ledger.taken, place, STEPS_MAX)
        except NodeRejected:
            return codes.INVALID, 0, None
        except OutOfSteps:
            return codes.TIMED_OUT, 0, None
        except AllocationError as error:
            return codes.FAILED, 0, str(error)
        if found is None:
            return codes.CANNOT_ALLOCATE, 0, None
        score = sum(
            8 - selected
            for plan, chosen in zip(plans, found.selected, strict=True)
            for is_list, selected in zip(plan.is_list, chosen, strict=True)
            if is_list
        )
        return codes.FITS, score, names_of(found)

    def ask(self, wants: Callable[[], DeviceDemand]) -> tuple[DeviceDemand, Answers]:
        """In one go, or in slices of some steps between which others ask, or something happens."""
        budget, is_sliced = self.cluster.budget, self.rng.random() < 0.7
        while True:
            self.ledger.catch_up()
            demand = wants()
            if is_sliced:
                budget.open(3)
            try:
                return demand, self.book.answers(demand)
            except OutOfTurn:
                budget.close()
                if self.rng.random() < 0.1:
                    self.book.answers(self.wants()())
                if self.rng.random() < 0.1:
                    self.happen()
            finally:
                budget.close()

    def check(self) -> set[int]:
        """The codes that were seen."""
        nodes, seen = self.cluster.nodes, set()
        demand, answers = self.ask(self.wants())
        assert not answers.left
        assert answers.search is None
        assert len(answers.codes) == len(answers.scores) == nodes.height
        for name, row in nodes.row_of.items():
            code, score, devices = self.expected(demand, name)
            assert (answers.codes[row], answers.scores[row]) == (code, score), name
            seen.add(code)
            if code == codes.FITS:
                node = self.cluster.node_of(name)
                assert node is not None
                _, solution = self.book.solve(demand, node)
                assert names_of(solution) == devices
        return seen


def names_of(solution: Solution | None) -> list[list[str]] | None:
    if solution is None:
        return None
    return [[one.device.id.text for one in claim] for claim in solution.devices]


@pytest.mark.parametrize("seed", range(30))
def test_whatever_happens_each_node_is_judged_as_if_it_were_alone(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    if seed % 3 == 0:  # those who were away long do not hear what changed
        monkeypatch.setattr(change_log, "LOG_ENTRIES_MAX", 4)
    play = Play(seed)
    for _ in range(40):
        for _ in range(play.rng.choice((1, 1, 2, 6))):
            play.happen()
        play.check()


def test_the_plays_meet_every_end() -> None:
    seen = set[int]()
    for seed in range(10):
        play = Play(seed)
        for _ in range(40):
            play.happen()
            seen |= play.check()
    wanted = {"FITS", "CANNOT_ALLOCATE", "STALE_EXTENDED", "CANNOT_FIT", "INVALID", "FAILED"}
    assert seen >= {getattr(codes, name) for name in wanted}


@pytest.mark.parametrize(
    ("chosen", "score"),
    [
        (("r0",), 0),
        (("r1/s0",), 8),
        (("r1/s2", "r1/s2"), 6),
        (("r0", "r1/s1", "r2/s0"), 15),
        (("r2/s1",), 7),
        (("r0/s0", "r1/r1", "s0", "r3/s0"), 0),
    ],
)
def test_what_is_allocated_scores_by_the_alternatives_it_got(
    chosen: tuple[str, ...], score: int
) -> None:
    """Eight for the first of a list, however many devices it has; one less for each further."""
    two, three = first_of(asks(), asks()), first_of(asks(), asks(), asks())
    claim = a_claim(asks(), three, two)
    assert score_allocated(claim) == 0
    results = [{"request": name, "device": "a"} for name in chosen]
    allocation = decode(AllocationResult, {"devices": {"results": results}})
    assert score_allocated(claim.allocated(allocation)) == score


def test_a_claim_that_asks_for_nothing_scores_nothing() -> None:
    nothing = AllocationResult()
    for claim in (a_claim(), a_claim(first_of(asks())), ResourceClaim()):
        assert score_allocated(claim.allocated(nothing)) == 0
