"""`asched explain` of pods that a kubelet refused, and of those that avoid its node meanwhile."""

from asched.core.cluster.facts import Gone, Seen
from asched.core.cycle.orders import KubeletRefused
from asched.core.framework.effects import Bind
from asched.core.model.kinds import POD
from tests.builders import PodBuilder, a_node, a_pod
from tests.playbook import Play, explained


def replica(name: str) -> PodBuilder:
    built = a_pod(name)
    reference = {"kind": "ReplicaSet", "name": "web", "uid": "web", "controller": True}
    built.json["metadata"]["ownerReferences"] = [reference]
    return built


def refused(name: str) -> KubeletRefused:
    return KubeletRefused(
        "default", name, f"u-{name}", "web", "n1", "OutOfcpu", "default-scheduler"
    )


def test_a_refused_pod_is_said_to_be_refused() -> None:
    play = Play(a_node("n1").allocatable(cpu="8", pods="9"))
    play.see(replica("a"))
    play.bound(play.the(Bind))
    play.turn(Seen(POD, replica("a").on("n1").build()))
    play.turn(Gone(POD, replica("a").on("n1").build()), refused("a"))
    lines = explained(play, "a").splitlines()
    assert lines[:2] == ["pod default/a: refused by the kubelet of n1: OutOfcpu", ""]
    assert lines[-1].endswith("Z  refused by the kubelet of n1: OutOfcpu")


def test_the_node_is_left_out_and_until_when() -> None:
    play = Play(a_node("n1").allocatable(cpu="8", pods="9"), a_node("n2").allocatable(pods="0"))
    play.turn(refused("a"))
    play.see(replica("b"))
    text = explained(play, "b")
    assert "now: 0 of 2 nodes fit" in text
    assert "  n1 is left out for 10 s more: its kubelet refused a pod of the same owner" in text
