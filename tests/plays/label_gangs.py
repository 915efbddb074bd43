"""Gangs of the coscheduling plugin: pods grouped by a label."""

from typing import Any

from msgspec.structs import replace

from asched.core.cluster.facts import Bound, Seen
from asched.core.framework.effects import Bind
from asched.core.model.decode import decode
from asched.core.model.kinds import COSCHEDULING_GROUP, POD
from asched.core.model.pod import PodCondition
from asched.core.model.timestamp import rfc3339
from asched.core.model.workload import CoschedulingGroup
from tests.builders import NodeBuilder, PodBuilder, a_node, a_pod
from tests.plays.playbook import Play

LABEL = "scheduling.x-k8s.io/pod-group"


def a_play(*nodes: NodeBuilder, args: dict[str, Any] | None = None, **profile: Any) -> Play:
    plugins = {
        "multiPoint": {
            "enabled": [{"name": "Coscheduling"}],
            "disabled": [{"name": "PrioritySort"}],
        }
    }
    config = [{"name": "Coscheduling", "args": args or {}}]
    own = {"schedulerName": "default-scheduler", "plugins": plugins, "pluginConfig": config}
    return Play(*nodes, profiles=[{**own, **profile}])


def a_group(name: str = "crew", minimum: int = 3, **spec: Any) -> CoschedulingGroup:
    metadata = {"name": name, "namespace": "default", "uid": f"uid-{name}"}
    return decode(CoschedulingGroup, {"metadata": metadata, "spec": {"minMember": minimum, **spec}})


def a_member(name: str, group: str = "crew", cpu: str = "1") -> PodBuilder:
    return a_pod(name).labels({LABEL: group}).requests(cpu=cpu)


def room(name: str, cpu: int) -> NodeBuilder:
    return a_node(name).allocatable(cpu=str(cpu), memory="64Gi", pods="100")


def group_seen(play: Play, *args: Any, **spec: Any) -> None:
    play.turn(Seen(COSCHEDULING_GROUP, a_group(*args, **spec)))


def settled(play: Play) -> set[str]:
    """Answer every binding, and show it; who was bound."""
    names = set()
    while binds := play.of(Bind):
        for bind in binds:
            names.add(bind.pod.name)
            pod = play.parts.cluster.pods_seen[bind.pod.key].on(bind.node)
            at = rfc3339(play.parts.cluster.wall_clock_s)
            told = PodCondition("PodScheduled", "True", last_transition_time=at)
            status = replace(pod.status, conditions=(told,))
            play.turn(Bound(bind.id), Seen(POD, replace(pod, status=status)))
    return names
