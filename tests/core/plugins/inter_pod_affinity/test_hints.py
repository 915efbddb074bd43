"""Which changes wake a pod that affinity kept out; the ones it sleeps through, too."""

from dataclasses import dataclass
from operator import attrgetter
from random import Random
from typing import Any

import pytest

from asched.core.framework.points import Hint
from asched.core.model.decode import decode
from asched.core.model.node import Node
from asched.core.model.pod import Pod
from asched.core.model.workload import Namespace
from asched.core.plugins.inter_pod_affinity import InterPodAffinity
from tests.heard import heard
from tests.topology_world import World, a_node, a_pod, affinity, term

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


#: Pods that wait, and what comes, goes or changes: whether anything of it concerns them.
CONCERNS = [
    ("a match comes", NEAR, None, other(WEB), True),
    ("no match comes", NEAR, None, other(DB), False),
    ("a match in another namespace", NEAR, None, other(WEB, namespace="x"), False),
    ("in whichever namespace", WITHIN, None, other(WEB, namespace="x"), True),
    ("a match without a place", NEAR, None, a_pod("other", WEB), False),
    ("a nominated one", NEAR, None, a_pod("other", WEB, nominated="n"), True),
    ("one that was a match", APART, other(WEB), other(DB), True),
    ("one that becomes a match", NEAR, other(DB), other(WEB), True),
    ("of two terms the first is enough", TWO_NEAR, None, other("tier=x"), False),
    ("and it is met", TWO_NEAR, None, other(WEB), True),
    ("each term that keeps apart", TWO_APART, other("tier=x"), None, True),
    ("none of them", TWO_APART, other(DB), None, False),
    ("any label will do", affinity(near=[term("zone", "app")]), None, other(), None),
    ("no label will do", affinity(apart=[term("zone", "app!=db")]), other(), None, None),
    ("one of two can be told", affinity(near=[term("zone", "app"), term("host")]), None, other(DB),
     False),
    ("who minded goes", None, other(affinity=APART), None, True),
    ("who minded others goes", None, other(affinity=affinity(apart=[term("host", DB)])), None,
     False),
    ("who minded some goes", None, other(affinity=affinity(apart=[term("host", "app")])), None,
     None),
    ("who minded stays", None, other(affinity=APART), other(affinity=APART), False),
    ("nobody is meant", affinity(near=[term("zone", None)]), None, other(WEB), False),
]  # fmt: skip


@pytest.mark.parametrize(
    ("affinity", "old", "new", "concerned"), [c[1:] for c in CONCERNS], ids=[c[0] for c in CONCERNS]
)
def test_whom_a_change_concerns(
    affinity: Json | None, old: Pod | None, new: Pod | None, concerned: bool | None
) -> None:
    """None: it cannot be told, so everybody is asked."""
    plugin = InterPodAffinity(None, World().cluster)
    pod = a_pod("new", WEB, affinity=affinity)
    for told in (plugin.registrations()[0], plugin.extra_events()[0]):
        assert told.concerns is not None
        sought, offered = told.concerns.sought(pod), told.concerns.offered(old, new)
        if sought is None or offered is None:
            assert concerned is None
        else:
            assert bool(set(sought) & set(offered)) is concerned


SELECTORS = ("app=web", "tier=x", "app!=db", "app", None)
LABELS = ("", WEB, DB, "tier=x", "app=web tier=x")


@pytest.mark.parametrize("seed", range(40))
def test_whom_a_pod_does_not_concern_its_hints_let_rest(seed: int) -> None:
    """What one seeks and what the other offers has nothing in common: no hint says Queue."""
    random = Random(seed)
    plugin = InterPodAffinity(None, World().cluster)

    def some_terms() -> list[Json]:
        within = ({}, {}, {"within": "team=a"}, {"namespaces": ["x"]})
        return [
            term(random.choice(("zone", "host")), random.choice(SELECTORS), **random.choice(within))
            for _ in range(random.choice((0, 1, 1, 2)))
        ]

    def some_affinity() -> Json:
        return affinity(near=some_terms(), apart=some_terms())

    rests = 0
    for _ in range(40):
        pod = a_pod("new", random.choice(LABELS), affinity=some_affinity())
        near = {"namespace": random.choice(("default", "x")), "node": random.choice(("n", "n", ""))}
        old, new = (
            a_pod("other", random.choice(LABELS), affinity=some_affinity(), **near)
            for _ in range(2)
        )
        change = random.choice(((old, None), (None, new), (old, new)))
        for told in (plugin.registrations()[0], plugin.extra_events()[0]):
            assert told.concerns is not None
            assert told.hint is not None
            sought, offered = told.concerns.sought(pod), told.concerns.offered(*change)
            if sought is not None and offered is not None and not set(sought) & set(offered):
                rests += 1
                assert told.hint(pod, *change) is Hint.SKIP
    assert rests


def test_pods_with_many_terms_are_looked_at_again_after_every_change(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A look at the nodes tells sooner than their terms do; hints, as upstream has them, go by the
    pod itself then.
    """
    plugin = InterPodAffinity(None, World().cluster)
    many = a_pod("new", WEB, affinity=affinity(apart=[term("host", f"a=b{n}") for n in range(65)]))
    few = a_pod("new", WEB, affinity=affinity(apart=[term("host", f"a=b{n}") for n in range(64)]))
    plain, minding = a_pod("plain", WEB), a_pod("other", node="n", affinity=many.spec.affinity)
    pods, nodes = plugin.registrations()
    more, _, namespaces = plugin.extra_events()
    assert pods.concerns is not None

    assert pods.concerns.sought(many) is None
    assert pods.concerns.sought(few) is not None
    assert pods.concerns.offered(minding, None) is None
    assert pods.concerns.offered(None, minding) is not None
    namespace = decode(Namespace, {"metadata": {"name": "x", "labels": {"a": "b"}}})
    for pod, change, expected in (
        (many, (other(DB), None), Hint.QUEUE),
        (plain, (minding, None), Hint.QUEUE),
        (few, (other(DB), None), Hint.SKIP),
        (plain, (None, minding), Hint.SKIP),
    ):
        assert more.hint(pod, *change) is expected
        assert pods.hint(pod, *change) is Hint.SKIP
        assert pods.hint(pod, None, pod) is pods.hint(pod, pod, pod) is Hint.QUEUE
    assert nodes.hint(many, None, ZONE_A) is Hint.SKIP
    assert nodes.hint(few, None, ZONE_A) is Hint.QUEUE
    assert namespaces.hint(many, None, namespace) is Hint.QUEUE
    assert namespaces.hint(few, None, namespace) is Hint.SKIP


def test_what_it_listens_to() -> None:
    plugin = InterPodAffinity(None, World().cluster)

    assert list(heard(plugin.registrations())) == [
        "Pod: Add, Delete, UpdatePodLabel", "Node: Add, UpdateNodeLabel"
    ]  # fmt: skip
    assert list(heard(plugin.extra_events())) == [
        "Pod: Add, Delete, UpdatePodLabel",
        "Node: Add, Delete, UpdateNodeLabel",
        "Namespace: Add, Delete, Update",
    ]
