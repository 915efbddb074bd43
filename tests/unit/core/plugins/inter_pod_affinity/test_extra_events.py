"""Changes that wake a pod kept out by affinity if it fits then: hints say nothing of them."""

from dataclasses import dataclass
from operator import attrgetter
from typing import Any

import pytest

from asched.core.cluster.cluster import Cluster
from asched.core.cluster.facts import Seen
from asched.core.framework.registrations import Hint
from asched.core.model.decode import decode
from asched.core.model.kinds import NAMESPACE
from asched.core.model.pod import Pod
from asched.core.model.workload import Namespace
from asched.core.plugins.inter_pod_affinity import InterPodAffinity
from tests.topology_builders import a_pod, affinity, term

Json = dict[str, Any]
NEAR, APART = affinity(near=[term("zone")]), affinity(apart=[term("zone")])
TWO_APART = affinity(apart=[term("zone"), term("host", "tier=x")])
WITHIN, WITHOUT = (
    affinity(near=[term("zone", within="team=a")]),
    affinity(apart=[term("zone", within="team=a")]),
)
WITHOUT_B = affinity(apart=[term("zone", within="team=b")])
TWO_NEAR = affinity(near=[term("zone"), term("host", "tier=x")])
MIXED = affinity(near=[term("zone"), term("host", within="team=b")])
BOTH_WAYS = affinity(near=[term("zone", within="team=a")], apart=[term("zone", "app=db")])
EVERYWHERE = affinity(near=[term("zone", within="")])
NOBODY = affinity(near=[term("zone", None, within="team=a")])
NOBODY_APART = affinity(apart=[term("zone", None), term("host", None)])
DB_APART = affinity(apart=[term("zone", "app=db"), term("host", "app=db")])
ELSEWHERE = affinity(near=[term("zone", "app=db")])
WEB, DB = "app=web", "app=db"


def a_namespace(name: str, **labels: str) -> Namespace:
    return decode(Namespace, {"metadata": {"name": name, "labels": labels}})


def a_plugin() -> InterPodAffinity:
    """Pods live in `default`, of team b, or in `a`, of team a."""
    cluster = Cluster()
    cluster.apply(Seen(NAMESPACE, a_namespace("default", team="b")))
    cluster.apply(Seen(NAMESPACE, a_namespace("a", team="a")))
    return InterPodAffinity(None, cluster)


def other(labels: str = "", **more: Any) -> Pod:
    return a_pod("other", labels, **{"node": "n", **more})


@dataclass(frozen=True)
class Case:
    name: str
    affinity: Json | None
    old: Pod | None
    new: Pod | None
    may_help: bool


CASES = [
    Case("a match in a selected namespace comes", WITHIN, None, other(WEB, namespace="a"), True),
    Case("and one in another", WITHIN, None, other(WEB, namespace="x"), False),
    Case(
        "who was near in a selected namespace goes", WITHOUT, other(WEB, namespace="a"), None, True
    ),
    Case("one of two anti-affinity terms is met", TWO_APART, other(WEB), None, True),
    Case("none is", TWO_APART, other(DB), None, False),
    Case("one of its terms minded the pod", None, other(affinity=TWO_APART), None, True),
    Case("it minded another team", None, other(affinity=WITHOUT), None, False),
    Case("it minded this team", None, other(affinity=WITHOUT_B), None, True),
    Case("the last of its group may be gone", NEAR, other(WEB), None, True),
    Case("or relabelled", NEAR, other(WEB), other(DB), True),
    Case("a pod that does not match itself gains nothing", ELSEWHERE, other(DB), None, False),
    Case("a pod without a place", NEAR, None, a_pod("other", WEB), False),
    Case("one term, of which hints tell, too", APART, other(WEB), None, True),
    Case("one that minded, of which they tell, too", None, other(affinity=APART), None, True),
    Case("one that had no terms", APART, other(DB, affinity=NEAR), None, False),
    Case("one of two is met as before", TWO_APART, other(WEB), other("app=web x=y"), False),
    Case("one of two is met no more", TWO_APART, other(WEB), other(DB), True),
    Case("one of two terms selects namespaces", MIXED, None, other(WEB), True),
    Case("and one that it does not select", MIXED, None, other(WEB, namespace="x"), False),
    Case("it comes, and would be minded", BOTH_WAYS, None, other(DB), False),
    Case("a group of two terms, one of them met", TWO_NEAR, other("app=web tier=x"), None, False),
    Case(
        "a nominated match", WITHIN, None, a_pod("other", WEB, nominated="n", namespace="a"), True
    ),
    Case("in all namespaces", EVERYWHERE, None, other(WEB, namespace="x"), True),
    Case("nobody is meant", NOBODY, None, other(WEB, namespace="a"), False),
    Case("nobody was minded", None, other(affinity=NOBODY_APART), None, False),
    Case("others were minded", None, other(affinity=DB_APART), None, False),
    Case("a match that stays one", NEAR, other(WEB), other("app=web x=y"), False),
]


@pytest.mark.parametrize("case", CASES, ids=attrgetter("name"))
def test_pods(case: Case) -> None:
    pods, _, _ = a_plugin().extra_events()
    assert pods.hint is not None

    hint = pods.hint(a_pod("new", WEB, affinity=case.affinity), case.old, case.new)

    assert hint is (Hint.QUEUE if case.may_help else Hint.SKIP)


@pytest.mark.parametrize(
    ("affinity", "name", "may_help"),
    [
        (WITHIN, "x", True),
        (WITHOUT, "x", True),
        (MIXED, "x", False),  # it selects another team
        (NEAR, "x", False),
        (NEAR, "default", True),
    ],
)
def test_labels_of_namespaces(affinity: Json, name: str, may_help: bool) -> None:
    _, _, namespaces = a_plugin().extra_events()
    assert namespaces.hint is not None
    pod = a_pod("new", WEB, affinity=affinity)
    plain, labelled = a_namespace(name), a_namespace(name, team="a")

    wanted = Hint.QUEUE if may_help else Hint.SKIP
    assert namespaces.hint(pod, plain, labelled) is wanted
    assert namespaces.hint(pod, labelled, None) is wanted
    assert namespaces.hint(pod, None, labelled) is wanted
    assert namespaces.hint(pod, plain, None) is Hint.SKIP
    bare = decode(Namespace, {"metadata": {"name": name}})
    assert namespaces.hint(pod, bare, plain) is namespaces.hint(pod, plain, bare) is Hint.SKIP
    assert namespaces.hint(pod, bare, labelled) is wanted
    assert namespaces.hint(pod, labelled, labelled) is Hint.SKIP


def test_every_change_of_where_nodes_are_may_help() -> None:
    _, nodes, _ = a_plugin().extra_events()
    assert nodes.trigger.resource == "Node"
    assert nodes.hint is None
