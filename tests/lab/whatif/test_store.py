"""The server of a supposed cluster: what is there as it is, what is new by admission."""

import pytest

from asched.core.framework.effects import Bind, PodRef
from asched.core.model.kinds import POD
from asched.core.state.facts import Bound, Listed, Refused, Seen
from asched_lab.apiserver.resources import PODS
from asched_lab.whatif.store import RefusedError
from tests.lab.whatif.clusters import a_node, a_pod, a_store


def test_lists_are_told_first_pods_last_and_then_every_write_once() -> None:
    store = a_store(a_pod("web"), a_node("n1"))
    lists = store.watch()
    assert isinstance(lists[-1], Listed)
    assert lists[-1].kind is POD
    assert [len(fact.objects) for fact in lists if fact.kind.name in ("Pod", "Node")] == [1, 1]

    ref = PodRef(namespace="default", name="web", uid="uid-web")
    assert isinstance(store.perform(Bind(pod=ref, node="n1")), Bound)
    (fact,) = store.told
    assert isinstance(fact, Seen)
    assert fact.obj.spec.node_name == "n1"
    again = store.perform(Bind(pod=ref, node="n1"))
    assert isinstance(again, Refused)
    assert again.message.endswith('is already assigned to node "n1"')


def test_the_namespaces_of_pods_are_there() -> None:
    pod = a_pod("web")
    pod["metadata"]["namespace"] = "team"
    store = a_store(a_node("n1"), pod)
    store.create(PODS, {**a_pod("more"), "metadata": {"name": "more"}}, "team")
    with pytest.raises(RefusedError, match='namespaces "other" not found'):
        store.create(PODS, {**a_pod("more"), "metadata": {"name": "more"}}, "other")


def test_generated_names_sort_by_age() -> None:
    store = a_store(a_node("n1"))
    names = [store.new_identity("web-")["name"] for _ in range(3000)]
    assert names == sorted(names)
    assert len(set(names)) == 3000
