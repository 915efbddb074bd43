"""Facts that no API server sends: they cost the pod that they describe, not the process."""

from asched.core.cluster.facts import Gone, Seen
from asched.core.framework.effects import Bind
from asched.core.model.kinds import NODE, POD
from tests.builders import a_node, a_pod
from tests.playbook import Play


def test_a_placed_pod_that_loses_its_node_leaves_it() -> None:
    """As for kube-scheduler. Else a nomination would count it there a second time, and its end
    would break the node's counts.
    """
    play = Play()
    play.turn(Seen(NODE, a_node("n").allocatable(cpu="4", memory="8Gi", pods="10").build()))
    odd = a_pod("odd").requests(cpu="3")
    play.turn(Seen(POD, odd.on("n").build()))
    unplaced = a_pod("odd").requests(cpu="3").spec(schedulerName="another").build()
    play.turn(Seen(POD, unplaced))
    play.turn(Seen(POD, a_pod("wide").requests(cpu="3500m").build()))
    assert [bind.pod.name for bind in play.of(Bind)] == ["wide"]
    play.turn(Gone(POD, unplaced))
