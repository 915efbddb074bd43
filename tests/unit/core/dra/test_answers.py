"""Cached results: right after every change, and made anew for the rows concerned alone."""

import random
from typing import Any

import pytest

from asched.core.cluster.budget import OutOfTurn
from asched.core.cluster.cluster import Cluster
from asched.core.cluster.facts import Gone, Seen
from asched.core.dra import answers as kept
from asched.core.dra.allocator import CHUNK_STEPS
from asched.core.dra.answers import AnswerBook
from asched.core.dra.ledger import DeviceLedger
from asched.core.dra.plan import DeviceDemand
from asched.core.model.claim import ResourceClaim
from asched.core.model.decode import decode
from asched.core.model.kinds import DEVICE_CLASS, NODE, RESOURCE_CLAIM, RESOURCE_SLICE
from asched.core.model.node import Node
from asched.core.model.pod import Pod
from tests.device_builders import a_claim, a_class, a_device, a_slice, asks, held


class World:
    def __init__(self, count: int) -> None:
        self.cluster = Cluster()
        self.ledger = self.cluster.singleton(DeviceLedger)
        self.book = AnswerBook(self.ledger, self.cluster.nodes, 0)
        self.cluster.apply(Seen(DEVICE_CLASS, a_class()))
        for i in range(count):
            self.cluster.apply(Seen(NODE, decode(Node, {"metadata": {"name": f"n{i}"}})))

    def publish(self, i: int, *devices: dict[str, Any] | str, **fields: Any) -> None:
        record = a_slice(*devices, pool=f"n{i}", **({"nodeName": f"n{i}"} | fields))
        self.cluster.apply(Seen(RESOURCE_SLICE, record))

    def withdraw(self, rng: random.Random) -> None:
        """Any slice goes."""
        known = self.cluster.all(RESOURCE_SLICE)
        if known:
            self.cluster.apply(Gone(RESOURCE_SLICE, known[rng.choice(sorted(known))]))

    def allocate(self, name: str, device: str, pool: str) -> None:
        metadata = {"name": name, "namespace": "d", "uid": name}
        claim = decode(ResourceClaim, {"metadata": metadata}).allocated(held(device, pool=pool))
        self.cluster.apply(Seen(RESOURCE_CLAIM, claim))

    def demand(self, *claims: ResourceClaim) -> DeviceDemand:
        self.ledger.catch_up()
        pod = decode(Pod, {"metadata": {"name": "p"}})
        info = self.cluster.classes.info_of(pod)
        return DeviceDemand(info, claims, None, has_user_claims=True, ledger=self.ledger)

    def codes(self, *claims: ResourceClaim) -> list[int]:
        return self.book.answers(self.demand(*claims)).codes.tolist()


def test_what_the_search_reads_tells_demands_apart() -> None:
    """Each in a world where the first of two claims would do, and the second will not."""
    world = World(1)
    world.publish(0, a_device("a", taints=[{"key": "k", "effect": "NoSchedule"}]), "b")
    tolerates = [{"key": "k", "operator": "Exists"}]
    assert world.codes(a_claim(asks(count=2, tolerations=tolerates))) == [0]
    assert world.codes(a_claim(asks(count=2))) == [1]
    assert world.codes(a_claim(asks(count=3, tolerations=tolerates))) == [1]
    assert world.codes(a_claim(asks("false", count=2, tolerations=tolerates))) == [1]
    assert world.codes(a_claim(asks(count=2, tolerations=tolerates), asks())) == [1]


def test_errors_are_codes() -> None:
    world = World(1)
    world.publish(0, "a")
    assert world.codes(a_claim(asks("nope"))) == [kept.FAILED]
    world.publish(0, "a", "a")
    assert world.codes(a_claim(asks())) == [kept.INVALID]
    limited = AnswerBook(world.ledger, world.cluster.nodes, 1)
    world.publish(0, "a", "b")
    answered = limited.answers(world.demand(a_claim(asks(count=2))))
    assert answered.codes.tolist() == [kept.TIMED_OUT]


