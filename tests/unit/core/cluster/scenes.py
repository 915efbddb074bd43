"""Cluster state: webs of affinity, and reservations."""

from typing import Any

import numpy as np

from asched.batch.backfill.expected_ends import DURATION
from asched.batch.backfill.reservations import NodeNeed, Reservation, Reservations, StartOrder
from asched.core.cluster.pods import PodInfo
from asched.core.cluster.view import NodeView
from tests.builders import NodeBuilder, PodBuilder, a_cluster, a_node, a_pod, pending

NOW_S = 1_000_000.0


def room(name: str, cpu: int = 4) -> NodeBuilder:
    return a_node(name).allocatable(cpu=str(cpu), memory="8Gi", pods="10")


def lasting(name: str, seconds: int, cpu: str = "1", priority: int = 0) -> PodBuilder:
    """A pod that its kubelet ends."""
    return a_pod(name).requests(cpu=cpu).priority(priority).spec(activeDeadlineSeconds=seconds)


def endless(name: str, cpu: str = "1", priority: int = 0) -> PodBuilder:
    return a_pod(name).requests(cpu=cpu).priority(priority)


class Scene:
    """Nodes n1 and n2 of four CPUs."""

    def __init__(self, *placed: PodBuilder) -> None:
        self.cluster = a_cluster(room("n1"), room("n2"), pods=placed)
        self.cluster.steady_s = self.cluster.wall_clock_s = NOW_S
        self.cluster.classes.tell_apart_by_deadlines()
        self.cluster.classes.tell_apart_by((DURATION,))
        self.ledger = self.cluster.singleton(Reservations)

    def info(self, pod: PodBuilder) -> PodInfo:
        return pending(self.cluster, pod)

    def reserve(self, owner: str = "gang", at_s: float = 1000.0, **fields: Any) -> Reservation:
        cpus = fields.pop("cpus", {"n1": 4})
        like = self.info(endless(f"like-{owner}", cpu="3"))
        one = Reservation(
            owner,
            "default-scheduler",
            StartOrder(-fields.pop("priority", 0), fields.pop("since_s", 0.0), 0),
            NOW_S + at_s,
            NOW_S + at_s + fields.pop("lasts_s", 1e9),
            True,
            {name: NodeNeed({"cpu": 1000 * cpu}, 1) for name, cpu in cpus.items()},
            fields.pop("likes", (like,)),
            NOW_S + at_s,
        )
        self.ledger.put(one)
        return one

    def codes(self, pod: PodBuilder, rows: Any = None) -> list[int]:
        at = None if rows is None else np.array(rows, dtype=np.int32)
        view = NodeView(self.cluster.nodes, at)
        return self.ledger.codes(self.info(pod), view).tolist()
