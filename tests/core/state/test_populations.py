"""Which sets of labels a selector may match, found by value, and where their pods are."""

from itertools import chain

import pytest

from asched.core.model.selector import Requirement, Selector
from asched.core.state import populations
from asched.core.state.budget import Budget
from asched.core.state.counters import PodPredicate
from asched.core.state.pods import LabelSet
from asched.core.state.populations import Population, Populations


def test_a_population_keeps_terminating_pods_apart() -> None:
    population = Population()
    population.move(3, 1, is_terminating=False)
    population.move(3, 1, is_terminating=True)
    population.move(3, -1, is_terminating=False)

    assert (population.staying, population.terminating) == ({}, {3: 1})
    assert not population.is_empty


@pytest.mark.parametrize("more", [0, 1])
def test_sets_with_other_values_are_not_looked_at_save_where_there_are_few(more: int) -> None:
    there = Populations(Budget())
    sets = [LabelSet(n, "red", {"colour": f"c{n}"}) for n in range(populations.SETS_FEW + more)]
    for label_set in sets:
        there.move(label_set, 0, 1, is_terminating=False)
    one = PodPredicate(frozenset(("red",)), Selector((_in("colour", "c7"),)))

    assert _found(there, one) == ([sets[7]] if more else sets)


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


def _found(there: Populations, predicate: PodPredicate) -> list[LabelSet]:
    return list(chain.from_iterable(there.who_may_match(predicate)))


def _in(key: str, *values: str) -> Requirement:
    return Requirement(key, "In", frozenset(values))
