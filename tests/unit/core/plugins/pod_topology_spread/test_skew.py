"""Hard constraints, case by case: zones with so many pods each, and which of them take one more."""

from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any

import pytest

from asched.core.cluster.nodes import ALL_ASPECTS
from asched.core.plugins.pod_topology_spread import PodTopologySpread
from tests.conformance.twins import pod_topology_spread as twin
from tests.topology_builders import World, a_node, a_pod, spread

FITS, NO_LABEL, SKEWED = 0, 1, 2


@dataclass(frozen=True)
class Case:
    name: str
    pods: str  # where pods with app=web are, by node
    constraints: list[dict[str, Any]]
    expected: str  # a digit for each node: 0 fits, 1 no label, 2 skewed
    nodes: str = "a b c"  # zones, one node each; `-` has none, `a!` a hard taint, `a+` disk=ssd
    labels: str = "app=web"
    spec: dict[str, Any] = field(default_factory=dict)


CASES = [
    Case("the worked example", "0 0 0 1 2 2", [spread("zone")], "202"),
    Case("four domains wanted of three", "0 0 0 1 2 2", [spread("zone", minDomains=4)], "222"),
    Case("an empty zone is the least", "0", [spread("zone")], "200"),
    Case("a larger skew", "0", [spread("zone", 2)], "000"),
    Case("the pod itself does not count", "0", [spread("zone")], "000", labels="app=db"),
    Case("no selector counts nothing", "0 0 0", [spread("zone", on=None)], "000"),
    Case("an empty selector counts only the pod", "0 0 0", [spread("zone", on="")], "000"),
    Case(
        "an empty selector with too few domains",
        "0 0 0",
        [spread("zone", on="", minDomains=9)],
        "000",
    ),
    Case("a node without the key", "0", [spread("zone")], "201", nodes="a b -"),
    Case("a node without the key is no domain", "", [spread("zone")], "0001", nodes="a b c -"),
    Case("no domain at all", "", [spread("rack")], "111"),
    Case("two nodes share a zone", "0 1", [spread("zone")], "220", nodes="a a b"),
    Case(
        "all keys are needed to be counted",
        "0",
        [spread("zone"), spread("rack")],
        "111",
    ),
    Case(
        "the first constraint tells",
        "0",
        [spread("zone"), spread("host")],
        "2020",
        nodes="a b a b",
    ),
    Case("taints are ignored by default", "0 0 1", [spread("zone")], "220", nodes="a b c!"),
    Case(
        "a tainted zone is not the least",
        "0 1",
        [spread("zone", nodeTaintsPolicy="Honor")],
        "000",
        nodes="a b c!",
    ),
    Case(
        "... unless it is tolerated",
        "0 1",
        [spread("zone", nodeTaintsPolicy="Honor")],
        "220",
        nodes="a b c!",
        spec={"tolerations": [{"operator": "Exists"}]},
    ),
    Case(
        "a zone the node selector excludes is not the least",
        "0 1",
        [spread("zone")],
        "000",
        nodes="a+ b+ c",
        spec={"nodeSelector": {"disk": "ssd"}},
    ),
    Case(
        "... unless the policy says so",
        "0 1",
        [spread("zone", nodeAffinityPolicy="Ignore")],
        "220",
        nodes="a+ b+ c",
        spec={"nodeSelector": {"disk": "ssd"}},
    ),
    Case(
        "pods on an excluded node do not count in a shared zone",
        "0 0 0",
        [spread("zone")],
        "000",
        nodes="a a+ b+",
        spec={"nodeSelector": {"disk": "ssd"}},
    ),
    Case(
        "label keys narrow the selector",
        "0 1 2",
        [spread("zone", on="app", matchLabelKeys=["tier"])],
        "000",
        labels="app=web tier=x",
    ),
    Case(
        "label keys do not revive a missing selector",
        "0 0",
        [spread("zone", on=None, matchLabelKeys=["app"])],
        "000",
    ),
    Case(
        "label keys end the silence of an empty selector",
        "0",
        [spread("zone", on="", matchLabelKeys=["app"])],
        "200",
    ),
]


