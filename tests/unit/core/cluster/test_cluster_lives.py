"""Random lives of nodes and pods, step by step: a fresh count agrees, and the log tells of each row
that is another than before.
"""

from random import Random
from typing import Any

import pytest

from asched.core.cluster.audit import recount
from asched.core.cluster.cluster import Cluster
from asched.core.cluster.facts import Gone, Listed, Seen
from asched.core.cluster.nodes import Aspect
from asched.core.cluster.pods import PodInfo
from asched.core.cluster.usage import NamespaceUsage
from asched.core.model.kinds import NODE, POD
from asched.core.model.node import Node
from asched.core.model.pod import Pod
from tests.builders import a_node, a_pod
from tests.topology_builders import ZONE, affinity, term

NODES, PODS = [f"n{number}" for number in range(5)], [f"p{number}" for number in range(10)]
TOO_MUCH = {"cpu": "9e18", "memory": "9e18"}
KINDS = 4


class Lives:
    """A pod asks for the same all its life, as some others do; it may be resized, and told anew."""

    def __init__(self, seed: int) -> None:
        self.rng = Random(seed)
        self.cluster = Cluster()
        self.cluster.usage.kept()
        self.cluster.classes.tell_apart_by(("says",))
        self.cluster.classes.tell_apart_by_deadlines()
        self.assumed: list[PodInfo] = []
        self.steps = [self.see_node, self.see_pod, self.see_pod, self.see_pod, self.lose_one]
        self.steps += [self.assume, self.assume, self.forget, self.list_anew, self.suppose]

    def node(self, name: str) -> Node:
        rng, built = self.rng, a_node(name)
        if rng.random() < 0.7:
            built.labels({ZONE: rng.choice("ab")})
        if rng.random() < 0.5:
            built.allocatable({f"example.com/{rng.choice('ab')}": "4"})
        if rng.random() < 0.3:
            built.taints("a=b:NoSchedule").features("F").cordoned()
        return built.build()

    def pod(self, name: str) -> Pod:
        """Where it is already, or anywhere, or nowhere."""
        rng, own, built = self.rng, Random(ord(name[-1]) % KINDS), a_pod(name)
        known = self.cluster.pods_seen.get(f"default/{name}")
        node = (known and known.spec.node_name) or rng.choice(("", "", "", "unknown", *NODES))
        version = str(rng.randrange(1_000_000))
        built.on(node).metadata(resourceVersion=version, uid=f"{name}-{rng.choice('aaab')}")
        built.requests({"cpu": str(1 + own.randrange(3)), f"example.com/{own.choice('abc')}": "1"})
        if own.random() < 0.2:
            built.requests(TOO_MUCH)
        if own.random() < 0.3:
            built.host_port(80)
        if own.random() < 0.4:
            built.spec(affinity=affinity(apart=[term("zone")], drawn=[(3, term("zone", "tier"))]))
        if rng.random() < 0.5:
            built.labels(app=rng.choice(("web", "db")))
        if rng.random() < 0.2:
            built.metadata(annotations={"says": rng.choice("ab")})
        if rng.random() < 0.2:
            built.spec(activeDeadlineSeconds=5)
        if rng.random() < 0.1:
            built.metadata(deletionTimestamp="2026-01-01T00:00:00Z")
        if rng.random() < 0.3:
            resources = {"requests": {"cpu": rng.choice("1234")}}
            built.status(containerStatuses=[{"name": "c0", "resources": resources}])
        if rng.random() < 0.2:
            built.status(startTime="2026-01-01T00:00:00Z")
        return built.build()

    def see_node(self) -> None:
        self.cluster.apply(Seen(NODE, self.node(self.rng.choice(NODES))))

    def see_pod(self) -> None:
        self.cluster.apply(Seen(POD, self.pod(self.rng.choice(PODS))))

    def lose_one(self) -> None:
        pods = list(self.cluster.pods_seen.values())
        node = self.cluster.node_of(self.rng.choice(NODES))
        if node is not None and self.rng.random() < 0.4:
            self.cluster.apply(Gone(NODE, node))
        elif pods:
            self.cluster.apply(Gone(POD, self.rng.choice(pods)))

    def assume(self) -> None:
        cluster = self.cluster
        waiting = [pod for pod in cluster.pods_seen.values() if not pod.spec.node_name]
        free = [pod for pod in waiting if pod.uid not in cluster.placed]
        if free:
            self.assumed.append(cluster.classes.info_of(self.rng.choice(free)))
            cluster.assume(self.assumed[-1], self.rng.choice(NODES))

    def forget(self) -> None:
        if self.assumed:
            self.cluster.forget(self.assumed.pop(self.rng.randrange(len(self.assumed))))

    def list_anew(self) -> None:
        """Some are as they were; in two parts."""
        pods = [self.pod(name) for name in self.rng.sample(PODS, 6)]
        known = [self.cluster.pods_seen.get(pod.key) for pod in pods[:3]]
        pods = [old or new for old, new in zip(known, pods[:3], strict=True)] + pods[3:]
        self.cluster.apply(Listed(POD, tuple(pods[::2]), 0, has_more=True))
        self.cluster.apply(Listed(POD, tuple(pods[1::2]), 1))

    def suppose(self) -> None:
        for row, _ in self.cluster.nodes.nodes():
            there = list(self.cluster.pods_on(row).values())
            guest = self.cluster.classes.info_of(self.pod("guest").on(""))
            with self.cluster.supposing().gone(there[1:], row) as suppose:
                suppose.there([guest], row)


