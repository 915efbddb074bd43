"""PrioritySort: who goes first."""

from asched.core.plugins.priority_sort import PrioritySort
from tests.builders import a_pod


def test_priority_first_then_the_time_in_the_queue() -> None:
    plugin = PrioritySort()
    waiting = [
        (a_pod("late").priority(5), 20.0),
        (a_pod("plain"), 1.0),
        (a_pod("early").priority(5), 10.0),
        (a_pod("negative").priority(-1), 0.0),
        (a_pod("zero").priority(0), 2.0),
    ]

    ordered = sorted(waiting, key=lambda entry: plugin.sort_key(entry[0].build(), entry[1]))

    names = [pod.json["metadata"]["name"] for pod, _ in ordered]
    assert names == ["early", "late", "plain", "zero", "negative"]
