"""Which changes wake a pod that spread constraints kept out; the ones it sleeps through, too."""

from dataclasses import dataclass
from operator import attrgetter
from typing import Any

import pytest

from asched.core.config.args import DefaultSpreadConstraint, PodTopologySpreadArgs
from asched.core.framework.registrations import Hint
from asched.core.model.decode import decode
from asched.core.model.node import Node
from asched.core.model.pod import Pod
from asched.core.model.workload import Service
from asched.core.plugins.pod_topology_spread import PodTopologySpread
from tests.topology_builders import World, a_node, a_pod, labels_of, spread

ZONED = [spread("zone"), spread("host")]
#: Each counts other pods, and only the first honours what it may.
UNEQUAL = [
    spread("zone", nodeTaintsPolicy="Honor"),
    spread("host", on="tier=x", nodeAffinityPolicy="Ignore"),
]
HONOURING = [spread("zone", nodeTaintsPolicy="Honor")]
TOLERANT = [{"operator": "Exists"}]
BARE, BOTH = a_node("n", "zone=a"), a_node("n", "zone=a host=n")


TAINTED = a_node("n", "zone=a host=n", "x=y:NoSchedule")
UNTOLD = decode(Node, {"metadata": {"name": "n", "labels": labels_of("zone=a host=n")}})


def placed(labels: str, **more: Any) -> Pod:
    return a_pod("other", labels, **{"node": "n", **more})


def me(**spec: Any) -> Pod:
    return a_pod("new", "app=web", topologySpreadConstraints=ZONED, **spec)


TOLERATING = me(tolerations=TOLERANT)


@dataclass(frozen=True)
class Case:
    name: str
    old: Pod | Node | None
    new: Pod | Node | None
    wakes: bool
    constraints: Any = None


CASES = [
    Case("a counted pod comes", None, placed("app=web"), wakes=True),
    Case("another pod comes", None, placed("app=db"), wakes=False),
    Case("a counted pod goes", placed("app=web"), None, wakes=True),
    Case("another pod goes", placed("app=db"), None, wakes=False),
    Case("a pod of another namespace", placed("app=web", namespace="x"), None, wakes=False),
    Case("a pod without place", a_pod("o", "app=web"), None, wakes=False),
    Case("a nominated pod", a_pod("o", "app=web", nominated="n"), None, wakes=True),
    Case("it comes to count", placed("app=db"), placed("app=web"), wakes=True),
    Case("it counts no more", placed("app=web"), placed("app=db"), wakes=True),
    Case("it counts as before", placed("app=web"), placed("app=web a=b"), wakes=False),
    Case(
        "a counted pod starts to terminate (it sleeps on)",
        placed("app=web"),
        placed("app=web", terminating=True),
        wakes=False,
    ),
    Case("tolerations, taints ignored", me(), me(tolerations=TOLERANT), wakes=False),
    Case(
        "tolerations, taints honoured",
        me(),
        me(tolerations=TOLERANT),
        wakes=True,
        constraints=HONOURING,
    ),
    Case(
        "tolerations of another pod",
        placed("app=web"),
        placed("app=web", tolerations=TOLERANT),
        wakes=False,
        constraints=HONOURING,
    ),
    Case("one constraint counts it", None, placed("tier=x"), wakes=True, constraints=UNEQUAL),
    Case("the other does", placed("app=web"), None, wakes=True, constraints=UNEQUAL),
    Case(
        "one counts it no more",
        placed("app=web tier=x"),
        placed("app=web"),
        wakes=True,
        constraints=UNEQUAL,
    ),
    Case("one of them honours taints", me(), TOLERATING, wakes=True, constraints=UNEQUAL),
    Case("it tolerates as before", TOLERATING, TOLERATING, wakes=False, constraints=HONOURING),
    Case("it tolerates no more", TOLERATING, me(), wakes=True, constraints=HONOURING),
    Case(
        "it tolerates nothing still", me(), me(tolerations=[]), wakes=False, constraints=HONOURING
    ),
    Case("a node with all keys comes", None, BOTH, wakes=True),
    Case("a node without a key comes", None, BARE, wakes=False),
    Case("a node with all keys goes", BOTH, None, wakes=True),
    Case("a node without a key goes", BARE, None, wakes=False),
    Case("a node gains a key", BARE, BOTH, wakes=True),
    Case("a node loses a key", BOTH, BARE, wakes=True),
    Case("a node moves", BOTH, a_node("n", "zone=b host=n"), wakes=True),
    Case("another label changes", BOTH, a_node("n", "zone=a host=n x=y"), wakes=False),
    Case("its taints change", BOTH, a_node("n", "zone=a host=n", "x=y:NoSchedule"), wakes=True),
    Case("its taints stay", TAINTED, TAINTED, wakes=False),
    Case("its taints go", TAINTED, BOTH, wakes=True),
    Case("it has none, and tells so", BOTH, UNTOLD, wakes=False),
    Case("it tells so no more", UNTOLD, BOTH, wakes=False),
    Case("taints without a key", BARE, a_node("n", "zone=a", "x=y:NoSchedule"), wakes=False),
]


