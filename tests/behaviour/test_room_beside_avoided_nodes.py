"""A kubelet refused a pod: other pods of the owner avoid the node, and get room that is freed on
another one at once.
"""

from asched.core.cluster.facts import Gone, Seen
from asched.core.cycle.orders import KubeletRefused
from asched.core.framework.effects import Bind
from asched.core.model.kinds import NODE, POD
from tests.builders import PodBuilder, a_node, a_pod
from tests.playbook import Play, ours


def replica(name: str) -> PodBuilder:
    built = a_pod(name).requests(cpu="1")
    reference = {"kind": "ReplicaSet", "name": "web", "uid": "web", "controller": True}
    built.json["metadata"]["ownerReferences"] = [reference]
    return built


def running(name: str, cpu: str) -> PodBuilder:
    return a_pod(name).requests(cpu=cpu).on("n2")


def avoiding(*names: str) -> Play:
    """n2 is full, and the kubelet of n1 has refused pods of the owner for 80 s."""
    play = Play(a_node("n1").allocatable(cpu="64"), a_node("n2").allocatable(cpu="2"))
    play.see(running("large", "1500m"))
    play.see(running("small", "500m"))
    refused = KubeletRefused("default", "a", "u-a", "web", "n1", "OutOfcpu", "asched")
    play.turn(*[refused] * 4)
    play.turn(*(ours(Seen(POD, replica(name).build())) for name in names))
    assert not play.of(Bind)
    play.turn(after_s=5.0)
    assert not play.effects
    return play


def test_room_freed_on_another_node_is_used_at_once() -> None:
    play = avoiding("b", "c")
    play.turn(Gone(POD, running("large", "1500m").build()))
    assert play.the(Bind).node == "n2"
    assert not play.notes(), "there is room for one: the other pod is not tried"


def test_room_that_does_not_suffice_wakes_no_pod() -> None:
    play = avoiding("b")
    play.turn(Gone(POD, running("small", "500m").build()))
    assert not play.effects


def test_a_node_that_joins_takes_all_that_fit() -> None:
    play = avoiding("b", "c")
    play.turn(Seen(NODE, a_node("n3").allocatable(cpu="8").build()))
    assert {bind.node for bind in play.of(Bind)} == {"n3"}
    assert len(play.of(Bind)) == 2
