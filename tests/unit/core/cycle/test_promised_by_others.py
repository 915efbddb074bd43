"""Room that another scheduler promised to a pod of its own is left to that pod."""

from collections.abc import Callable

import pytest

from asched.core.cluster.facts import Done
from asched.core.framework.effects import Bind, DeletePod, PatchPodStatus
from tests.builders import NodeBuilder, PodBuilder, a_node, a_pod
from tests.playbook import Play


def theirs(version: int = 1, nominated: str = "n1", priority: int = 5) -> PodBuilder:
    pod = a_pod("theirs").requests(cpu="800m").priority(priority)
    pod.spec(schedulerName="another").metadata(resourceVersion=str(version))
    return pod.status(nominatedNodeName=nominated)


def a_small_node(name: str = "n1") -> NodeBuilder:
    return a_node(name).allocatable(cpu="1", memory="1Gi", pods="10")


def bound_to(play: Play) -> list[str]:
    return [bind.node for bind in play.of(Bind)]


def ours(priority: int = 0) -> PodBuilder:
    return a_pod("ours").requests(cpu="800m").priority(priority)


@pytest.mark.parametrize(
    ("priority", "nodes"), [(0, []), (5, []), (6, ["n1"])], ids=["less", "equal", "more"]
)
def test_only_pods_of_higher_priority_take_it(priority: int, nodes: list[str]) -> None:
    play = Play(a_small_node())
    play.see(theirs())
    play.see(ours(priority))

    assert bound_to(play) == nodes


def bound_there(play: Play) -> None:
    play.see(theirs(2).on("n1"))


def bound_elsewhere(play: Play) -> None:
    play.see(theirs(2).on("n2"))


def taken_back(play: Play) -> None:
    play.see(theirs(2, nominated=""))


def moved(play: Play) -> None:
    play.see(theirs(2, nominated="n2"))


def gone(play: Play) -> None:
    play.lose(theirs())


@pytest.mark.parametrize(
    ("end", "nodes"),
    [
        (bound_there, []),
        (bound_elsewhere, ["n1"]),
        (taken_back, ["n1"]),
        (moved, ["n1"]),
        (gone, ["n1"]),
    ],
)
def test_its_end_wakes_those_who_had_to_respect_it(
    end: Callable[[Play], None], nodes: list[str]
) -> None:
    play = Play(a_small_node())
    play.see(theirs())
    play.see(ours())
    end(play)
    binds = bound_to(play)
    play.turn(after_s=5)

    assert binds + bound_to(play) == nodes
    assert len(play.machine.context.nominator) == int(end is moved)


def test_preemption_does_not_touch_what_others_promised() -> None:
    """Upstream clears lesser nominations to the node that it takes; only its own pods have some."""
    play = Play(a_small_node())
    play.see(a_pod("victim").requests(cpu="900m").priority(-1).on("n1"))
    play.see(theirs())
    play.see(ours(priority=10))
    written = play.of(PatchPodStatus)
    while (asked := [e for e in play.effects if e.wants_answer and e.answers]) and not play.of(
        DeletePod
    ):
        play.turn(*(Done(effect.id) for effect in asked))
        written += play.of(PatchPodStatus)

    assert [effect.pod.name for effect in play.of(DeletePod)] == ["victim"]
    assert "theirs" not in {patch.pod.name for patch in written}
    assert play.machine.context.nominator.node_of("uid-theirs") == "n1"
