"""What is kept of answers, for how long, and what it saves: counted, never timed."""

from typing import Any

import pytest

from asched.core.dra import answers as module
from asched.core.dra import inventory
from asched.core.dra.allocator import Solution
from asched.core.dra.demand import DeviceDemand, in_memory_claim
from asched.core.dra.effort import CHUNK_STEPS
from asched.core.dra.plan import AllocationError
from asched.core.model.claim import ResourceClaim
from asched.core.model.kinds import DEVICE_CLASS, NODE, POD, RESOURCE_SLICE
from asched.core.model.node import Node
from asched.core.state import change_log
from asched.core.state.budget import OutOfTurn
from asched.core.state.facts import Gone, Seen
from tests.builders import a_node, a_pod, pending
from tests.core.dra.test_answers import World, hopeless, in_slices, kinds
from tests.core.dra.worlds import a_claim, a_class, a_device, a_slice, asks, first_of

GPU = "example.com/gpu"


def claims(count: int) -> list[ResourceClaim]:
    """That ask for something else each."""
    return [a_claim(asks(count=n + 1)) for n in range(count)]


def node_of(world: World, name: str) -> Node:
    node = world.cluster.node_of(name)
    assert node is not None
    return node


@pytest.mark.parametrize(("rows_paid", "kept"), [(0, 8), (7, 8), (8, 8), (9, 9), (12, 12)], ids=str)
def test_answers_unused_for_longest_go_when_all_take_too_much(
    rows_paid: int, kept: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As many as are paid for, at ROW_BYTES a row and one row more; eight at least."""
    world = World(4)
    monkeypatch.setattr(module, "BYTES_MAX", module.ROW_BYTES * 5 * rows_paid + module.ROW_BYTES)
    demands = [world.demand(claim) for claim in claims(kept + 2)]
    made = [world.book.answers(demand) for demand in demands[:kept]]
    assert world.book.answers(demands[0]) is made[0], "it is the one used last now"
    world.book.answers(demands[kept])
    assert world.book.answers(demands[0]) is made[0]
    assert world.book.answers(demands[2]) is made[2]
    assert world.book.answers(demands[1]) is not made[1]


def test_what_single_searches_came_to_is_bounded_and_begun_anew(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of classes that select the same, the second asks nobody, unless too much was known."""
    monkeypatch.setattr(module, "FOUND_MAX", 3)
    world = World(1)
    world.publish(0, "a")
    world.cluster.apply(Seen(DEVICE_CLASS, a_class("other")))

    def searches(count: int, of: str = "gpu") -> int:
        before = world.book.searches
        world.codes(a_claim(asks(count=count, of=of)))
        return world.book.searches - before

    for _ in range(2):
        assert [searches(n) for n in (1, 2, 3)] == [1, 1, 1]
        assert [searches(n, "other") for n in (1, 2, 3)] == [0, 0, 0], "three may be known"
        assert searches(4) == 1
        assert searches(4, "other") == 1, "a fourth was too much"
        world.publish(0, "a")  # all is to be found again
    world.publish(0, "b")
    assert [searches(n) for n in (1, 2)] == [1, 1]
    world.publish(0, "c")
    assert [searches(n) for n in (1, 2, 3)] == [1, 1, 1]
    assert [searches(n, "other") for n in (1, 2, 3)] == [0, 0, 0], "what changed counts no more"


def test_nodes_without_devices_are_neither_searched_nor_asked_for_pools() -> None:
    """But for one of them, in whose place there is a node."""
    world = World(6)
    world.publish(4, "a")
    world.cluster.apply(Gone(NODE, node_of(world, "n0")))
    asked = []
    pools_for = world.ledger.inventory.pools_for

    def counting(name: str, labels: Any) -> Any:
        asked.append(name)
        return pools_for(name, labels)

    world.ledger.inventory.pools_for = counting  # type: ignore[method-assign]
    assert world.codes(a_claim(asks()))[1:] == [1, 1, 1, 0, 1]
    assert asked == ["n4"]
    assert world.book.searches == 2


def test_what_runs_on_a_node_is_no_matter_and_labels_are() -> None:
    world = World(2)
    zone = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "zone", "operator": "Exists"}]}]}
    world.publish(0, "a", nodeName=None, nodeSelector=zone)
    assert world.codes(a_claim(asks())) == [1, 1]
    searches = world.book.searches
    world.cluster.apply(Seen(POD, a_pod("p").on("n1").build()))
    assert world.codes(a_claim(asks())) == [1, 1]
    assert world.book.searches == searches
    world.cluster.apply(Seen(NODE, a_node("n1").labels({"zone": "z"}).build()))
    assert world.codes(a_claim(asks())) == [1, 0]


