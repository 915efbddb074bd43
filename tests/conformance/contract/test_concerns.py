"""Where a waiting pod and a change have no key in common, the hint says Skip: nobody asks it."""

from collections.abc import Collection, Hashable, Iterator, Sequence
from random import Random
from typing import Any

import msgspec
import pytest

from asched.core.cluster.changes import Action
from asched.core.cluster.cluster import Cluster
from asched.core.cluster.facts import Seen
from asched.core.cluster.pod_groups import COSCHEDULING_LABEL, coscheduled_key
from asched.core.cluster.shortages import Shortages
from asched.core.framework.registrations import Hint, Registration
from asched.core.model.claim import ResourceClaim, ResourceClaimStatus
from asched.core.model.decode import decode
from asched.core.model.kinds import (
    COMPOSITE_POD_GROUP,
    COSCHEDULING_GROUP,
    NAMESPACE,
    NODE,
    PERSISTENT_VOLUME_CLAIM,
    POD,
    POD_GROUP,
    RESOURCE_CLAIM,
)
from asched.core.model.node import Node
from asched.core.model.pod import Pod
from asched.core.model.volume import PersistentVolumeClaim
from asched.core.model.workload import CompositePodGroup, CoschedulingGroup, Namespace, PodGroup
from asched.core.plugins import IN_TREE
from tests.builders import PodBuilder, a_node, a_pod

NAMESPACES = ("red", "blue", "green")
PODS = 40
#: All but the last three of these have pods enough.
GANGS = 8
MIN_OF_3 = {"spec": {"minMember": 3}}


Told = list[tuple[str, Registration, Cluster]]


def _told() -> tuple[Told, Told]:
    """Every registration of every plugin in the tree that tells whom it concerns; behind them those
    that tell it of gangs.
    """
    found: Told = []
    for name, make in IN_TREE.items():
        cluster = Cluster()
        for team in NAMESPACES:
            space = {"metadata": {"name": team, "labels": {"team": team}}}
            cluster.apply(Seen(NAMESPACE, decode(Namespace, space)))
        plugin = make(None, cluster)
        own = plugin.registrations() or ()
        found += [(name, one, cluster) for one in (*own, *plugin.extra_events()) if one.concerns]
    of_gangs = [one for one in found if one[1].concerns and one[1].concerns.is_of_gang]
    return [one for one in found if one not in of_gangs], of_gangs


TOLD, OF_GANGS = _told()


def _no_key_hides_whom_the_hint_wakes(
    told: Registration, waiting: Sequence[Pod], changes: Sequence[tuple[Any, Any]]
) -> None:
    assert told.concerns is not None
    queued = apart = 0
    for old, new in changes:
        offered = told.concerns.offered(old, new)
        for pod in waiting:
            helps = told.hint is None or told.hint(pod, old, new) is Hint.QUEUE
            meet = _meet(told.concerns.sought(pod), offered)
            queued, apart = queued + helps, apart + (not meet)
            assert meet or not helps, (pod, old, new)
    assert queued, "no case in which the hint says Queue"
    assert apart, "keys tell nobody apart"


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(("name", "told", "cluster"), TOLD, ids=[name for name, *_ in TOLD])
def test_whom_no_key_concerns_the_hint_would_let_rest(
    name: str, told: Registration, cluster: Cluster, seed: int
) -> None:
    random = Random(f"{name}{seed}")
    waiting = [_pod(random, f"waiting-{n}").build() for n in range(PODS)]
    others = [_pod(random, f"other-{n}").on("n1") for n in range(PODS)]
    changes: list[tuple[Any, Any]]
    if told.trigger.resource == NODE.resource:
        changes = _node_changes(random)
    elif told.trigger.resource == PERSISTENT_VOLUME_CLAIM.resource:
        changes = [(None, decode(PersistentVolumeClaim, one)) for one in _claims("pqr")]
    elif told.trigger.resource == RESOURCE_CLAIM.resource:
        claims = [decode(ResourceClaim, one) for one in _claims("rst")]
        for one in claims:
            cluster.apply(Seen(RESOURCE_CLAIM, one))
        changes = [(None, one) for one in claims]
        if random.random() < 0.5:
            freed = random.choice(claims)
            status = decode(ResourceClaimStatus, {"allocation": {"devices": {"results": []}}})
            changes.append((msgspec.structs.replace(freed, status=status), freed))
    else:
        changes = _changes(random, told.trigger.action, others)
    _no_key_hides_whom_the_hint_wakes(told, waiting, changes)


