"""What the process around the machine has it do takes its place among the other facts."""

from asched.core.cluster.facts import Seen
from asched.core.config.defaults import configuration
from asched.core.config.gates import DEFAULT_GATES
from asched.core.cycle.orders import QueueAmended, Reconfigured
from asched.core.framework.effects import Bind
from asched.core.model.kinds import NODE, POD
from asched.host.assemble import build_runners, reconfigured
from tests.builders import a_node, a_pod, room
from tests.playbook import Play, a_label_member, label_gang_play, label_group_seen

OTHER = "other-scheduler"


def a_node_for_all() -> Seen:
    return Seen(NODE, a_node("n1").allocatable(cpu="100", memory="100Gi", pods="100").build())


def bound(play: Play) -> list[str]:
    return [effect.pod.name for effect in play.of(Bind)]


def pods(count: int) -> list[Seen]:
    return [Seen(POD, a_pod(f"p{number}").build()) for number in range(count)]


def test_a_pod_that_an_audit_misses_in_the_queue_stands_there_once() -> None:
    """Whatever moved between the audit's look and the order counts."""
    play = Play()
    huge = a_pod("huge").requests(cpu="999").build()
    play.turn(a_node_for_all(), Seen(POD, huge), *pods(1))
    queue = play.machine.context.queue
    queue.delete(huge)

    play.turn(QueueAmended((huge.key, "default/p0", "default/nobody")))

    assert queue.places.get(huge.key) is not None
    assert len(queue.places) == 1
    play.turn(QueueAmended((huge.key,)))
    assert len(queue.places) == 1


def an_order(play: Play, *names: str) -> Reconfigured:
    profiles = [{"schedulerName": name} for name in names]
    config = configuration({"profiles": profiles}, DEFAULT_GATES)
    context = play.machine.context
    return reconfigured(config, build_runners(config, play.parts), (), context.observer)


def test_a_reload_counts_from_its_place_among_the_facts() -> None:
    """1. A pod of another scheduler is seen. 2. A profile for it is added. 3. Another one comes."""
    play = Play()
    early, late = (a_pod(name).spec(schedulerName=OTHER).build() for name in ("early", "late"))
    play.turn(a_node_for_all(), Seen(POD, early))
    assert bound(play) == []

    play.turn(an_order(play, "default-scheduler", OTHER), Seen(POD, late))

    assert bound(play) == ["early", "late"]


def test_a_pod_of_a_gang_counts_once_a_profile_serves_its_scheduler() -> None:
    play = label_gang_play(room("n1", 9))
    label_group_seen(play, "crew", 2)
    play.turn(Seen(POD, a_label_member("far").spec(schedulerName=OTHER).build()))
    play.see(a_label_member("near"))
    assert not play.notes(), "it waits for the other scheduler"
    plugins = {
        "multiPoint": {
            "enabled": [{"name": "Coscheduling"}],
            "disabled": [{"name": "PrioritySort"}],
        }
    }
    both = [{"schedulerName": n, "plugins": plugins} for n in ("default-scheduler", OTHER)]
    config, context = configuration({"profiles": both}, DEFAULT_GATES), play.machine.context

    play.turn(reconfigured(config, build_runners(config, play.parts), (), context.observer))

    assert len(play.notes()) == 2
    assert all("should have the same .spec.schedulerName set" in note for note in play.notes())


def test_a_profile_that_goes_takes_its_waiting_pods_along() -> None:
    play = Play()
    play.turn(an_order(play, "default-scheduler", OTHER))
    play.turn(Seen(POD, a_pod("waits").spec(schedulerName=OTHER).build()))

    play.turn(an_order(play, "default-scheduler"))
    play.turn(a_node_for_all(), after_s=60.0)

    assert bound(play) == []
    assert not play.machine.context.queue.places.listing().active