def test_whoever_lost_his_place_among_what_is_taken_judges_all_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(change_log, "LOG_ENTRIES_MAX", 4)
    world = World(3)
    for n in range(3):
        world.publish(n, "a", "b")
    assert world.codes(a_claim(asks(count=2))) == [0, 0, 0]
    for claim in range(8):
        world.allocate(f"c{claim}", "ab"[claim % 2], "n1")
    assert world.codes(a_claim(asks(count=2))) == [0, 1, 0]


def test_a_search_costs_a_little_and_its_devices() -> None:
    world = World(3)
    for n in range(3):
        world.publish(n, "a", "b")
    before = world.cluster.budget.spent
    world.codes(a_claim(asks(count=2)))
    each = module.ROW_STEPS + 2 / module.DEVICES_PER_STEP
    assert world.cluster.budget.spent - before == pytest.approx(3 * each)


def test_shared_nodes_are_searched_once_however_often_it_is_put_off() -> None:
    """Of ten that see the same, between others that take long."""
    world = World(20)
    for n in range(0, 20, 2):
        world.publish(n, *kinds(40))
    world.cluster.apply(Seen(NODE, node_of(world, "n0")))
    world.cluster.apply(
        Seen(RESOURCE_SLICE, a_slice("w", pool="wide", nodeName=None, allNodes=True))
    )
    _, spent = in_slices(world, world.demand(hopeless()))
    assert len(spent) > 10
    assert world.book.searches == 11


def test_a_search_that_was_put_off_goes_on_whatever_happens_elsewhere() -> None:
    """A node without devices is judged before it, and again when it changes."""
    world = World(3)
    for n in range(2):
        world.publish(n, *kinds(60))
    put_off(world, world.demand(hopeless()))
    assert world.book.searches == 2
    world.publish(1, "a")
    world.cluster.apply(Seen(NODE, a_node("n2").labels({"x": "y"}).build()))
    assert world.codes(hopeless()) == [1, 1, 1]
    assert world.book.searches == 4


def put_off(world: World, demand: DeviceDemand) -> None:
    world.cluster.budget.open(20)
    with pytest.raises(OutOfTurn, match="node n0: timed out trying to allocate devices"):
        world.book.answers(demand)
    world.cluster.budget.close()


def test_a_class_that_changes_ends_a_search_that_was_put_off() -> None:
    world = World(1)
    four = [a_device(f"z{n}", attributes={"kind": "same"}) for n in range(4)]
    world.publish(0, *kinds(60), *four)
    put_off(world, world.demand(hopeless()))
    world.cluster.apply(Seen(DEVICE_CLASS, a_class("gpu", "false")))
    assert world.codes(hopeless()) == [module.CANNOT_ALLOCATE]
    world.cluster.apply(Seen(DEVICE_CLASS, a_class("gpu")))
    assert world.codes(hopeless()) == [module.FITS]


def test_another_node_s_search_is_not_gone_on_with() -> None:
    """A node without devices comes while another's search is put off, and is judged first."""
    world = World(1)
    world.publish(0, *kinds(60), *[a_device(f"z{n}", attributes={"kind": "s"}) for n in range(4)])
    put_off(world, world.demand(hopeless()))
    world.cluster.apply(Seen(NODE, a_node("n1").build()))
    assert world.codes(hopeless()) == [module.FITS, module.CANNOT_ALLOCATE]


# --- what took long ---------------------------------------------------------------------------


def lacking(count: int) -> list[dict[str, Any]]:
    """Devices of which the last alone has the capacity that is asked for."""
    last = a_device("last", capacity={"memory": {"value": "1"}})
    return [*(a_device(f"d{n:03}") for n in range(count - 1)), last]


MEMORY = {"capacity": {"requests": {"memory": "1"}}}


@pytest.mark.parametrize(("looked_at", "is_kept"), [(CHUNK_STEPS, False), (CHUNK_STEPS + 1, True)])
def test_a_solution_is_kept_if_it_took_more_than_one_stretch(looked_at: int, is_kept: bool) -> None:
    world = World(1)
    world.publish(0, *lacking(looked_at))
    demand = world.demand(a_claim(asks(**MEMORY)))
    assert world.book.answers(demand).codes.tolist() == [module.FITS]
    first, second = (solution_of(world, demand) for _ in range(2))
    assert names_of(first) == names_of(second) == ["last"]
    assert (first is second) is is_kept


def solution_of(world: World, demand: DeviceDemand, name: str = "n0") -> Solution | None:
    return world.book.solve(demand, node_of(world, name))[1]


def names_of(solution: Solution | None) -> list[str]:
    assert solution is not None
    return [one.device.id.device for one in solution.devices[0]]


