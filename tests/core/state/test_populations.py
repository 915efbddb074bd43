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


def test_a_population_keeps_terminating_pods_apart() -> None:
    population = Population()
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
        found = _found(there, predicate)
        wanted = {label_set for label_set, _ in pods if predicate.matches(label_set)}
        assert len(found) == len(set(found))
        assert wanted <= set(found) <= {label_set for label_set, _ in pods}
        assert set(there) == {label_set for label_set, _ in pods}
        assert len(there._by_value) <= populations.KEYS_MAX
        known = [sets for by_value in there._by_value.values() for sets in by_value.values()]
        assert all(known), "a value that nobody has is not kept"
        entries = sum(1 if isinstance(sets, LabelSet) else len(sets) for sets in known)
        assert there._entries == entries
        assert entries <= populations.ENTRIES_MAX or len(there._by_value) == 1
    while pods:
        there.move(*pods.pop(), -1, is_terminating=False)
    assert not list(there)
    assert not there._by_value
    assert not there._known_keys
    assert not there._entries
    everybody = PodPredicate(None, Selector(()))
    assert list(there.who_may_match(everybody)) == [], "no namespace is left to be looked at"


@pytest.mark.parametrize("more", [0, 1])
def test_sets_with_other_values_are_not_looked_at_save_where_there_are_few(more: int) -> None:
    there = Populations(Budget())
    sets = [LabelSet(n, "red", {"colour": f"c{n}"}) for n in range(populations.SETS_FEW + more)]
    for label_set in sets:
        there.move(label_set, 0, 1, is_terminating=False)
    one = PodPredicate(frozenset(("red",)), Selector((_in("colour", "c7"),)))

    assert _found(there, one) == ([sets[7]] if more else sets)


@pytest.mark.parametrize("more", [0, 1])
def test_the_budget_does_not_hear_of_few_sets_that_are_found(more: int) -> None:
    there, few = Populations(budget := Budget()), populations.SETS_FEW
    for n in range(2 * few):
        colour = "c" if n < few + more else "d"
        there.move(LabelSet(n, "red", {"colour": colour}), 0, 1, is_terminating=False)
    one = PodPredicate(None, Selector((_in("colour", "c"),)))
    _found(there, one)
    spent = budget.spent

    assert len(_found(there, one)) == few + more
    assert (budget.spent > spent) is bool(more)


class Asked:
    """Populations of one namespace whose sets carry each of these keys, and what is read of it."""

    def __init__(self, keys: str, sets: int = 3) -> None:
        self.budget = Budget()
        self.there = Populations(self.budget)
        for n in range(sets):
            label_set = LabelSet(n, "red", dict.fromkeys(keys, f"{n}"))
            self.there.move(label_set, 0, 1, is_terminating=False)

    def asks(self, key: str):
        return self.there.who_may_match(PodPredicate(None, Selector((_in(key, "0"),))))

    def reads(self, key: str) -> bool:
        """Whether sets had to be read for a look by a key."""
        spent = self.budget.spent
        assert [n.number for n in chain.from_iterable(self.asks(key))] == [0]
        return self.budget.spent > spent


@pytest.mark.parametrize(("name", "bound"), [("KEYS_MAX", 2), ("ENTRIES_MAX", 6)])
def test_the_key_that_was_asked_about_longest_ago_is_given_up(
    name: str, bound: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two keys of three sets each may be known, by either bound."""
    monkeypatch.setattr(populations, "SETS_FEW", 2)
    monkeypatch.setattr(populations, name, bound)
    asked = Asked("abc")
    assert [asked.reads(key) for key in "abababa"] == [True, True, *[False] * 5]
    assert asked.reads("c")
    assert not asked.reads("a")
    assert asked.reads("b")
    assert [asked.reads(key) for key in "abab"] == [False] * 4


def test_a_key_that_is_being_read_is_not_given_up_for_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Or it would never be known, while there are others who ask."""
    monkeypatch.setattr(populations, "SETS_FEW", 2)
    monkeypatch.setattr(populations, "PART", 1)
    monkeypatch.setattr(populations, "ENTRIES_MAX", 4)
    asked = Asked("abc")
    asked.reads("a")
    reading = asked.asks("b")
    assert next(reading) == ()
    assert not asked.reads("a")
    assert next(asked.asks("c")) == (), "whoever asks reads on what was begun"
    parts = list(reading)
    assert [n.number for n in chain.from_iterable(parts)] == [0]
    assert len(parts) == 2, "one set was left to be read: it did not begin anew"
    assert not asked.reads("b")


def test_a_set_that_goes_and_comes_back_before_it_is_read_is_known_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(populations, "SETS_FEW", 2)
    monkeypatch.setattr(populations, "PART", 1)
    asked = Asked("a")
    reading = asked.asks("a")
    assert next(reading) == ()
    for label_set in list(asked.there):
        asked.there.move(label_set, 0, -1, is_terminating=False)
        asked.there.move(label_set, 0, 1, is_terminating=False)
    assert [n.number for n in chain.from_iterable(reading)] == [0]
    assert asked.there._entries == 3


def test_a_namespace_that_goes_while_it_is_read_holds_nobody_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(populations, "SETS_FEW", 2)
    monkeypatch.setattr(populations, "PART", 1)
    there = Populations(Budget())
    sets = [LabelSet(n, NAMESPACES[n % 2], {"a": f"{n}"}) for n in range(6)]
    for label_set in sets:
        there.move(label_set, 0, 1, is_terminating=False)
    red, blue = (
        PodPredicate(frozenset((namespace,)), Selector((_in("a", "0", "1"),)))
        for namespace in NAMESPACES
    )
    asking = there.who_may_match(red)
    assert next(asking) == ()
    for label_set in sets[::2]:
        there.move(label_set, 0, -1, is_terminating=False)

    assert _found(there, blue) == [sets[1]]
    assert list(chain.from_iterable(asking)) == []


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
        LabelSet(n, random.choice(NAMESPACES), dict.fromkeys(random.sample("abc", 2), f"{n % 7}"))
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


def _found(there: Populations, predicate: PodPredicate) -> list[LabelSet]:
    return list(chain.from_iterable(there.who_may_match(predicate)))


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