def a_world(case: Case) -> World:
    world = World()
    for number, zone in enumerate(case.nodes.split()):
        labels = f"host=n{number}" + (f" zone={zone[0]}" if zone[0] != "-" else "")
        labels += " disk=ssd" if "+" in zone else ""
        world.see(a_node(f"n{number}", labels, "gpu=yes:NoSchedule" if "!" in zone else ""))
    for number, node in enumerate(case.pods.split()):
        world.see(a_pod(f"p{number}", "app=web", node=f"n{node}"))
    return world


@pytest.mark.parametrize("case", CASES, ids=attrgetter("name"))
def test_filter(case: Case) -> None:
    world = a_world(case)
    pod = a_pod("new", case.labels, topologySpreadConstraints=case.constraints, **case.spec)
    plugin, info = PodTopologySpread(None, world.cluster), world.info(pod)

    codes = plugin.filter(info, world.cluster.view(), plugin.pre_filter(info).data)

    assert "".join(map(str, codes)) == case.expected
    expected = twin.Filter(pod, world.nodes, list(world.on_nodes()))
    assert world.by_node(codes) == {name: expected.code(n) for name, n in world.nodes.items()}


def test_terminating_pods_and_other_namespaces_do_not_count() -> None:
    world = World(a_node("n0", "zone=a"), a_node("n1", "zone=b"))
    world.see(a_pod("p0", "app=web", node="n0", terminating=True))
    world.see(a_pod("p1", "app=web", node="n0", namespace="other"))
    plugin = PodTopologySpread(None, world.cluster)
    info = world.info(a_pod("new", "app=web", topologySpreadConstraints=[spread("zone")]))

    codes = plugin.filter(info, world.cluster.view(), plugin.pre_filter(info).data)

    assert codes.tolist() == [FITS, FITS]


@pytest.mark.parametrize("more", [0, 16])
def test_a_new_zone_lowers_the_least_for_every_node(more: int) -> None:
    world = World(a_node("n0", "zone=a"), a_pod("p0", "app=web", node="n0"))
    for number in range(more):
        world.see(a_node(f"m{number}", f"zone=m{number}"))
        world.see(a_pod(f"q{number}", "app=web", node=f"m{number}"))
    plugin = PodTopologySpread(None, world.cluster)
    info = world.info(a_pod("new", "app=web", topologySpreadConstraints=[spread("zone")]))
    _, _, side, moved = plugin.pre_filter(info)
    assert moved is not None
    before = plugin.filter(info, world.cluster.view(), side).tolist()
    cursor = moved.end

    world.see(a_node("n1", "zone=b"), a_node("n2"))
    plugin.stamp(info, side)

    assert before == [FITS] * (1 + more)
    codes = plugin.filter(info, world.cluster.view(), side).tolist()
    assert codes == [SKEWED] * (1 + more) + [FITS, NO_LABEL]
    rows = moved.rows(cursor, ALL_ASPECTS)
    assert rows is not None
    assert sorted(rows) == list(range(1 + more))  # the others are new


def test_on_trial_an_empty_selector_counts() -> None:
    """What is there does not count, but what a trial adds or takes does."""
    world = World(a_node("n0", "zone=a"), a_node("n1", "zone=b"))
    world.see(a_pod("p0", "app=web", node="n0"))
    plugin = PodTopologySpread(None, world.cluster)
    info = world.info(a_pod("new", "app=web", topologySpreadConstraints=[spread("zone", on="")]))
    side = plugin.pre_filter(info).data
    there = list(world.cluster.pods_on(0).values())

    with world.cluster.supposing().there([world.info(a_pod("nominated"))], 0):
        added = plugin.filter(info, world.cluster.view(), side).tolist()
    with world.cluster.supposing().gone(there, 0):
        removed = plugin.filter(info, world.cluster.view(), side).tolist()

    assert (added, removed) == ([SKEWED, FITS], [FITS, SKEWED])