@pytest.mark.parametrize("number", range(len(OF_GANGS)), ids=[name for name, *_ in OF_GANGS])
def test_of_gangs_whom_no_key_concerns_the_hint_would_let_rest(number: int) -> None:
    name, told, cluster = _told()[1][number]
    of_label = name == "Coscheduling"
    cluster.pod_groups.form_trees()
    for gang in range(GANGS):
        key = {"metadata": {"name": f"g{gang}", "namespace": "red"}}
        spec = _of_tree(f"g{gang}", minCount=3)
        cluster.apply(Seen(COSCHEDULING_GROUP, decode(CoschedulingGroup, {**key, **MIN_OF_3})))
        cluster.apply(Seen(POD_GROUP, decode(PodGroup, {**key, "spec": spec})))
        for name, parent in ((f"g{gang}", f"root-{gang}"), (f"root-{gang}", None)):
            metadata, spec = {**key["metadata"], "name": name}, _of_tree(parent, minGroupCount=1)
            composite = decode(CompositePodGroup, {"metadata": metadata, "spec": spec})
            cluster.apply(Seen(COMPOSITE_POD_GROUP, composite))
    waiting = [_of_gang(number % GANGS, f"w{number}", of_label) for number in range(3 * GANGS - 3)]
    for pod in waiting:
        cluster.apply(Seen(POD, pod))
    cluster.singleton(Shortages).note(coscheduled_key("red/g1"), {"cpu": 0})
    cluster.singleton(Shortages).note(coscheduled_key("red/g2"), {"cpu": 1000})
    kinds = (NODE, POD_GROUP, COMPOSITE_POD_GROUP, COSCHEDULING_GROUP)
    kind = {one.resource: one for one in kinds}.get(told.trigger.resource)
    if kind is NODE:
        changes: list[tuple[Any, Any]] = [(None, a_node("n2").build())]
    elif kind is not None:
        known = [cluster.get(kind, f"red/g{gang}") for gang in range(GANGS)]
        leaves = told.trigger.action is Action.DELETE
        changes = [(_with_more(one), None if leaves else one) for one in known]
    else:
        changes = [(pod, pod) for pod in waiting]
    _no_key_hides_whom_the_hint_wakes(told, waiting, changes)


def _with_more(group: Any) -> Any:
    """The group, of whose pods more have to start together."""
    if not isinstance(group, PodGroup):
        return group
    spec = _of_tree(group.metadata.name, minCount=9)
    if isinstance(group, CompositePodGroup):
        spec = _of_tree(f"root-{group.metadata.name[1:]}", minGroupCount=9)
    metadata = {"name": group.metadata.name, "namespace": group.metadata.namespace}
    return decode(type(group), {"metadata": metadata, "spec": spec})


def _of_tree(composite: str | None, **gang: int) -> dict[str, Any]:
    """The spec of a group below this composite."""
    return {"schedulingPolicy": {"gang": gang}, "parentCompositePodGroupName": composite}


def _of_gang(gang: int, name: str, of_label: bool) -> Pod:
    made = a_pod(name, "red")
    if of_label:
        return made.labels(**{COSCHEDULING_LABEL: f"g{gang}"}).build()
    return made.spec(schedulingGroup={"podGroupName": f"g{gang}"}).build()


def test_those_who_hear_of_pods_by_the_thousand_tell_whom_they_concern() -> None:
    """Pods that these reject differ: each has terms or claims of its own."""
    names = {name for name, told, _ in TOLD if told.trigger.resource == POD.resource}
    assert names >= {"InterPodAffinity", "PodTopologySpread", "VolumeRestrictions", "NodePorts"}


def _meet(sought: Collection[Hashable] | None, offered: Collection[Hashable] | None) -> bool:
    return sought is None or offered is None or not set(sought).isdisjoint(offered)


