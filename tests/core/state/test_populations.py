"""Which sets of labels a selector may match, found by value, and where their pods are."""

from random import Random

import pytest

from asched.core.model.selector import Requirement, Selector
from asched.core.state import populations
from asched.core.state.counters import PodPredicate
from asched.core.state.pods import LabelSet
from asched.core.state.populations import Population, Populations

NAMESPACES = ("red", "blue")


def labels(namespace: str = "x", **pairs: str) -> LabelSet:
    return LabelSet(1, namespace, pairs)


def test_a_population_keeps_terminating_pods_apart() -> None:
    population = Population(labels())
    population.move(3, 1, is_terminating=False)
    population.move(3, 1, is_terminating=True)
    population.move(3, -1, is_terminating=False)

    assert (population.staying, population.terminating) == ({}, {3: 1})
    assert not population.is_empty


@pytest.mark.parametrize("seed", range(20))
def test_whoever_matches_is_found_while_pods_come_and_go(seed: int, monkeypatch) -> None:
    """Few keys are known by value at a time, and sets are looked up however few there are."""
    monkeypatch.setattr(populations, "SETS_FEW", 2)
    monkeypatch.setattr(populations, "KEYS_MAX", 3)
    monkeypatch.setattr(populations, "ENTRIES_MAX", 12)
    random, there = Random(seed), Populations()
    pods: list[tuple[LabelSet, int]] = []
    sets = [
        LabelSet(n, random.choice(NAMESPACES), dict.fromkeys(random.sample("abc", 2), f"{n % 2}"))
        for n in range(30)
    ]
    for _ in range(200):
        if pods and random.random() < 0.45:
            there.move(*pods.pop(random.randrange(len(pods))), -1, is_terminating=False)
        else:
            pods.append((random.choice(sets), random.randrange(3)))
            there.move(*pods[-1], 1, is_terminating=False)
        predicate = _predicate(random)
        found = list(there.who_may_match(predicate))
        wanted = {label_set for label_set, _ in pods if predicate.matches(label_set)}
        assert len(found) == len(set(found))
        assert wanted <= set(found) <= {label_set for label_set, _ in pods}
        assert set(there) == {label_set for label_set, _ in pods}
        assert len(there._by_value) <= populations.KEYS_MAX
        known = [sets for by_value in there._by_value.values() for sets in by_value.values()]
        entries = sum(1 if isinstance(sets, LabelSet) else len(sets) for sets in known)
        assert there._entries == entries
        assert entries <= populations.ENTRIES_MAX or len(there._by_value) == 1
    while pods:
        there.move(*pods.pop(), -1, is_terminating=False)
    assert not list(there)
    assert not there._by_value
    assert not there._known_keys
    assert not there._entries


def test_sets_with_other_values_are_not_looked_at() -> None:
    there = Populations()
    sets = [LabelSet(n, "red", {"colour": f"c{n}"}) for n in range(3 * populations.SETS_FEW)]
    for label_set in sets:
        there.move(label_set, 0, 1, is_terminating=False)
    one = PodPredicate(frozenset(("red",)), Selector((_in("colour", "c7"),)))

    assert list(there.who_may_match(one)) == [sets[7]]


def _predicate(random: Random) -> PodPredicate:
    namespaces = None if random.random() < 0.3 else frozenset(random.sample(NAMESPACES, 1))
    requirement = random.choice(
        (
            _in(random.choice("abcd"), *random.sample("012", random.choice((1, 2)))),
            Requirement(random.choice("abc"), "Exists", frozenset()),
        )
    )
    return PodPredicate(namespaces, Selector((requirement,)))


def _in(key: str, *values: str) -> Requirement:
    return Requirement(key, "In", frozenset(values))
