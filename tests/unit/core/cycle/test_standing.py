"""Where a pod stands is right while the machine works; each way to be wrong has its name."""

from asched.core.cluster.facts import Gone, Seen
from asched.core.cycle.place_faults import fault_of, fault_of_count
from asched.core.model.kinds import NODE, POD
from asched.core.model.pod import Pod
from tests.builders import a_node, a_pod
from tests.playbook import Play

NODE_1 = a_node("n1").allocatable(cpu="1", memory="1Gi", pods="9").build()


def a_play() -> tuple[Play, Pod, Pod]:
    """A pod on a node, and one that fits nowhere."""
    play = Play()
    web, huge = a_pod("web").on("n1").build(), a_pod("huge").requests(cpu="9").build()
    play.turn(Seen(NODE, NODE_1), Seen(POD, web), Seen(POD, huge))
    return play, web, huge


def test_what_a_machine_did_by_itself_is_right() -> None:
    play, web, huge = a_play()
    context = play.machine.context

    assert [fault_of(context, pod.key) for pod in (web, huge)] == [None, None]
    assert fault_of_count(context, web.uid) is None
    play.turn(Gone(POD, web), Gone(POD, huge))
    assert [fault_of(context, pod.key) for pod in (web, huge)] == [None, None]


def test_a_pod_on_its_way_to_a_node_stands_in_no_queue() -> None:
    play = Play()
    small = a_pod("small").requests(cpu="1").build()
    play.turn(Seen(NODE, NODE_1), Seen(POD, small))

    assert play.machine.bindings == 1
    assert fault_of(play.machine.context, small.key) is None
    assert fault_of_count(play.machine.context, small.uid) is None


def test_pods_of_others_and_those_on_their_way_out_need_no_queue() -> None:
    play = Play()
    theirs = a_pod("theirs").spec(schedulerName="nobody").build()
    play.turn(Seen(POD, theirs))

    assert fault_of(play.machine.context, theirs.key) is None
