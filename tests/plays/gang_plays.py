"""Gangs of Kubernetes itself: pods that name a PodGroup in a field."""

from typing import Any

from asched.core.cluster.facts import Seen
from asched.core.framework.effects import Bind
from asched.core.model.kinds import POD_GROUP
from asched.core.model.meta import ObjectMeta
from asched.core.model.workload import GangPolicy, PodGroup, PodGroupPolicy, PodGroupSpec
from tests.builders import NodeBuilder, PodBuilder, a_node, a_pod
from tests.plays.playbook import Play

GANGS: dict[str, Any] = {
    "profiles": [
        {
            "schedulerName": "default-scheduler",
            "plugins": {"multiPoint": {"enabled": [{"name": "GangScheduling"}]}},
        }
    ]
}


def a_play(*nodes: NodeBuilder, **gates: bool) -> Play:
    return Play(*nodes, gates=gates, **GANGS)


def a_group(name: str = "crew", min_count: int | None = 3) -> PodGroup:
    gang = None if min_count is None else GangPolicy(min_count=min_count)
    return PodGroup(
        metadata=ObjectMeta(namespace="default", name=name, uid=f"uid-{name}"),
        spec=PodGroupSpec(scheduling_policy=PodGroupPolicy(gang=gang)),
    )


def a_member(name: str, group: str = "crew", cpu: str = "1") -> PodBuilder:
    return a_pod(name).requests(cpu=cpu).spec(schedulingGroup={"podGroupName": group})


def uid_of(name: str) -> str:
    return a_member(name).build().uid


def room_for(count: int) -> NodeBuilder:
    return a_node(f"room-for-{count}").allocatable(cpu=str(count), memory="8Gi", pods="100")


def bound(play: Play) -> set[str]:
    return {bind.pod.name for bind in play.of(Bind)}


def seen_group(play: Play, min_count: int | None = 3) -> None:
    play.turn(Seen(POD_GROUP, a_group(min_count=min_count)))


def places(play: Play) -> set[str]:
    return {name for name in ("a", "b", "c") if play.node_of(uid_of(name))}
