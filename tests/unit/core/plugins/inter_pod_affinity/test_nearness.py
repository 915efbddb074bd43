"""Required affinity and anti-affinity, case by case."""

from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any

import pytest

from asched.core.framework.status import Code
from asched.core.plugins.inter_pod_affinity import InterPodAffinity
from tests.conformance.twins import inter_pod_affinity as twin
from tests.topology_builders import World, a_node, a_pod, affinity, term

Json = dict[str, Any]


@dataclass(frozen=True)
class There:
    """A pod on a node."""

    node: str
    labels: str = "app=web"
    affinity: Json | None = None
    namespace: str = "default"
    terminating: bool = False


@dataclass(frozen=True)
class Case:
    name: str
    expected: str  # a digit per node: 0 fits, 1 not near, 2 too near, 3 unwanted; "skip"
    there: list[There]
    affinity: Json | None = None
    nodes: str = "a a b -"  # zones; `-` has none
    labels: str = "app=web"
    namespaces: dict[str, str] = field(default_factory=dict)


NEAR_WEB, APART_WEB = affinity(near=[term("zone")]), affinity(apart=[term("zone")])
WEB, DB = There("n0"), There("n2", "app=db")

CASES = [
    Case("near a pod", "0011", [WEB], NEAR_WEB),
    Case("near itself, the first of its group", "0001", [], NEAR_WEB),
    Case("... but not if a pod is there", "1101", [There("n2")], NEAR_WEB),
    Case("... nor if it does not match itself", "1111", [], NEAR_WEB, labels="app=db"),
    Case("... and a pod outside all domains is none", "0001", [There("n3")], NEAR_WEB),
    Case("terminating pods count", "0011", [There("n0", terminating=True)], NEAR_WEB),
    Case("a term without selector", "1111", [WEB], affinity(near=[term("zone", None)])),
    Case(
        "two terms, one pod that matches both",
        "0111",
        [WEB],
        affinity(near=[term("zone"), term("host")]),
    ),
    Case(
        "two terms, no pod that matches both",
        "1111",
        [WEB, There("n1", "app=db")],
        affinity(near=[term("zone"), term("zone", "app=db")]),
        labels="app=other",
    ),
    Case(
        "different domains, pods of the same kind",
        "0111",
        [WEB, There("n2")],
        affinity(near=[term("host"), term("zone", "app")]),
        nodes="a a - -",
    ),
    Case("apart from a pod", "2200", [WEB], APART_WEB),
    Case(
        "apart terms hold one by one",
        "2020",
        [WEB, DB],
        affinity(apart=[term("host"), term("host", "app=db")]),
    ),
    Case("apart from terminating pods too", "2200", [There("n0", terminating=True)], APART_WEB),
    Case("apart from nobody", "0000", [], APART_WEB),
    Case("unwanted", "3300", [There("n0", "app=db", APART_WEB)]),
    Case("unwanted only where the label is", "skip", [There("n3", "app=db", APART_WEB)]),
    Case("unwanted is somebody else", "skip", [There("n0", "", APART_WEB)], labels="app=db"),
    Case("affinity of others refuses nobody", "skip", [There("n0", "app=db", NEAR_WEB)]),
    Case("not near comes first", "3311", [There("n0", affinity=APART_WEB)], NEAR_WEB),
    Case(
        "too near comes before unwanted",
        "2230",
        [There("n0", affinity=APART_WEB), There("n2", "app=db", APART_WEB)],
        affinity(apart=[term("zone", "app=web")]),
    ),
    Case("another namespace", "0000", [There("n0", namespace="other")], APART_WEB),
    Case(
        "a namespace named",
        "2200",
        [There("n0", namespace="other")],
        affinity(apart=[term("zone", namespaces=["other"])]),
    ),
    Case(
        "a named namespace leaves out the own one",
        "0000",
        [WEB],
        affinity(apart=[term("zone", namespaces=["other"])]),
    ),
    Case(
        "a namespace selected by labels",
        "2200",
        [There("n0", namespace="other"), There("n2", namespace="third")],
        affinity(apart=[term("zone", within="team=a")]),
        namespaces={"other": "team=a", "third": "team=b"},
    ),
    Case(
        "all namespaces, unknown ones too",
        "2220",
        [There("n0", namespace="other"), There("n2", namespace="unknown")],
        affinity(apart=[term("zone", within="")]),
        namespaces={"other": "team=a"},
    ),
    Case(
        "namespaces that do not have a label, if they exist",
        "0020",
        [There("n0", namespace="a"), There("n1", namespace="gone"), There("n2", namespace="b")],
        affinity(apart=[term("zone", within="team!=a")]),
        namespaces={"a": "team=a", "b": ""},
    ),
    Case(
        "terms of others judge the labels of our namespace",
        "3300",
        [
            There("n0", "", affinity(apart=[term("zone", within="team=a")]), namespace="other"),
            There("n2", "", affinity(apart=[term("zone", within="team!=a")]), namespace="other"),
        ],
        namespaces={"default": "team=a"},
    ),
]


def a_world(case: Case) -> World:
    world = World()
    for number, zone in enumerate(case.nodes.split()):
        world.see(a_node(f"n{number}", f"host=n{number}" + f" zone={zone}" * (zone != "-")))
    for name, labels in case.namespaces.items():
        world.namespace(name, labels)
    for number, one in enumerate(case.there):
        world.see(
            a_pod(
                f"p{number}",
                one.labels,
                namespace=one.namespace,
                node=one.node,
                terminating=one.terminating,
                affinity=one.affinity,
            )
        )
    return world


@pytest.mark.parametrize("case", CASES, ids=attrgetter("name"))
def test_filter(case: Case) -> None:
    world = a_world(case)
    pod = a_pod("new", case.labels, affinity=case.affinity)
    plugin, info = InterPodAffinity(None, world.cluster), world.info(pod)
    expected = twin.Filter(pod, world.nodes, list(world.on_nodes()), world.namespaces)

    result = plugin.pre_filter(info)

    assert expected.skips == (case.expected == "skip") == (result.status.code is Code.SKIP)
    if case.expected != "skip":
        codes = plugin.filter(info, world.cluster.view(), result.data)
        assert "".join(map(str, codes)) == case.expected
        assert world.by_node(codes) == {n: expected.code(node) for n, node in world.nodes.items()}
