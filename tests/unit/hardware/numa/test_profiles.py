"""The plugin in a profile: its words, what wakes pods it rejected, its args."""

import re

import pytest

from asched.core.cluster.facts import Seen
from asched.core.framework.profile import CannotBuildError
from asched.core.model.decode import decode
from asched.hardware.numa.match import NodeResourceTopologyMatch
from asched.hardware.numa.topology import NODE_RESOURCE_TOPOLOGY, NodeResourceTopology
from asched.testing import World, given, node, pod
from tests.unit.hardware.numa.worlds import Json, a_topology, a_zone

NAME = NodeResourceTopologyMatch.name


def world_with(args: Json | None = None) -> World:
    given_args = {NAME: args} if args is not None else None
    offered = [node("n1", cpu=8), node("n2", cpu=8)]
    return given(offered, plugins=[NodeResourceTopologyMatch], args=given_args)


def tell(world: World, *topologies: Json) -> None:
    world._settle(
        [Seen(NODE_RESOURCE_TOPOLOGY, decode(NodeResourceTopology, one)) for one in topologies]
    )


def guaranteed(name: str, cpu: int) -> Json:
    made = pod(name, cpu=cpu, memory="1Gi")
    resources = made["spec"]["containers"][0]["resources"]
    resources["limits"] = dict(resources["requests"])
    return made


def halves(name: str, cpu: int, scope: str = "container") -> Json:
    zones = [a_zone(at, cpu=str(cpu), memory="8Gi") for at in range(2)]
    return a_topology(name, *zones, scope=scope)


def test_a_pod_that_no_zone_has_room_for_waits_until_an_agent_tells_of_one() -> None:
    world = world_with()
    tell(world, halves("n1", 4), halves("n2", 4, scope="pod"))
    outcome = world.schedule(guaranteed("wide", 6))
    assert outcome.message.startswith(
        "0/2 nodes are available: 1 cannot align container, 1 cannot align pod."
    )
    tell(world, halves("n2", 7, scope="pod"))
    world.wait(15)
    assert world.outcome("wide").node == "n2"


def test_pods_that_are_not_guaranteed_take_their_cpu_from_anywhere() -> None:
    world = world_with()
    tell(world, halves("n1", 1), halves("n2", 1))
    assert world.schedule(pod("burstable", cpu=6)).node


def test_placed_pods_are_taken_off_every_zone_until_agents_tell_of_them() -> None:
    world = world_with({"cacheResyncPeriodSeconds": 5})
    tell(world, halves("n1", 4))
    tell(world, a_topology("n2", a_zone(0, cpu="1", memory="8Gi")))
    assert world.schedule(guaranteed("first", 3)).node == "n1"
    second = world.schedule(guaranteed("second", 3))
    assert second.node == ""  # whichever zone the first is in, it is not known


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ({"scoringStrategy": {"type": "Random"}}, 'scoringStrategy.type "Random" is none of'),
        ({"preemptionMode": "Enabled"}, 'preemptionMode "Enabled" is not implemented'),
        ({"cacheResyncPeriodSeconds": -1}, "must not be negative"),
        ({"cache": {"informerMode": "Dedicated"}}, "cache.informerMode has no meaning"),
        ({"cache": {"foreignPodsDetect": "Some"}}, 'cache.foreignPodsDetect "Some" is none of'),
        ({"kind": "OtherArgs"}, "not of kubescheduler.config.k8s.io/v1"),
    ],
)
def test_args_without_a_meaning_are_refused(args: Json, message: str) -> None:
    with pytest.raises(CannotBuildError, match=re.escape(message)):
        world_with(args)


def test_args_may_be_written_as_upstreams_users_have_them() -> None:
    world = world_with(
        {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "NodeResourceTopologyMatchArgs",
            "cacheResyncPeriodSeconds": 5,
            "cache": {"foreignPodsDetect": "OnlyExclusiveResources", "resyncMethod": "All"},
            "scoringStrategy": {
                "type": "MostAllocated",
                "resources": [{"name": "cpu", "weight": 2}, {"name": "memory", "weight": 1}],
            },
        }
    )
    tell(world, halves("n1", 4), halves("n2", 2))
    assert world.schedule(guaranteed("tight", 2)).node == "n2"
