"""Counters filled in slices, while pods come, go and are relabelled, count what is there."""

import random

import pytest

from asched.core.model.selector import Matcher, Requirement


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