def test_a_solution_that_is_kept_goes_with_what_it_rests_on() -> None:
    world = World(2)
    world.publish(0, *lacking(CHUNK_STEPS + 9))
    demand = world.demand(a_claim(asks(**MEMORY)))
    world.book.answers(demand)
    world.publish(0, a_device("new", capacity={"memory": {"value": "1"}}))
    world.ledger.catch_up()
    assert names_of(solution_of(world, demand)) == ["new"], "not answered yet"
    world.book.answers(demand)
    assert names_of(solution_of(world, demand)) == ["new"], "answered without much work"
    world.cluster.apply(Seen(DEVICE_CLASS, a_class("gpu", "false")))
    assert solution_of(world, world.demand(a_claim(asks(**MEMORY)))) is None


def test_a_node_that_is_not_known_has_nothing_kept() -> None:
    world = World(2)
    world.publish(1, *lacking(CHUNK_STEPS + 9))
    demand = world.demand(a_claim(asks(**MEMORY)))
    world.book.answers(demand)
    assert world.book.solve(demand, a_node("n7").build())[1] is None
    other = world.demand(a_claim(asks(count=2)))
    assert solution_of(world, other, "n1") is not None, "another demand, of which nothing is kept"


@pytest.mark.parametrize(("count", "is_kept"), [(20, False), (600, True)])
def test_words_are_kept_if_it_took_long_to_hear_them(count: int, is_kept: bool) -> None:
    """The last device alone lacks what the selector reads."""
    world = World(1)
    devices = [a_device(f"d{n:03}", attributes={"x": 0}) for n in range(count)]
    world.publish(0, *devices, "last")
    text = 'device.attributes["gpu.example.com"].x + 1 == 2'
    demand = world.demand(a_claim(asks(" && ".join([text] * 3))))
    assert world.book.text_of(demand, 0) == ""
    assert world.book.answers(demand).codes.tolist() == [module.FAILED]
    words = world.book.text_of(demand, 0)
    assert ("no such key: x" in words) is bool(words) is is_kept
    with pytest.raises(AllocationError, match="no such key: x"):
        solution_of(world, demand)
    world.publish(0, *devices)
    world.ledger.catch_up()
    assert world.book.text_of(demand, 0) == ""


def test_a_claim_that_makes_no_sense_has_no_search() -> None:
    world = World(1)
    world.publish(0, "a")
    demand = world.demand(a_claim(asks(of="unknown")))
    assert world.book.answers(demand).codes.tolist() == [module.FAILED]
    assert world.book.text_of(demand, 0) == ""


# --- others than the first --------------------------------------------------------------------


def extended(world: World) -> DeviceDemand:
    """Of one extended resource, which devices serve where the node has none."""
    world.cluster.apply(Seen(DEVICE_CLASS, a_class(extendedResourceName=GPU)))
    world.ledger.catch_up()
    pod = a_pod("web", "d").requests({GPU: "1"})
    info = pending(world.cluster, pod)
    return DeviceDemand(info, (), in_memory_claim(pod.build()), False, world.ledger)


def test_several_solutions_are_counted_and_told_by_number() -> None:
    world = World(1)
    world.publish(0, *(a_device(name, attributes={"kind": name}) for name in "abc"))
    node = node_of(world, "n0")
    for demand in (world.demand(a_claim(asks())), extended(world)):
        assert [world.book.count(demand, node, most) for most in (1, 2, 3, 9)] == [2, 3, 3, 3]
        before = world.cluster.budget.spent
        found = [world.book.solve(demand, node, number) for number in range(4)]
        assert [names_of(solution) for _, solution in found[:3]] == [["a"], ["b"], ["c"]]
        assert found[3][1] is None
        assert all(len(plans) == 1 for plans, _ in found)
        # From the second on all up to it are looked for: two, three, and all three again.
        steps = (world.cluster.budget.spent - before) * module.DEVICES_PER_STEP
        assert steps == pytest.approx(2 + 3 + 3)


def test_a_node_that_offers_the_resource_itself_has_no_devices_to_choose() -> None:
    world = World(0)
    world.cluster.apply(Seen(NODE, a_node("n0").allocatable({GPU: "1"}).build()))
    world.publish(0, "a", "b")
    demand = extended(world)
    assert world.book.answers(demand).codes.tolist() == [module.FITS]
    assert world.book.searches == 0
    assert world.book.solve(demand, node_of(world, "n0"))[0] == ()


def test_scores_are_those_of_the_alternatives() -> None:
    world = World(3)
    world.publish(1, "a", "b")
    world.publish(2, "a")
    two = world.demand(a_claim(first_of(asks(count=2), asks()), asks(count=0)))
    answers = world.book.answers(two)
    assert answers.codes.tolist() == [1, 0, 0]
    assert answers.scores.tolist() == [0, 8, 7]


def test_views_of_nodes_that_went_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inventory, "SPARE", 0)
    world = World(0)
    for n in range(20):
        world.cluster.apply(Seen(NODE, a_node(f"n{n}").build()))
        world.publish(n, "a")
        assert world.codes(a_claim(asks())) == [0]
        world.cluster.apply(Gone(NODE, node_of(world, f"n{n}")))
    assert len(world.ledger.inventory._views) <= 4