def _changes(
    random: Random, action: Action, others: list[PodBuilder]
) -> list[tuple[Pod | None, Pod | None]]:
    made: list[tuple[Pod | None, Pod | None]] = []
    for builder in others:
        pod = builder.build()
        if action & Action.ADD:
            made.append((None, pod))
        if action & Action.DELETE:
            made.append((pod, None))
        if action & Action.UPDATE_POD_LABEL:
            labels = {"app": random.choice("xyz"), "tier": random.choice("abc")}
            metadata = msgspec.structs.replace(pod.metadata, labels=labels)
            made.append((pod, msgspec.structs.replace(pod, metadata=metadata)))
        if action & Action.UPDATE:
            ends = msgspec.structs.replace(pod.metadata, deletion_timestamp="2026-01-01T00:00:00Z")
            made.append((pod, msgspec.structs.replace(pod, metadata=ends)))
    return made


def _claims(names: str) -> Iterator[dict[str, Any]]:
    for team in NAMESPACES:
        for name in names:
            uid = f"{team}-{name}"
            yield {"metadata": {"name": name, "namespace": team, "uid": uid}}


def _node_changes(random: Random) -> list[tuple[Node | None, Node]]:
    """Nodes that come, grow, shrink, and stay as they were."""

    def a_size() -> Node:
        cpu, memory = random.choice(("1", "3", "8", "40")), random.choice(("1Gi", "6Gi", "64Gi"))
        return a_node("n2").allocatable(cpu=cpu, memory=memory, pods="10").build()

    return [(a_size() if random.random() < 0.7 else None, a_size()) for _ in range(PODS)]


def _pod(random: Random, name: str) -> PodBuilder:
    pod = a_pod(name, random.choice(NAMESPACES))
    pod.labels(app=random.choice("xyz"), tier=random.choice("abc"))
    if random.random() < 0.4:
        pod.host_port(random.choice((80, 81, 82)), ip=random.choice(("", "10.0.0.1")))
    for wish in ("podAffinity", "podAntiAffinity"):
        if random.random() < 0.5:
            terms = [_term(random) for _ in range(random.choice((1, 1, 2)))]
            affinity = pod.json["spec"].setdefault("affinity", {})
            affinity[wish] = {"requiredDuringSchedulingIgnoredDuringExecution": terms}
    if random.random() < 0.5:
        constraint = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}
        pod.spec(topologySpreadConstraints=[{**constraint, "labelSelector": _selector(random)}])
    volumes: list[dict[str, Any]] = []
    if random.random() < 0.5:
        claim = {"claimName": random.choice("pqr")}
        volumes.append({"name": "v", "persistentVolumeClaim": claim})
    if random.random() < 0.3:
        disk = {"pdName": random.choice("de"), "readOnly": random.random() < 0.5}
        volumes.append({"name": "d", "gcePersistentDisk": disk})
    if random.random() < 0.3:
        pod.spec(resourceClaims=[{"name": "r", "resourceClaimName": random.choice("rs")}])
    wanted = random.choice((("500m", "512Mi"), ("2", "2Gi"), ("12", "2Gi"), ("100", "100Gi")))
    return pod.requests(cpu=wanted[0], memory=wanted[1]).spec(volumes=volumes)


def _term(random: Random) -> dict[str, Any]:
    made: dict[str, Any] = {"topologyKey": "zone", "labelSelector": _selector(random)}
    match random.choice(("own", "own", "named", "all", "labelled")):
        case "named":
            made["namespaces"] = random.sample(NAMESPACES, 2)
        case "all":
            made["namespaceSelector"] = {}
        case "labelled":
            made["namespaceSelector"] = {"matchLabels": {"team": random.choice(NAMESPACES)}}
    return made


def _selector(random: Random) -> dict[str, Any]:
    several = {"key": "app", "operator": "In", "values": random.sample("xyz", 2)}
    match random.choice(("one", "one", "two", "several", "exists", "not", "mixed")):
        case "one":
            return {"matchLabels": {"app": random.choice("xyzw")}}
        case "two":
            return {"matchLabels": {"app": random.choice("xyz"), "tier": random.choice("abcd")}}
        case "several":
            return {"matchExpressions": [several]}
        case "exists":
            return {"matchExpressions": [{"key": "tier", "operator": "Exists"}]}
        case "not":
            not_x = {"key": "app", "operator": "NotIn", "values": ["x"]}
            return {"matchExpressions": [not_x]}
    absent = {"key": "none", "operator": "DoesNotExist"}
    return {"matchExpressions": [absent, several]}
