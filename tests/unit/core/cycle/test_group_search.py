"""The search for the places of a gang, played through the machine: others go on, and it ends."""

from typing import Any

from asched.core.cluster.facts import Gone, Seen
from asched.core.framework.effects import DeletePod, MarkVictim, Patch
from asched.core.model.decode import decode
from asched.core.model.kinds import NODE, POD, POD_GROUP
from asched.core.model.node import Node
from asched.core.model.pod import Pod
from asched.core.model.workload import PodGroup
from tests.builders import a_node, a_pod
from tests.gangs.planted import planted
from tests.playbook import GANGS, Play, a_group, a_member, bound, places, seen_group

#: The name of a node that no member of a planted gang may use.
ASIDE = "aside"


def a_hard_one(seed: int = 1) -> Play:
    """A gang whose search takes more than a slice, up to the point at which it is tried."""
    instance = planted(seed, 200)
    play = Play(**GANGS)
    play.turn(*(Seen(NODE, decode(Node, one)) for one in instance.nodes))
    aside = a_node(ASIDE).taints("aside=yes:NoSchedule").allocatable(cpu="4", pods="10")
    play.turn(Seen(NODE, aside.build()))
    play.turn(*(Seen(POD, decode(Pod, one)) for one in instance.gang))
    play.turn(Seen(POD_GROUP, decode(PodGroup, instance.group)))
    return play


def condition_said(play: Play) -> list[str]:
    patches = [e for e in play.of(Patch) if e.kind is POD_GROUP]
    return [p.body["status"]["conditions"][0].get("message", "") for p in patches]


def to_the_end(play: Play) -> tuple[int, set[str], list[str]]:
    """(turns, who was bound, what the group's condition said)."""
    turns, names, said = 0, bound(play), condition_said(play)
    while play.machine.next_deadline_s() == 0.0:
        play.turn()
        turns += 1
        names |= bound(play)
        said += condition_said(play)
    return turns, names, said


def test_other_pods_are_bound_while_a_gang_is_searched_for() -> None:
    play = a_hard_one()
    assert not condition_said(play), "the search ended in one turn: it shows nothing"

    play.see(a_pod("stranger").tolerates("aside=yes").spec(nodeName="", nodeSelector={}))

    assert bound(play) == {"stranger"}
    turns, names, said = to_the_end(play)
    assert turns > 1
    assert len(names) > 200
    assert said[-1] == ""


def test_nodes_that_go_during_the_search_leave_nothing_held() -> None:
    play = a_hard_one(seed=1)
    said: list[str] = []
    for _, node in list(play.parts.cluster.nodes.nodes())[:60]:
        play.turn(Gone(NODE, node))
        said += condition_said(play)

    _, names, more = to_the_end(play)

    assert not names
    assert (said + more)[-1].startswith("pod group is unschedulable")
    assert not play.parts.cluster.placed


def test_nothing_is_held_once_the_budget_is_spent() -> None:
    play = Play(a_node("n1").allocatable(cpu="4"), a_node("n2").allocatable(cpu="4"), **GANGS)
    play.machine.context.gang_search_steps = 1
    seen_group(play)
    for name, cpu in (("a", "1"), ("b", "1"), ("c", "4")):
        play.see(a_member(name, cpu=cpu).priority(-1 if name == "c" else 0))

    assert not places(play)
    (said,) = condition_said(play)
    assert said.endswith("no place was found for it: the budget of work for the gang is used up")


def test_nobody_is_evicted_for_a_gang_that_fits_without_that() -> None:
    """One after the other, `a` goes to the empty node, and `c` needs the place of a weaker one."""
    play = Play(a_node("n1").allocatable(cpu="4"), a_node("n2").allocatable(cpu="4"), **GANGS)
    weak = a_pod("weak").requests(cpu="1").priority(-10)
    play.see(weak.on("n1"))
    play.turn(Seen(POD_GROUP, a_group(min_count=2)))
    for name, cpu in (("a", "1"), ("c", "4")):
        play.see(a_member(name, cpu=cpu).priority(-1 if name == "c" else 0))

    assert bound(play) == {"a", "c"}
    assert play.node_of("uid-c") == "n2"
    assert not play.of(MarkVictim)
    assert not play.of(DeletePod)


def test_gangs_of_a_profile_that_counts_no_resources_are_searched_for() -> None:
    """No bound shows that a pod must be near a pod that does not exist."""
    profile: dict[str, Any] = {"schedulerName": "default-scheduler"}
    points = {"enabled": [{"name": "GangScheduling"}], "disabled": [{"name": "NodeResourcesFit"}]}
    profile["plugins"] = {"multiPoint": points}
    play = Play(a_node("n1").labels(zone="a"), a_node("n2").labels(zone="b"), profiles=[profile])
    term = {"labelSelector": {"matchLabels": {"app": "none"}}, "topologyKey": "zone"}
    near = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    pods = (a_member("a"), a_member("b").host_port(80), a_member("c").spec(affinity=near))
    play.turn(*(Seen(POD, pod.build()) for pod in pods))
    play.turn(Seen(POD_GROUP, a_group(min_count=3)))

    _, names, said = to_the_end(play)

    assert not names
    assert said[-1].endswith(
        "no place was found for it: none of the plans and orders of its pods that were tried gives"
        " enough of them a place"
    )


def test_a_gang_whose_pods_are_to_be_near_another_namespace_s_is_not_tied_to_one_zone() -> None:
    """The small ones among them fill more than a zone."""
    term = {"labelSelector": {"matchLabels": {"app": "web"}}, "namespaces": ["other"]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": [{**term, "topologyKey": "zone"}]}
    nodes = [
        a_node(f"n{number}").labels(zone="ab"[number % 2]).allocatable(cpu="10", pods="100")
        for number in range(32)
    ]
    play = Play(*nodes, **GANGS)
    for name, node in (("there", "n0"), ("and-there", "n1")):
        play.see(a_pod(name, "other").labels(app="web").on(node))
    small = [
        a_member(f"small-{n}").labels(app="web").spec(affinity={"podAffinity": required})
        for n in range(260)
    ]
    large = [a_member(f"zlarge-{n}", cpu="10").labels(app="web") for n in range(6)]
    play.turn(*(Seen(POD, pod.build()) for pod in (*small, *large)))
    play.turn(Seen(POD_GROUP, a_group(min_count=len(small) + len(large))))

    _, names, said = to_the_end(play)

    assert len(names) == len(small) + len(large), said
