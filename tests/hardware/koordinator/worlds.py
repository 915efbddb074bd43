"""A node with its pods and the reports about it, and the loads that are made of them."""

import json
from typing import Any

from asched.core.model.decode import decode
from asched.core.model.kinds import NODE, POD
from asched.core.model.timestamp import rfc3339
from asched.core.state.facts import Seen
from asched.hardware.koordinator.estimate import (
    AFTER_INITIALIZED,
    AFTER_SCHEDULED,
    ANNOTATIONS,
    CLASS_LABEL,
    Estimator,
)
from asched.hardware.koordinator.node_load import (
    FILTER,
    RAW_ALLOCATABLE,
    THRESHOLDS,
    Aggregated,
    NodeLoads,
    Profile,
    Reading,
)
from asched.hardware.koordinator.node_metric import NODE_METRIC, NodeMetric
from tests.builders import PodBuilder, a_cluster, a_node, a_pod

Json = dict[str, Any]
NOW_S, INTERVAL_S, EXPIRES_S = 1_800_000_000.0, 60, 180
#: When the report was made.
REPORT_S = NOW_S - 30
OLD_S, NEW_S = REPORT_S - INTERVAL_S, REPORT_S - INTERVAL_S + 1
PROD, MID = "koord-prod", "koord-mid"


class Node:
    """Its loads, as a profile reads them that expects a pod to use what it asks for."""

    def __init__(
        self,
        *,
        profile: Profile | None = None,
        score: Aggregated | None = None,
        with_system: bool = False,
        resources: tuple[str, ...] = ("cpu",),
        seconds: tuple[int | None, int | None] = (None, None),
        **annotations: Any,
    ) -> None:
        self.cluster = a_cluster()
        self.cluster.classes.tell_apart_by(ANNOTATIONS)
        self.now_s = NOW_S
        self.wait(0)
        self.put(**annotations)
        reading = Reading(resources, profile or Profile({}, {}), score, with_system, EXPIRES_S)
        factors = dict.fromkeys(resources, 100)
        estimator = Estimator(resources, factors, seconds, is_custom=True)
        self.kept = NodeLoads(self.cluster, reading, estimator)

    def wait(self, seconds: float) -> None:
        self.now_s += seconds
        self.cluster.begin_turn(self.now_s, is_quiet=True)

    def put(self, name: str = "n1", cpu: str = "10", **annotations: Any) -> None:
        named = {"thresholds": THRESHOLDS, "raw": RAW_ALLOCATABLE}
        told = {
            named[key]: one if isinstance(one, str) else json.dumps(one)
            for key, one in annotations.items()
        }
        node = a_node(name).allocatable(cpu=cpu)
        if told:
            node.metadata(annotations=told)
        self.cluster.apply(Seen(NODE, node.build()))

    def report(
        self,
        *pods: Json | None,
        name: str = "n1",
        at_s: float = REPORT_S,
        spec: Json | None = None,
        **status: Any,
    ) -> "Node":
        """Of pods each with its usage; the node's is 2 cores, and half a one of the system."""
        info = {"nodeUsage": {"cpu": "2"}, "systemUsage": {"cpu": "500m"}}
        told = {"nodeMetric": info, "podsMetric": list(pods), "updateTime": rfc3339(at_s)}
        metric = {"metadata": {"name": name}, "spec": spec or {}, "status": {**told, **status}}
        self.cluster.apply(Seen(NODE_METRIC, decode(NodeMetric, metric)))
        return self

    def pod(
        self,
        name: str = "p",
        since_s: float | None = OLD_S,
        kind: str = MID,
        node: str = "n1",
        **annotations: str,
    ) -> PodBuilder:
        """One that asks for a core, and runs there."""
        asked = {"cpu": "1", "kubernetes.io/mid-cpu": "1000"}
        made = a_pod(name).labels({CLASS_LABEL: kind}).requests(asked).on(node)
        if annotations:
            keys = {"scheduled": AFTER_SCHEDULED, "initialized": AFTER_INITIALIZED}
            made.metadata(annotations={keys[key]: text for key, text in annotations.items()})
        if since_s is not None:
            made.status(conditions=[a_condition("PodScheduled", since_s)])
        self.cluster.apply(Seen(POD, made.build()))
        return made

    def load(self, which: int = FILTER, name: str = "n1", at: int = 0) -> int:
        self.kept.refresh()
        return int(self.kept.loads[which, at, self.cluster.nodes.row_of[name]])


def a_condition(kind: str, at_s: float | str, status: str = "True") -> Json:
    at = at_s if isinstance(at_s, str) else rfc3339(at_s)
    return {"type": kind, "status": status, "lastTransitionTime": at}


def usage(cpu: str, priority: str = PROD, name: str = "p", **more: Any) -> Json:
    told = {"podUsage": {"cpu": cpu}, "namespace": "default", "name": name, "priority": priority}
    return {**told, **more}
