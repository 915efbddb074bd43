"""Counters filled in slices, while pods come, go and are relabelled, count what is there."""

import random

import pytest

from asched.core.model.meta import LabelSelector
from asched.core.model.selector import Matcher, Requirement, Selector, compile_selector
from asched.core.state import populations, topology
from asched.core.state.audit import recount
from asched.core.state.budget import OutOfTurn
from asched.core.state.counters import CounterKey, PodCounter, PodPredicate
from tests.topology_world import World, a_node, a_pod

WEB = CounterKey(
    (PodPredicate(None, compile_selector(LabelSelector({"app": "web"})) or Selector(())),),
    counts_terminating=False,
)


def a_crowd(world: World, count: int) -> None:
    for i in range(count):
        app = "web" if i % 3 else "db"
        world.see(a_pod(f"p{i}", f"app={app} own=v{i}", node=f"n{i % 4}"))


def ask(world: World, steps: int) -> PodCounter | None:
    """The counter, if it could be filled with so many steps."""
    world.cluster.budget.open(steps)
    try:
        return world.cluster.counter(WEB)
    except OutOfTurn:
        return None
    finally:
        world.cluster.budget.close()


@pytest.mark.parametrize("seed", range(20))
def test_a_counter_that_is_filled_in_slices_is_right(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(topology, "FILLED_STEPS", 0.5)
    monkeypatch.setattr(populations, "SETS_FEW", 2)
    monkeypatch.setattr(populations, "PART", 7)
    monkeypatch.setattr(populations, "FOUND_PER_STEP", 7)
    monkeypatch.setattr(populations, "READ_PER_STEP", 7)
    rng = random.Random(seed)
    world = World(*(a_node(f"n{i}") for i in range(4)))
    a_crowd(world, 60)
    counter = None
    slices = 0
    while counter is None:
        slices += 1
        counter = ask(world, 1)
        i = rng.randrange(60)
        match rng.randrange(3):
            case 0:
                world.see(a_pod(f"new{slices}", f"app=web own=w{slices}", node=f"n{i % 4}"))
            case 1:
                world.see(a_pod(f"p{i}", f"app=web own=v{rng.randrange(60)}", node=f"n{i % 4}"))
            case _ if f"default/p{i}" in world.cluster.pods_seen:
                world.lose(world.cluster.pods_seen[f"default/p{i}"])
        assert not recount(world.cluster)
    assert slices > 3 + 60 // 7
    assert not counter.is_filling
    assert not recount(world.cluster)
    web = [p for p in world.cluster.pods_seen.values() if p.labels.get("app") == "web"]
    assert counter.total == len(web)


@pytest.mark.parametrize("seed", range(100))
def test_a_matcher_says_what_its_requirements_say(seed: int) -> None:
    rng = random.Random(seed)
    operators = ["In", "NotIn", "Exists", "DoesNotExist"]
    some = [
        Requirement(rng.choice("abc"), rng.choice(operators), frozenset(rng.choices("xyz", k=2)))
        for _ in range(rng.randint(0, 5))
    ]
    matcher = Matcher(some)
    for _ in range(30):
        labels = {key: rng.choice("xyz") for key in "abcd" if rng.random() < 0.5}
        assert matcher.matches(labels) is all(one.matches(labels) for one in some), f"seed {seed}"


def test_a_matcher_asks_a_label_set_about_its_own_keys() -> None:
    """Thousands of requirements cost a pod with two labels two looks."""
    many = [Requirement(f"k{i}", "NotIn", frozenset("x")) for i in range(5000)]
    asked: list[str] = []

    class Labels(dict[str, str]):
        def get(self, key: str, default: object = None) -> object:  # type: ignore[override]
            asked.append(key)
            return super().get(key, default)  # type: ignore[call-overload]

        def __contains__(self, key: object) -> bool:
            asked.append(str(key))
            return super().__contains__(key)

    assert Matcher(many).matches(Labels(k1="y", k2="y"))
    assert len(asked) <= 2
