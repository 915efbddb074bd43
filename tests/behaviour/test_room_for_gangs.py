"""Freed room ends the backoff of a group that it suffices for, as it does for a single pod."""

from collections.abc import Callable
from typing import Any

import pytest

from asched.core.cluster.facts import Seen
from asched.core.model.kinds import NODE, POD_GROUP
from tests.builders import PodBuilder, a_pod, room
from tests.playbook import (
    Play,
    a_group,
    a_label_member,
    a_member,
    bound,
    gang_play,
    label_gang_play,
    label_group_seen,
)

GANGS = {"GenericWorkload": True, "GangScheduling": True}
WITH_ROOM = {**GANGS, "WorkloadAwarePreemption": True}
IN_PLACEMENTS = {**GANGS, "TopologyAwareWorkloadScheduling": True}
ZONE = "topology.kubernetes.io/zone"
Member = Callable[..., PodBuilder]


def by_label(*nodes: Any) -> tuple[Play, Member]:
    play = label_gang_play(*nodes)
    label_group_seen(play, "crew", 3)
    return play, a_label_member


def by_field(gates: dict[str, bool]) -> Callable[..., tuple[Play, Member]]:
    def made(*nodes: Any) -> tuple[Play, Member]:
        play = gang_play(*nodes, **gates)
        play.turn(Seen(POD_GROUP, a_group()))
        return play, a_member

    return made


APIS = pytest.mark.parametrize(
    "made",
    [by_label, by_field(GANGS), by_field(WITH_ROOM), by_field({**WITH_ROOM, **IN_PLACEMENTS})],
    ids=["label", "field", "whole groups as victims", "in placements"],
)


def full(number: int, node: str = "n1") -> PodBuilder:
    return a_pod(f"full{number}").requests(cpu="1").on(node)


def pass_by(play: Play, seconds: float) -> int:
    """Let time pass; returns how many events the turns had."""
    notes, end_s = 0, play.now_s + seconds
    while True:
        due_s = play.machine.next_deadline_s()
        if due_s is None or due_s > end_s:
            play.turn(after_s=end_s - play.now_s)
            return notes + len(play.notes())
        play.turn(after_s=max(due_s - play.now_s, 0.01))
        notes += len(play.notes())


@APIS
@pytest.mark.parametrize("waited_s", [0.2, 1.1, 2.5, 5.0, 9.5, 33.0])
@pytest.mark.parametrize("apart_s", [0.0, 0.7, 4.0])
def test_a_gang_starts_at_the_moment_at_which_enough_is_free(made, waited_s, apart_s) -> None:
    play, member = made(room("n1", 4))
    for number in range(4):
        play.see(full(number))
    for name in "abc":
        play.see(member(name))
    pass_by(play, waited_s)

    for number in range(2):
        play.lose(full(number))
        assert not bound(play)
        pass_by(play, apart_s)
        assert not bound(play)
    play.lose(full(2))

    assert bound(play) == {"a", "b", "c"}


@APIS
def test_a_node_that_comes_is_room_as_well(made) -> None:
    play, member = made(room("n1", 1))
    for name in "abc":
        play.see(member(name))

    play.turn(Seen(NODE, room("n2", 4).build()))

    assert bound(play) == {"a", "b", "c"}


@APIS
def test_a_gang_that_fits_by_counting_alone_is_not_tried_for_each_pod_that_leaves(made) -> None:
    """Its pods must share a zone, and each zone has room for two of them."""
    zones = [room(zone, 2).labels({ZONE: zone}) for zone in ("x", "y")]
    play, member = made(*zones)
    alike = {"labelSelector": {"matchLabels": {"app": "crew"}}, "topologyKey": ZONE}
    together = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [alike]}}
    for name in "abc":
        play.see(member(name).labels(app="crew").spec(affinity=together))
    notes = 0
    for _ in range(600):
        play.see(a_pod("brief").on("x"))
        play.lose(a_pod("brief").on("x"))
        notes += len(play.notes()) + pass_by(play, 0.1)

    assert not bound(play)
    assert notes / 3 <= 20, "twice a backoff at most; 9 backoffs end in this minute"
