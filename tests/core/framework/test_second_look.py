"""A extra events tells who stands against a pod, and leaves no trace."""

import pytest

from asched.core.config.defaults import configuration
from asched.core.framework.meter import Meter
from asched.core.framework.runner import Runner
from asched.core.framework.second_look import blamed, still_takes
from asched.core.model.kinds import DEVICE_CLASS, NODE, POD, RESOURCE_CLAIM, RESOURCE_SLICE
from asched.core.state.facts import Gone, Seen
from asched.core.state.pods import PodInfo
from asched.host.assemble import build_runners
from tests.builders import NodeBuilder, PodBuilder, a_node, a_pod, term
from tests.core.dra.worlds import DRIVER, a_claim, a_class, a_device, a_slice, asks
from tests.core.framework.runners import Ears, Table, Watch, a_runner

SMALL = a_node("n1").allocatable(cpu="1", memory="1Gi", pods="10")


@pytest.mark.parametrize(
    ("pod", "expected"),
    [
        (a_pod().requests(cpu="1"), None),
        (a_pod().requests(cpu="2"), {"NodeResourcesFit"}),
        (a_pod().selects(disk="ssd"), {"NodeAffinity"}),
    ],
)
def test_who_stands_against_a_pod(pod: PodBuilder, expected: set[str] | None) -> None:
    assert blamed(a_runner(SMALL), pod.build()) == expected


def test_each_node_may_have_another_reason() -> None:
    runner = a_runner(SMALL, a_node("n2").allocatable(cpu="9", memory="1Gi", pods="9").cordoned())
    found = blamed(runner, a_pod().requests(cpu="2").build())
    assert found == {"NodeResourcesFit", "NodeUnschedulable"}


def test_no_node_at_all_is_nobodys_fault() -> None:
    assert blamed(a_runner(), a_pod().build()) == frozenset()


def test_not_even_one_of_a_pod_that_could_not_run_anywhere() -> None:
    claims = [{"name": "v", "persistentVolumeClaim": {"claimName": "gone"}}]
    pod = a_pod().spec(volumes=claims).build()
    assert blamed(a_runner(), pod) == frozenset()
    assert blamed(a_runner(SMALL), pod) == {"VolumeRestrictions"}


def test_where_an_extender_has_a_say_only_an_attempt_tells_if_a_node_is_left_at_all() -> None:
    cares = a_pod("web").requests(cpu="1")
    table = Table(keeps=(), meets=lambda pod: pod.pod.metadata.name == "web")
    runner = build_runners(configuration({}), table.parts, extenders=table)["default-scheduler"]  # type: ignore[arg-type]
    vip = a_pod("vip").requests(cpu="1").priority(9).status(nominatedNodeName="n1").build()
    for seen in (Seen(NODE, SMALL.build()), Seen(POD, vip)):
        table.parts.cluster.apply(seen)
    table.parts.nominator.add(vip)
    assert blamed(runner, cares.build()) is None
    assert blamed(runner, cares.metadata(name="other").build()) == {"NodeResourcesFit"}
    assert blamed(runner, a_pod("web").requests(cpu="2").build()) == {"NodeResourcesFit"}
    assert table.asked == []


def test_looking_is_not_measured() -> None:
    runner, ears = a_runner(SMALL), Ears()
    runner.meter = Meter(ears, "p", Watch())
    assert blamed(runner, a_pod().requests(cpu="1").build()) is None
    assert (ears.points, ears.asked) == ([], [])
    assert runner.cache.work.meter is runner.meter is not None


def test_room_promised_to_another_is_respected() -> None:
    nominated_amounts = a_pod("other").requests(cpu="800m").status(nominatedNodeName="n1")
    runner = a_runner(SMALL, waiting=nominated_amounts)
    assert blamed(runner, a_pod().requests(cpu="800m").build()) == {"NodeResourcesFit"}
    assert blamed(runner, a_pod().requests(cpu="100m").build()) is None


def test_after_a_departure_only_that_node_is_asked() -> None:
    runner = a_runner(SMALL, a_node("big").allocatable(cpu="8"))
    pod = a_pod().requests(cpu="2").build()

    assert blamed(runner, pod, left="big") is None
    assert blamed(runner, pod, left="n1") == {"NodeResourcesFit"}
    assert blamed(runner, pod, left="gone") == frozenset()


def test_after_a_departure_a_node_that_was_ruled_out_still_is() -> None:
    runner = a_runner(SMALL, a_node("big").allocatable(cpu="8"))
    pod = a_pod().requires_nodes(term(fields=["metadata.name In n1"])).requests(cpu="2").build()
    assert blamed(runner, pod, left="big") == frozenset()
    assert blamed(runner, pod, left="n1") == {"NodeResourcesFit"}


def test_where_pods_matter_to_one_another_a_departure_may_help_elsewhere() -> None:
    zone = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "x"}}}
    rule = {"requiredDuringSchedulingIgnoredDuringExecution": [zone]}
    runner = a_runner(small().labels(zone="z"), a_node("big").allocatable(cpu="8").labels(zone="z"))
    pod = a_pod().spec(affinity={"podAntiAffinity": rule}).requests(cpu="2").build()
    assert blamed(runner, pod, left="n1") is None, "big has room, and nobody of app x is left"


# --- the same for a pod that holds a place --------------------------------------------------------


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
    assert still_takes(runner, info)
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
    assert not still_takes(runner, info)


def test_filters_that_fail_elsewhere_do_not() -> None:
    runner = a_runner(SMALL, a_node("n2"))
    good = a_device("good", attributes={"missing": 1})
    for kind, thing in (
        (RESOURCE_CLAIM, a_claim(asks(f"device.attributes['{DRIVER}'].missing == 1"))),
        (DEVICE_CLASS, a_class()),
        (RESOURCE_SLICE, a_slice(good, nodeName="n1")),
        (RESOURCE_SLICE, a_slice("bad", nodeName="n2", pool="n2")),
    ):
        runner.cluster.apply(Seen(kind, thing))
    wanted = [{"name": "c", "resourceClaimName": "c"}]
    info = assumed(runner, a_pod("web", "d").spec(resourceClaims=wanted))
    assert still_takes(runner, info)


def test_a_node_that_took_the_row_of_its_own_does_not_stand_for_it() -> None:
    runner = a_runner(SMALL)
    info = assumed(runner, a_pod("web").requests(cpu="1"))
    runner.cluster.apply(Gone(NODE, small().build()))
    runner.cluster.apply(Seen(NODE, a_node("other").build()))
    assert not still_takes(runner, info)


def test_room_that_was_promised_beside_it_does_not() -> None:
    promised = a_pod("other").requests(cpu="800m").priority(10).status(nominatedNodeName="n1")
    runner = a_runner(SMALL, waiting=promised)
    assert still_takes(runner, assumed(runner, a_pod("web").requests(cpu="800m")))
