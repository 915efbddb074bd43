"""Whether a pod that holds a place would get it again."""

import pytest

from asched.core.cluster.facts import Gone, Seen
from asched.core.cluster.pods import PodInfo
from asched.core.config.defaults import configuration
from asched.core.framework.runner import Runner
from asched.core.model.kinds import NODE, POD
from asched.host.assemble import Parts, build_runners
from tests.builders import NodeBuilder, PodBuilder, a_node, a_pod

SMALL = a_node("n1").allocatable(cpu="1", memory="1Gi", pods="10")


def a_runner(*nodes: NodeBuilder, waiting: PodBuilder | None = None) -> Runner:
    parts = Parts.fresh()
    for node in nodes:
        parts.cluster.apply(Seen(NODE, node.build()))
    if waiting is not None:
        pod = waiting.build()
        parts.cluster.apply(Seen(POD, pod))
        parts.nominator.add(pod)
    return next(iter(build_runners(configuration({}), parts).values()))


def assumed(runner: Runner, pod: PodBuilder) -> PodInfo:
    built = pod.build()
    runner.cluster.apply(Seen(POD, built))
    info = runner.cluster.classes.info_of(built)
    runner.cluster.assume(info, "n1")
    return info


FULL = a_pod("web").requests(cpu="1").host_port(80)


def small(cpu: str = "1") -> NodeBuilder:
    return a_node("n1").allocatable(cpu=cpu, memory="1Gi", pods="10")


def test_a_pod_does_not_stand_in_its_own_way() -> None:
    runner = a_runner(SMALL)
    info = assumed(runner, FULL)
    assert runner.still_takes(info)
    assert runner.cluster.nodes.columns.read("pod_count")[info.row] == 1
    assert runner.cluster.is_assumed("uid-web")


@pytest.mark.parametrize(
    "seen",
    [
        Seen(NODE, small().cordoned().build()),
        Seen(NODE, small().taints("node.kubernetes.io/not-ready:NoSchedule").build()),
        Seen(NODE, small("500m").build()),
        Seen(POD, a_pod("stranger").requests(cpu="100m").build().on("n1")),
        Gone(NODE, small().build()),
    ],
    ids=["cordoned", "ill", "smaller", "a stranger's", "gone"],
)
def test_what_has_happened_to_its_node_meanwhile_counts(seen: Seen | Gone) -> None:
    runner = a_runner(SMALL)
    info = assumed(runner, FULL)
    runner.cluster.apply(seen)
    assert not runner.still_takes(info)


def test_room_that_was_promised_beside_it_does_not() -> None:
    promised = a_pod("other").requests(cpu="800m").priority(10).status(nominatedNodeName="n1")
    runner = a_runner(SMALL, waiting=promised)
    assert runner.still_takes(assumed(runner, a_pod("web").requests(cpu="800m")))
