"""Preferred terms, case by case, and normalisation."""

from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any

import numpy as np
import pytest

from asched.core.config.args import InterPodAffinityArgs
from asched.core.framework.status import Code
from asched.core.plugins.inter_pod_affinity import InterPodAffinity
from tests.conformance.twins import inter_pod_affinity as twin
from tests.topology_builders import World, a_node, a_pod, affinity, term

Json = dict[str, Any]
DRAWN, PUT_OFF = affinity(drawn=[(5, term("zone"))]), affinity(put_off=[(3, term("host"))])
NEAR, APART = affinity(near=[term("zone")]), affinity(apart=[term("zone")])


@dataclass(frozen=True)
class Case:
    name: str
    raw: list[int] | None  # of four nodes in zones a a b and none; None: skipped
    there: list[tuple[str, str, Json | None]]  # node, labels, affinity
    affinity: Json | None = None
    args: InterPodAffinityArgs = field(default_factory=InterPodAffinityArgs)


CASES = [
    Case("nobody is there", None, [], DRAWN),
    Case("nobody says anything", None, [("n0", "app=web", None)]),
    Case("drawn by each pod that matches", [10, 10, 0, 0], [("n0", "app=web", None)] * 2, DRAWN),
    Case("put off", [-3, 0, 0, 0], [("n0", "app=web", None)], PUT_OFF),
    Case("pods outside all domains do not count", None, [("n3", "app=web", None)], DRAWN),
    Case("others are drawn to it", [5, 5, 0, 0], [("n0", "", DRAWN)]),
    Case("others are put off by it", [0, 0, -3, 0], [("n2", "", PUT_OFF)]),
    Case("what others require draws a little", [1, 1, 0, 0], [("n0", "", NEAR)]),
    Case(
        "... or as much as one likes",
        [9, 9, 0, 0],
        [("n0", "", NEAR)],
        args=InterPodAffinityArgs(9),
    ),
    Case("... or not at all", None, [("n0", "", NEAR)], args=InterPodAffinityArgs(0)),
    Case("anti-affinity that others require does not score", None, [("n0", "", APART)]),
    Case("its own requirements do not score", None, [("n0", "app=web", None)], NEAR),
    Case(
        "terms count one by one, keys add up",
        [8, 5, 0, 0],
        [("n0", "app=web", None)],
        affinity(drawn=[(5, term("zone")), (3, term("host")), (9, term("zone", "app=db"))]),
    ),
    Case(
        "what cancels out still takes part",
        [0, 0, 0, 0],
        [("n0", "app=web", None)],
        affinity(drawn=[(5, term("zone"))], put_off=[(5, term("zone", "app"))]),
    ),
    Case(
        "others are ignored when told so",
        None,
        [("n0", "", DRAWN)],
        args=InterPodAffinityArgs(ignore_preferred_terms_of_existing_pods=True),
    ),
    Case(
        "... unless the pod has preferred terms itself",
        [5, 5, 0, 0],
        [("n0", "", DRAWN)],
        PUT_OFF,
        InterPodAffinityArgs(ignore_preferred_terms_of_existing_pods=True),
    ),
]


@pytest.mark.parametrize("case", CASES, ids=attrgetter("name"))
def test_raw_scores(case: Case) -> None:
    world = World(
        a_node("n0", "host=n0 zone=a"),
        a_node("n1", "host=n1 zone=a"),
        a_node("n2", "host=n2 zone=b"),
        a_node("n3"),
    )
    for number, (node, labels, wishes) in enumerate(case.there):
        world.see(a_pod(f"p{number}", labels, node=node, affinity=wishes))
    pod = a_pod("new", "app=web", affinity=case.affinity)
    plugin, info = InterPodAffinity(case.args, world.cluster), world.info(pod)
    view = world.cluster.view()

    result = plugin.pre_score(info, view, np.ones(4, dtype=np.bool_))

    skipped = result.status.code is Code.SKIP
    raw = None if skipped else plugin.score(info, view, result.data).tolist()
    assert raw == case.raw
    recounted = twin.raw_scores(
        pod,
        world.nodes,
        list(world.on_nodes()),
        world.namespaces,
        hard_weight=case.args.hard_pod_affinity_weight,
        ignores_others=case.args.ignore_preferred_terms_of_existing_pods,
    )
    assert raw == (None if recounted is None else list(recounted.values()))