def seen_by_row(cluster: Cluster) -> dict[int, dict[Aspect, Any]]:
    """What a rule may read of each row, by the aspect that is logged when it is another."""
    read, found = cluster.nodes.columns.read, dict[int, dict[Aspect, Any]]()
    for row, node in cluster.nodes.nodes():
        infos = sorted(cluster.pods_on(row).items())
        asked = {
            name: int(read("requested")[id_ - 1, row])
            for name, id_ in cluster.nodes.resources.ids.items()
        }
        asked = {name: amount for name, amount in asked.items() if amount}
        asked |= cluster.nodes.pod_amounts.unlisted(row)
        sums = read("nonzero")[:, row].tolist(), int(read("pod_count")[row])
        beyond = sorted(cluster.nodes.pod_amounts.beyond(row).values())
        who = [
            (uid, i.cls.annotations_key, i.pod.is_terminating, i.pod.status.start_time)
            for uid, i in infos
        ]
        found[row] = {
            Aspect.LIVE: node.name,
            Aspect.LABELS: node.labels,
            Aspect.TAINTS: (node.spec.taints, node.spec.unschedulable),
            Aspect.ALLOCATABLE: node.status.allocatable,
            Aspect.POD_AMOUNTS: (asked, sums, beyond),
            Aspect.POD_LABELS: [(uid, info.cls.label_set.labels) for uid, info in infos],
            Aspect.START_TIMES | Aspect.POD_AMOUNTS: who,
        }
    return found


@pytest.mark.parametrize("seed", range(6))
def test_whatever_happens_counts_once_and_is_logged(seed: int) -> None:
    lives = Lives(seed)
    cluster = lives.cluster
    for _ in range(80):
        before, cursor = seen_by_row(cluster), cluster.nodes.log.end
        lives.rng.choice(lives.steps)()

        assert recount(cluster) == []
        assert NamespaceUsage(cluster.placed).kept().of("default") == cluster.usage.of("default")
        for info in cluster.placed.values():
            cls = cluster.classes.class_of(info.pod)
            assert (info.cls.label_set, info.cls.annotations_key) == (
                cls.label_set,
                cls.annotations_key,
            )
            assert info.cls.accounted == cls.accounted
        log, now = cluster.nodes.log, seen_by_row(cluster)
        for row in before.keys() | now.keys():
            for aspect in before.get(row) or now[row]:
                old, new = before.get(row, {}).get(aspect), now.get(row, {}).get(aspect)
                assert old == new or row in (log.rows(cursor, aspect) or ()), aspect
