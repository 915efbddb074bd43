"""Nominations: whose word counts, and in which order."""

from asched.core.cluster.nominated import Nominator
from asched.core.model.pod import Pod
from tests.unit.core.queue.waiting import a_pod


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
