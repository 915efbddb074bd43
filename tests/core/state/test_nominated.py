"""Nominations: whose word counts, and in which order."""

from asched.core.model.kinds import NODE, POD
from asched.core.model.pod import Pod
from asched.core.state.facts import Seen
from asched.core.state.nominated import Nominator
from tests.builders import a_cluster, a_node
from tests.core.queue.waiting import a_pod


def a_nominator(*pods: Pod) -> Nominator:
    return Nominator({pod.key: pod for pod in pods}.get)


def nominated_amounts(nominator: Nominator) -> dict[str, list[str]]:
    return {
        node: [pod.metadata.name for pod in pods.values()]
        for node, pods in nominator.nodes().items()
    }


def test_the_pods_own_status_counts_unless_overridden() -> None:
    pod = a_pod("web", nominated="n1")
    nominator = a_nominator(pod)

    nominator.add(pod)
    assert nominated_amounts(nominator) == {"n1": ["web"]}
    nominator.add(pod, "n2")
    assert nominated_amounts(nominator) == {"n2": ["web"]}
    assert nominator.node_of(pod.uid) == "n2"
    nominator.add(pod, "")
    assert nominated_amounts(nominator) == {}
    assert len(nominator) == 0


def test_a_pod_that_is_gone_or_placed_gets_no_room() -> None:
    pod = a_pod("web", nominated="n1")

    for nominator in (a_nominator(), a_nominator(a_pod("web", node="n3"))):
        nominator.add(pod)
        assert nominated_amounts(nominator) == {}


def test_a_pod_that_was_made_anew_is_not_its_predecessor() -> None:
    """Nobody would ever take the nomination back of one that is gone."""
    now = a_pod("web", uid="second")
    nominator = Nominator({now.key: now}.get)

    nominator.add(a_pod("web", uid="first"), "n1")

    assert nominator.on("n1") == {}
    nominator.add(now, "n1")
    assert list(nominator.on("n1")) == ["second"]


def test_order_is_that_of_the_last_nomination() -> None:
    one, two = a_pod("one", nominated="n1"), a_pod("two", nominated="n1")
    nominator = a_nominator(one, two)
    nominator.add(one)
    nominator.add(two)

    nominator.update(one, one)

    assert [pod.metadata.name for pod in nominator.on("n1").values()] == ["two", "one"]


def test_an_update_that_does_not_know_the_nomination_leaves_it() -> None:
    pod = a_pod("web")
    nominator = a_nominator(pod)
    nominator.add(pod, "n1")

    nominator.update(pod, a_pod("web", version=2))

    assert nominated_amounts(nominator) == {"n1": ["web"]}


def test_an_update_that_takes_it_back_wins() -> None:
    old, new = a_pod("web", nominated="n1"), a_pod("web", version=2)
    nominator = a_nominator(new)
    nominator.add(old, "n1")

    nominator.update(old, new)

    assert nominated_amounts(nominator) == {}


def test_an_update_by_which_one_version_names_a_node_is_believed() -> None:
    old, new = a_pod("web"), a_pod("web", version=2, nominated="n2")
    nominator = a_nominator(new)
    nominator.add(new, "n1")

    nominator.update(old, new)

    assert nominated_amounts(nominator) == {"n2": ["web"]}


def test_it_is_known_which_promises_are_another_schedulers_while_they_stand() -> None:
    theirs, ours, none = a_pod("t", nominated="n1"), a_pod("o", nominated="n1"), a_pod("none")
    nominator = a_nominator(theirs, ours, none)
    nominator.add_of_others(theirs)
    nominator.add(ours)
    nominator.add_of_others(none)

    assert nominated_amounts(nominator) == {"n1": ["t", "o"]}
    assert [nominator.of_others(pod.uid) for pod in (theirs, ours, none)] == [True, False, False]
    nominator.delete(theirs.uid)
    nominator.add(theirs)
    assert not nominator.of_others(theirs.uid)


def test_the_log_names_the_nodes_about_which_something_changed() -> None:
    pod = a_pod("web", nominated="n1")
    nominator = a_nominator(pod)
    nominator.add(pod)
    begin = nominator.log.end
    nominator.add(pod, "n2")

    assert nominator.log.since(begin) == [(NODE.resource, "n1"), (NODE.resource, "n2")]


def test_whoever_asks_a_cluster_meets_the_same_nominator_that_knows_its_pods() -> None:
    cluster = a_cluster(a_node("n1"))
    pod = a_pod("web", nominated="n1")
    nominator = cluster.singleton(Nominator.of)
    nominator.add(pod)
    assert len(nominator) == 0, "nobody knows the pod"
    cluster.apply(Seen(POD, pod))
    cluster.singleton(Nominator.of).add(pod)
    assert nominated_amounts(nominator) == {"n1": ["web"]}


def test_the_generation_moves_with_every_change_and_only_then() -> None:
    pod = a_pod("web", nominated="n1")
    nominator = a_nominator(pod)
    seen = [nominator.generation]
    for step in (lambda: nominator.add(pod), lambda: nominator.delete(pod.uid)):
        step()
        seen.append(nominator.generation)
    nominator.delete("stranger")

    assert len(set(seen)) == 3
    assert nominator.generation == seen[-1]
    assert nominator.on("n1") == {}
