"""Elastic quotas, and pods that count against them."""

from typing import Any

from asched.core.cluster.facts import Seen
from asched.core.model.decode import decode
from asched.core.model.kinds import ELASTIC_QUOTA
from asched.core.model.quotas import ElasticQuota
from tests.builders import NodeBuilder, PodBuilder, a_node, a_pod
from tests.playbook import Play


def a_play(*nodes: NodeBuilder, **args: Any) -> Play:
    """As users of scheduler-plugins have it: preemption is the plugin's alone."""
    plugins = {
        "multiPoint": {"enabled": [{"name": "CapacityScheduling"}]},
        "postFilter": {"enabled": [{"name": "CapacityScheduling"}], "disabled": [{"name": "*"}]},
    }
    config = [{"name": "CapacityScheduling", "args": args}]
    own = {"schedulerName": "default-scheduler", "plugins": plugins, "pluginConfig": config}
    return Play(*nodes, profiles=[own])


def quota(play: Play, namespace: str, name: str = "quota", **spec: Any) -> None:
    metadata = {"name": name, "namespace": namespace, "uid": f"{namespace}-{name}"}
    made = decode(ElasticQuota, {"metadata": metadata, "spec": spec})
    play.turn(Seen(ELASTIC_QUOTA, made))


def room(name: str, cpu: int = 8, **more: str) -> NodeBuilder:
    return a_node(name).allocatable({"cpu": str(cpu), "memory": "64Gi", "pods": "100", **more})


def pod(name: str, namespace: str, cpu: int = 1, priority: int = 0) -> PodBuilder:
    return a_pod(name, namespace).requests(cpu=str(cpu)).priority(priority)


def big(cpu: int) -> dict[str, str]:
    return {"cpu": str(cpu), "memory": "100Gi", "ephemeral-storage": "100Gi"}