@pytest.mark.parametrize("seed", range(8))
def test_kept_answers_equal_fresh_ones(seed: int) -> None:
    """After any sequence of changes, a book that cached results says what a new one says."""
    rng = random.Random(seed)
    world = World(4)
    claims: list[str] = []
    nodes = 4
    for step in range(40):
        node = rng.randrange(nodes)
        match rng.randrange(6):
            case 0:
                wide = {"nodeName": None, "allNodes": True} if rng.random() < 0.3 else {}
                names = [f"g{i}" for i in range(rng.randint(0, 3))]
                world.publish(node, *names, **wide)
            case 1:
                world.allocate(f"c{step}", f"g{rng.randrange(3)}", f"n{node}")
                claims.append(f"c{step}")
            case 2 if claims:
                name = claims.pop(rng.randrange(len(claims)))
                gone = world.cluster.get(RESOURCE_CLAIM, f"d/{name}")
                world.cluster.apply(Gone(RESOURCE_CLAIM, gone))
            case 3:
                nodes += 1
                added = {"metadata": {"name": f"n{nodes - 1}"}}
                world.cluster.apply(Seen(NODE, decode(Node, added)))
            case 4:
                world.withdraw(rng)
            case _:
                labels = {"k": str(step)}
                metadata = {"name": f"n{node}", "labels": labels}
                world.cluster.apply(Seen(NODE, decode(Node, {"metadata": metadata})))
        demand = world.demand(a_claim(asks(count=rng.randint(1, 2))))
        if rng.random() < 0.4:
            continue  # several changes at a time
        fresh = AnswerBook(world.ledger, world.cluster.nodes, 0).answers(demand)
        assert world.book.answers(demand).codes.tolist() == fresh.codes.tolist(), f"seed {seed}"


def hopeless() -> ResourceClaim:
    """Four devices with one attribute in common, of which there are three of each."""
    alike = [{"requests": [], "matchAttribute": "gpu.example.com/kind"}]
    return a_claim(asks(count=4), constraints=alike)


def kinds(count: int) -> list[dict[str, Any]]:
    return [a_device(f"d{i}", attributes={"kind": f"k{i // 3}"}) for i in range(count)]


def in_slices(world: World, demand: DeviceDemand) -> tuple[list[int], list[float]]:
    """(the answers, the steps of each stretch), as a machine would ask for them."""
    budget, spent = world.cluster.budget, []
    while True:
        before = budget.spent
        budget.open(20)
        try:
            return world.book.answers(demand).codes.tolist(), spent
        except OutOfTurn:
            spent.append(budget.spent - before)
        finally:
            budget.close()


def test_a_long_search_is_put_off_and_gone_on_with() -> None:
    world = World(2)
    for i in range(2):
        world.publish(i, *kinds(120))
    in_one_go = AnswerBook(world.ledger, world.cluster.nodes, 0)
    demand = world.demand(hopeless())
    before = world.cluster.budget.spent
    codes = in_one_go.answers(demand).codes.tolist()
    whole = world.cluster.budget.spent - before
    found, spent = in_slices(world, demand)
    assert found == codes == [kept.CANNOT_ALLOCATE] * 2
    assert len(spent) > 10
    assert max(spent) <= 20 + 2 * (CHUNK_STEPS / kept.DEVICES_PER_STEP)
    assert sum(spent) == pytest.approx(whole, abs=CHUNK_STEPS)


def test_a_search_that_was_put_off_starts_anew_if_its_devices_changed() -> None:
    world = World(1)
    world.publish(0, *kinds(120))
    demand = world.demand(hopeless())
    world.cluster.budget.open(20)
    with pytest.raises(OutOfTurn):
        world.book.answers(demand)
    world.cluster.budget.close()
    world.publish(0, *(a_device(f"e{i}", attributes={"kind": "same"}) for i in range(4)))
    assert world.codes(hopeless()) == [kept.FITS]
