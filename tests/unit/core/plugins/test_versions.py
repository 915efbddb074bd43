"""Where plugins of newer minor versions decide or report otherwise than those of 1.36."""

from typing import Any

import pytest

from asched.core.config.gates import default_gates
from asched.core.framework.effects import Bind
from asched.core.plugins.image_locality import ImageLocality
from tests.builders import PodBuilder, a_cluster, a_node, a_pod, all_rows, pending
from tests.playbook import Play

FOUND = "preemption: found a potential placement for pod on node n1, preempting 1 victims"


@pytest.mark.parametrize(
    ("minor", "end"),
    [("1.36", "1 Insufficient cpu."), ("1.37", f"1 Insufficient cpu. {FOUND}")],
)
def test_preemption_reports_the_node_and_its_victims(minor: str, end: str) -> None:
    play = Play(a_node("n1").allocatable(cpu="2"), gates=default_gates(minor))
    play.see(a_pod("low").requests(cpu="2").priority(1).on("n1"))
    play.see(a_pod("high").requests(cpu="1").priority(9))
    assert f"FailedScheduling: 0/1 nodes are available: {end}" in play.notes()


@pytest.mark.parametrize(("minor", "images"), [("1.36", 1), ("1.37", 2)])
def test_image_volumes_count_like_containers(minor: str, images: int) -> None:
    cluster = a_cluster(a_node("n1").image("a:1", mib=300).image("files:1", mib=400))
    pod = a_pod().image("b:1")
    pod.spec(volumes=[{"name": "v", "image": {"reference": "files:1"}}])
    plugin = ImageLocality(cluster, default_gates(minor))
    found = plugin.score(pending(cluster, pod), all_rows(cluster), None).tolist()
    assert found == [100 * (400 - 23) // (images * 1000 - 23)]


@pytest.mark.parametrize(("minor", "bound"), [("1.36", []), ("1.37", ["waits"])])
def test_a_resize_between_two_containers(minor: str, bound: list[str]) -> None:
    """It asks for 1 and 2 CPUs, and holds 2 and 1: three of the node's four, for 1.37."""
    play = Play(a_node("n1").allocatable(cpu="4"), gates=default_gates(minor))
    held = {
        "containerStatuses": [
            {"name": name, "resources": {"requests": amounts}, "allocatedResources": amounts}
            for name, amounts in (("c0", {"cpu": "2"}), ("c1", {"cpu": "1"}))
        ]
    }
    play.see(a_pod("db").requests(cpu="1").container(cpu="2").on("n1").status(**held))
    play.see(a_pod("waits").requests(cpu="1"))
    assert [bind.pod.name for bind in play.of(Bind)] == bound


def a_spread_pod(name: str) -> PodBuilder:
    constraint: dict[str, Any] = {
        "maxSkew": 1,
        "topologyKey": "kubernetes.io/hostname",
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {},
    }
    pod = a_pod(name)
    pod.spec(topologySpreadConstraints=[constraint])
    return pod


@pytest.mark.parametrize(("minor", "is_bound"), [("1.37", True), ("1.38", False)])
def test_an_empty_selector_of_a_spread_constraint(minor: str, is_bound: bool) -> None:
    nodes = [a_node(name).labels({"kubernetes.io/hostname": name}) for name in ("n1", "n2")]
    nodes[1].spec(unschedulable=True)
    play = Play(*nodes, gates=default_gates(minor))
    play.see(a_pod("there").on("n1"))
    play.see(a_spread_pod("new"))
    assert bool(play.of(Bind)) is is_bound


@pytest.mark.parametrize(("minor", "is_bound"), [("1.36", True), ("1.37", False)])
def test_a_nominated_pod_that_arrives_gated(minor: str, is_bound: bool) -> None:
    play = Play(a_node("n1").allocatable(cpu="1"), gates=default_gates(minor))
    gated = a_pod("gated").requests(cpu="1").priority(9).status(nominatedNodeName="n1")
    play.see(gated.spec(schedulingGates=[{"name": "example.com/wait"}]))
    play.see(a_pod("low").requests(cpu="1").priority(1))
    assert bool(play.of(Bind)) is is_bound
