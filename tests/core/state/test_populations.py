"""Which sets of labels a selector may match, found by value, and where their pods are."""

from itertools import chain
from random import Random

import pytest

from asched.core.model.selector import Requirement, Selector
from asched.core.state import populations
from asched.core.state.budget import Budget
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
    random, there = Random(seed), Populations(Budget())
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
        found = list(chain.from_iterable(there.who_may_match(predicate)))
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
    there = Populations(Budget())
    sets = [LabelSet(n, "red", {"colour": f"c{n}"}) for n in range(3 * populations.SETS_FEW)]
    for label_set in sets:
        there.move(label_set, 0, 1, is_terminating=False)
    one = PodPredicate(frozenset(("red",)), Selector((_in("colour", "c7"),)))

    assert list(chain.from_iterable(there.who_may_match(one))) == [sets[7]]


def test_sets_are_read_and_found_in_parts_of_which_the_budget_hears() -> None:
    """However many there are: nobody looks at more of them between two looks at the budget."""
    looks = 0

    class Labels(dict[str, str]):
        def get(self, key: str, default: object = None) -> object:  # type: ignore[override]
            nonlocal looks
            looks += 1
            return super().get(key, default)  # type: ignore[call-overload]

    count, budget = 3 * populations.PART, Budget()
    there = Populations(budget)
    for n in range(count):
        there.move(LabelSet(n, "red", Labels(colour=f"c{n % 2}")), 0, 1, is_terminating=False)
    for asked in (_in("colour", "c1"), Requirement("colour", "Exists", frozenset())):
        looks, spent, found = 0, 0.0, 0
        for part in there.who_may_match(PodPredicate(None, Selector((asked,)))):
            assert max(looks, len(part)) <= populations.PART
            assert budget.spent > spent
            looks, spent, found = 0, budget.spent, found + len(part)
        assert found == (count // 2 if asked.operator == "In" else count)


@pytest.mark.parametrize("seed", range(20))
def test_who_stays_is_found_by_all_who_ask_at_one_time(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In parts, between which pods come and go and others ask, and keys are given up."""
    monkeypatch.setattr(populations, "SETS_FEW", 2)
    monkeypatch.setattr(populations, "PART", 3)
    monkeypatch.setattr(populations, "KEYS_MAX", 2)
    random, there = Random(seed), Populations(Budget())
    sets = [
        LabelSet(n, random.choice(NAMESPACES), dict.fromkeys(random.sample("abc", 2), f"{n % 2}"))
        for n in range(60)
    ]
    here = dict.fromkeys(sets[:40])
    for label_set in here:
        there.move(label_set, 0, 1, is_terminating=False)
    asking = []
    for _ in range(6):
        predicate = _predicate(random)
        staying = {label_set for label_set in here if predicate.matches(label_set)}
        asking.append((there.who_may_match(predicate), staying, set[LabelSet]()))
    while asking:
        who, staying, found = one = random.choice(asking)
        part = next(who, None)
        if part is None:
            assert staying <= found
            asking.remove(one)
        else:
            found.update(part)
        moved = random.choice(sets)
        there.move(moved, 0, -1 if moved in here else 1, is_terminating=False)
        if moved in here:
            del here[moved]
        else:
            here[moved] = None
        for _, others, _ in asking:
            others.discard(moved)
    known = [one for by_value in there._by_value.values() for one in by_value.values()]
    assert there._entries == sum(1 if isinstance(o, LabelSet) else len(o) for o in known)


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
