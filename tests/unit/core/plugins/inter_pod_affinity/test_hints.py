"""Which changes wake a pod that affinity kept out; the ones it sleeps through, too."""

from dataclasses import dataclass
from operator import attrgetter
from typing import Any

import pytest

from asched.core.framework.registrations import Hint
from asched.core.model.node import Node
from asched.core.model.pod import Pod
from asched.core.plugins.inter_pod_affinity import InterPodAffinity
from tests.topology_builders import World, a_node, a_pod, affinity, term

Json = dict[str, Any]
NEAR, APART = affinity(near=[term("zone")]), affinity(apart=[term("zone")])
TWO_NEAR = affinity(near=[term("zone"), term("host", "tier=x")])
TWO_APART = affinity(apart=[term("zone"), term("host", "tier=x")])
WITHIN = affinity(near=[term("zone", within="team=a")])
WEB, DB = "app=web", "app=db"
ZONE_A = a_node("n", "zone=a")


def other(labels: str = "", **more: Any) -> Pod:
    return a_pod("other", labels, **{"node": "n", **more})


@dataclass(frozen=True)
class Case:
    name: str
    affinity: Json | None
    old: Pod | Node | None
    new: Pod | Node | None
    wakes: bool


CASES = [
    Case("the pod itself", None, a_pod("new"), a_pod("new", WEB), wakes=True),
    Case("near: a match comes", NEAR, None, other(WEB), wakes=True),
    Case("near: no match comes", NEAR, None, other(DB), wakes=False),
    Case("near: a match goes", NEAR, other(WEB), None, wakes=False),
    Case("near: it comes to match", NEAR, other(DB), other(WEB), wakes=True),
    Case("near: it matches no more", NEAR, other(WEB), other(DB), wakes=False),
    Case("near: one of two terms", TWO_NEAR, None, other(WEB), wakes=False),
    Case("near: both terms", TWO_NEAR, None, other("app=web tier=x"), wakes=True),
    Case("near: another namespace", NEAR, None, other(WEB, namespace="x"), wakes=False),
    Case("near: a selected namespace is overlooked", WITHIN, None, other(WEB), wakes=False),
    Case("near: a pod without place", NEAR, None, a_pod("other", WEB), wakes=False),
    Case("near: a nominated pod", NEAR, None, a_pod("other", WEB, nominated="n"), wakes=True),
    Case("near: it still matches", NEAR, other(WEB), other("app=web x=y"), wakes=False),
    Case("apart: it still matches", APART, other(WEB), other("app=web x=y"), wakes=False),
    Case("apart: another label", APART, ZONE_A, a_node("n", "zone=a x=y"), wakes=False),
    Case("the pod itself comes", NEAR, None, a_pod("new"), wakes=True),
    Case("apart: a match goes", APART, other(WEB), None, wakes=True),
    Case("apart: a match comes", APART, None, other(WEB), wakes=False),
    Case("apart: it matches no more", APART, other(WEB), other(DB), wakes=True),
    Case("apart: it comes to match", APART, other(DB), other(WEB), wakes=False),
    Case("apart: of two terms one must not do", TWO_APART, other(WEB), None, wakes=False),
    Case("apart: both", TWO_APART, other("app=web tier=x"), None, wakes=True),
    Case("unwanted: who minded goes", None, other(affinity=APART), None, wakes=True),
    Case("unwanted: one of its terms", None, other(affinity=TWO_APART), None, wakes=False),
    Case("unwanted: who minded stays", None, other(affinity=APART), other(), wakes=False),
    Case("unwanted: a node comes", None, None, a_node("n", "zone=a"), wakes=False),
    Case("near: a node with the key comes", NEAR, None, a_node("n", "zone=a"), wakes=True),
    Case("near: a node without it comes", NEAR, None, a_node("n"), wakes=False),
    Case("near: a node gains it", NEAR, a_node("n"), a_node("n", "zone=a"), wakes=True),
    Case("near: a node loses it", NEAR, a_node("n", "zone=a"), a_node("n"), wakes=False),
    Case("near: a node moves", NEAR, a_node("n", "zone=a"), a_node("n", "zone=b"), wakes=True),
    Case(
        "near: another label", NEAR, a_node("n", "zone=a"), a_node("n", "zone=a x=y"), wakes=False
    ),
    Case("near: one of two keys", TWO_NEAR, None, a_node("n", "host=n"), wakes=True),
    Case("apart: any node comes", APART, None, a_node("n"), wakes=True),
    Case("apart: a node gains the key", APART, a_node("n"), a_node("n", "zone=a"), wakes=False),
    Case("apart: a node loses it", APART, a_node("n", "zone=a"), a_node("n"), wakes=True),
    Case("apart: a node moves", APART, a_node("n", "zone=a"), a_node("n", "zone=b"), wakes=True),
]


@pytest.mark.parametrize("case", CASES, ids=attrgetter("name"))
def test_hint(case: Case) -> None:
    plugin = InterPodAffinity(None, World().cluster)
    pods, nodes = plugin.registrations()
    pod = a_pod("new", WEB, affinity=case.affinity)
    about = pods if isinstance(case.old or case.new, Pod) else nodes
    assert about.hint is not None

    hint = about.hint(pod, case.old, case.new)

    assert hint is (Hint.QUEUE if case.wakes else Hint.SKIP)
