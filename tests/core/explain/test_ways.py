"""A change and the way there: by default it changes neither the pod nor the cluster."""

from typing import Any

from asched.core.explain.ways import Change, Way, with_spec
from tests.builders import a_pod


def test_a_way_changes_nothing_unless_it_says_so() -> None:
    pod = a_pod().build()
    way = Way(Change("kind", "text", {}, 1, "n1"))
    supposition: Any = object()
    assert way.of_pod(pod) is pod
    assert way.of_cluster(supposition) is None
    assert (way.change.takes, way.change.of) == (0, 0)


def test_fields_of_a_spec_are_replaced_in_a_copy() -> None:
    pod = a_pod().priority(5).build()
    changed = with_spec(pod, priority=7)
    assert (pod.priority, changed.priority) == (5, 7)
    assert changed.metadata is pod.metadata
