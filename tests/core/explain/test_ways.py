"""A change and the way there: by default it changes neither the pod nor the cluster."""

from typing import Any

from asched.insight.explain.deciding import Deciding
from asched.insight.explain.ways import SuggestedChange, Way, told, with_spec
from tests.builders import a_node, a_pod
from tests.core.cycle.playbook import Play


def test_a_way_changes_nothing_unless_it_says_so() -> None:
    pod = a_pod().build()
    way = Way(SuggestedChange("kind", "text", {}, 1, "n1"))
    supposition: Any = object()
    assert way.of_pod(pod) is pod
    assert way.of_cluster(supposition) is None
    assert (way.change.takes, way.change.of) == (0, 0)


def test_fields_of_a_spec_are_replaced_in_a_copy() -> None:
    pod = a_pod().priority(5).build()
    changed = with_spec(pod, priority=7)
    assert (pod.priority, changed.priority) == (5, 7)
    assert changed.metadata is pod.metadata


def test_a_change_tells_how_many_nodes_help_and_one_of_them() -> None:
    sizes = {"n1": "1", "n2": "5", "n3": "5"}
    context = Play(*(a_node(n).allocatable(cpu=cpu) for n, cpu in sizes.items())).machine.context
    runner, pod = context.runners["default-scheduler"], a_pod().requests(cpu="4").build()
    one = Deciding(runner, context.nominator, pod)
    with one.within_budget():
        change = told(one, "kind", "text", {"a": 1})
        other = told(one, "kind", "text", {}, a_pod().requests(cpu="1").build())
    assert (change.kind, change.text, change.details) == ("kind", "text", {"a": 1})
    assert (change.nodes, change.node) == (2, "n2")
    assert (other.nodes, other.node) == (3, "n1")
