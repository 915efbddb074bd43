"""Pods of a group beyond its minimum are placed by their own priority, not by the best member's."""

from collections.abc import Callable
from typing import Any

import pytest

from asched.core.cluster.facts import Bound, Seen
from asched.core.framework.effects import Bind, PatchPodStatus
from asched.core.model.kinds import COSCHEDULING_GROUP, NODE, POD, POD_GROUP
from tests.builders import NodeBuilder, PodBuilder, a_node, a_pod
from tests.playbook import (
    Play,
    a_group,
    a_label_group,
    a_label_member,
    a_member,
    gang_play,
    label_gang_play,
    ours,
)


class Tenants:
    """Groups of one tenant and single pods of another; bindings succeed at once."""

    def __init__(self, kind: str, *nodes: NodeBuilder) -> None:
        label = kind == "label"
        self.play: Play = (label_gang_play if label else gang_play)(*nodes)
        self._member: Callable[..., PodBuilder] = a_label_member if label else a_member
        self._group: Callable[..., Any] = a_label_group if label else a_group
        self._kind = COSCHEDULING_GROUP if label else POD_GROUP
        self.bound: list[str] = []
        self.refused: list[str] = []

    def group(self, minimum: int) -> None:
        self.go(Seen(self._kind, self._group("crew", minimum)))

    def member(self, name: str, priority: int, **selector: str) -> Seen:
        pod = self._member(name).priority(priority)
        return ours(Seen(POD, (pod.spec(nodeSelector=selector) if selector else pod).build()))

    def single(self, name: str, priority: int) -> Seen:
        pod = a_pod(name).requests(cpu="1").priority(priority).metadata(namespace="other")
        return ours(Seen(POD, pod.build()))

    def go(self, *facts: Any, after_s: float = 0.0) -> list[str]:
        """Names of the pods that are bound, in order."""
        bound: list[str] = []
        self.play.turn(*facts, after_s=after_s)
        while True:
            self.refused += [patch.pod.name for patch in self.play.of(PatchPodStatus)]
            binds = self.play.of(Bind)
            if not binds:
                break
            bound += [bind.pod.name for bind in binds]
            self.play.turn(*(Bound(bind.id) for bind in binds))
        self.bound += bound
        return bound


def cpus(count: int, name: str = "n") -> NodeBuilder:
    return a_node(name).allocatable(cpu=str(count), memory="64Gi", pods="100")


def more(count: int, name: str = "more") -> Seen:
    return Seen(NODE, cpus(count, name).build())


kinds = pytest.mark.parametrize("kind", ["label", "field"])


@kinds
def test_an_important_pod_brings_no_unimportant_ones_along(kind: str) -> None:
    scene = Tenants(kind, cpus(4))
    scene.group(1)

    scene.go(
        scene.member("high", 1000),
        *(scene.member(f"low-{number}", 0) for number in range(3)),
        *(scene.single(f"other-{number}", 500) for number in range(3)),
    )

    assert sorted(scene.bound) == ["high", "other-0", "other-1", "other-2"]
    assert sorted(scene.go(more(3), after_s=10)) == ["low-0", "low-1", "low-2"]


@kinds
def test_as_many_come_along_as_the_group_needs_to_start(kind: str) -> None:
    scene = Tenants(kind, cpus(4))
    scene.group(2)

    scene.go(
        scene.member("high", 1000),
        *(scene.member(f"low-{number}", 0) for number in range(3)),
        *(scene.single(f"other-{number}", 500) for number in range(3)),
    )

    assert sorted(scene.bound) == ["high", "low-0", "other-0", "other-1"]


@kinds
def test_the_minimum_is_made_of_members_that_fit(kind: str) -> None:
    scene = Tenants(kind, cpus(3))
    scene.group(2)

    scene.go(
        scene.member("high", 1000),
        scene.member("low-0", 0, disk="none-has-it"),
        scene.member("low-1", 0),
        scene.member("low-2", 0),
        scene.single("other", 500),
    )

    assert sorted(scene.bound) == ["high", "low-1", "other"]


@kinds
def test_a_new_member_of_a_running_group_brings_no_unimportant_ones_along(kind: str) -> None:
    scene = Tenants(kind, cpus(1))
    scene.group(1)
    assert scene.go(scene.member("first", 0)) == ["first"]
    scene.go(*(scene.member(f"low-{number}", 0) for number in range(3)))

    scene.go(
        scene.member("high", 1000, disk="none-has-it"),
        scene.single("other", 500),
        more(1),
        after_s=30,
    )

    assert scene.bound == ["first", "other"]
    assert sorted(scene.go(more(3, "last"), after_s=30)) == ["low-0", "low-1", "low-2"]


@kinds
def test_members_that_were_left_out_are_told_nothing_before_their_turn(kind: str) -> None:
    scene = Tenants(kind, cpus(2))
    scene.group(1)

    scene.go(scene.member("high", 1000), scene.member("low", 0), scene.single("other", 500))

    assert sorted(scene.bound) == ["high", "other"]
    assert scene.refused == ["low"], "once, by its own attempt"


@kinds
def test_members_of_one_priority_are_still_placed_together(kind: str) -> None:
    scene = Tenants(kind, cpus(3))
    scene.group(1)

    scene.go(
        *(scene.member(f"m-{number}", 5) for number in range(3)),
        *(scene.single(f"other-{number}", 5) for number in range(3)),
    )

    assert sorted(scene.bound) == ["m-0", "m-1", "m-2"]
