"""Sort keys of users' plugins: what cannot be made or compared counts by the default order."""

from typing import Any

from asched.core.queue.guarded_key import Guard
from tests.builders import a_pod
from tests.core.queue.waiting import Witness


def order(key: Any, **priorities: int) -> tuple[list[str], int]:
    """(names in the order of their keys, how often the plugin was reported)."""
    witness = Witness()
    guard = Guard("Mine", key, witness)
    pods = [a_pod(name).priority(value).build() for name, value in priorities.items()]
    found = sorted(pods, key=lambda pod: guard(pod, 0.0))
    return [pod.metadata.name for pod in found], len(witness.raised)


def test_a_good_key_decides() -> None:
    assert order(lambda pod, _: pod.metadata.name, c=3, a=1, b=2) == (["a", "b", "c"], 0)


def test_a_key_that_raises_gives_way_to_priority() -> None:
    assert order(lambda pod, _: 1 // 0, a=1, b=3, c=2) == (["b", "c", "a"], 3)


def test_keys_that_cannot_be_compared_give_way_and_are_reported_once_each() -> None:
    names, reports = order(lambda pod, _: object(), a=1, b=3, c=2)
    assert names == ["b", "c", "a"]
    assert 1 <= reports <= 3


def test_equal_keys_are_equal() -> None:
    guard = Guard("Mine", lambda pod, since_s: (1, since_s), Witness())
    pod = a_pod("web").build()
    assert guard(pod, 1.0) == guard(pod, 1.0) != guard(pod, 2.0)


def test_one_key_that_cannot_be_made_stands_where_its_priority_puts_it() -> None:
    def key(pod: Any, _: float) -> int:
        return {"a": 1, "b": 2, "c": 3}[pod.metadata.name]

    assert order(key, a=5, x=9, c=1) == (["x", "a", "c"], 1)
    assert order(key, x=9, a=5, c=1) == (["x", "a", "c"], 1)


def test_of_equal_keys_none_is_less() -> None:
    guard = Guard("Mine", lambda *_: 1, Witness())
    one, other = (guard(a_pod(name).build(), 0.0) for name in "ab")
    assert not one < other
    assert not other < one