@pytest.mark.parametrize("case", CASES, ids=attrgetter("name"))
def test_hint(case: Case) -> None:
    plugin = PodTopologySpread(None, World().cluster)
    pods, nodes = plugin.registrations()
    pod = a_pod("new", "app=web", topologySpreadConstraints=case.constraints or ZONED)
    about = pods if isinstance(case.old or case.new, Pod) else nodes
    assert about.hint is not None

    hint = about.hint(pod, case.old, case.new)

    assert hint is (Hint.QUEUE if case.wakes else Hint.SKIP)


ENDING = placed("app=web", terminating=True)
EXTRA_EVENTS = [
    Case("a counted pod starts to terminate", placed("app=web"), ENDING, wakes=True),
    Case("another one does", placed("app=db"), placed("app=db", terminating=True), wakes=False),
    Case("it terminates already", ENDING, ENDING, wakes=False),
    Case("it is relabelled", placed("app=web"), placed("app=web a=b"), wakes=False),
    Case(
        "one that counts elsewhere",
        placed("app=web", namespace="x"),
        placed("app=web", namespace="x", terminating=True),
        wakes=False,
    ),
    Case(
        "one of two constraints counts it",
        placed("tier=x"),
        placed("tier=x", terminating=True),
        wakes=True,
        constraints=UNEQUAL,
    ),
    Case("it has its constraints still", me(), TOLERATING, wakes=False),
    Case("a node gains all keys", BARE, BOTH, wakes=True),
    Case("a node loses a key", BOTH, BARE, wakes=True, constraints=UNEQUAL),
    Case(
        "a node with all keys may be eligible now",
        BOTH,
        a_node("n", "zone=a host=n x=y"),
        wakes=True,
    ),
    Case("a node without them", BARE, a_node("n", "zone=a x=y"), wakes=False),
    Case(
        "eligibility is not asked for",
        BOTH,
        a_node("n", "zone=a host=n x=y"),
        wakes=False,
        constraints=[spread("zone", nodeAffinityPolicy="Ignore")],
    ),
]


@pytest.mark.parametrize("case", EXTRA_EVENTS, ids=attrgetter("name"))
def test_overlooked_changes(case: Case) -> None:
    pods, nodes = PodTopologySpread(None, World().cluster).extra_events()
    pod = a_pod("new", "app=web", topologySpreadConstraints=case.constraints or ZONED)
    about = pods if isinstance(case.old, Pod) else nodes
    assert about.hint is not None

    assert about.hint(pod, case.old, case.new) is (Hint.QUEUE if case.wakes else Hint.SKIP)


def test_what_default_constraints_come_from_is_listened_to_if_they_are_hard() -> None:
    zone = DefaultSpreadConstraint(1, "zone", "DoNotSchedule")
    args = PodTopologySpreadArgs(default_constraints=(zone,), defaulting_type="List")
    found = PodTopologySpread(args, World().cluster).extra_events()[2:]
    assert [r.trigger.resource.rpartition("/")[2] for r in found] == [
        "Service",
        "ReplicationController",
        "ReplicaSet",
        "StatefulSet",
    ]
    near = decode(Service, {"metadata": {"name": "s", "namespace": "default"}})
    far = decode(Service, {"metadata": {"name": "s", "namespace": "far"}})
    hint = found[0].hint
    assert hint is not None
    assert hint(a_pod("new", "app=web"), near, None) is Hint.QUEUE
    assert hint(a_pod("new", "app=web"), None, far) is Hint.SKIP
    assert hint(me(), near, None) is Hint.SKIP, "it has constraints of its own"
