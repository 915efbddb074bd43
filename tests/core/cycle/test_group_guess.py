"""Placements that are judged by counting: the same places as by trying each of them."""

import random
from typing import Any

import pytest

from asched.core.cycle import group_placements
from asched.core.cycle.group_guess import guess
from asched.core.model.decode import decode
from asched.core.model.kinds import POD_GROUP
from asched.core.model.workload import PodGroup
from asched.core.state.facts import Seen
from tests.builders import NodeBuilder, a_pod
from tests.core.cycle.playbook import Play
from tests.core.cycle.test_gang_plays import a_member, uid_of
from tests.core.cycle.test_group_placements import ZONE, a_play, in_zone

Told = list[bool | None]


def group_seen(play: Play, name: str, least: int) -> None:
    spec = {
        "schedulingPolicy": {"gang": {"minCount": least}},
        "schedulingConstraints": {"topology": [{"key": ZONE}]},
    }
    metadata = {"namespace": "default", "name": name}
    effects = play.turn(Seen(POD_GROUP, decode(PodGroup, {"metadata": metadata, "spec": spec})))
    while play.machine.next_deadline_s() == 0.0:
        effects = [*effects, *play.turn()]
    play.effects = effects


def some_nodes(draw: random.Random) -> list[NodeBuilder]:
    zones = [*"abcd", None]
    return [
        in_zone(f"n{i}", draw.choice(zones), draw.randrange(1, 5))
        for i in range(draw.randrange(12))
    ]


def a_life(seed: int) -> tuple[dict[str, Any], list[str]]:
    """Where all pods of some gangs went, and what was said of those that did not."""
    draw = random.Random(seed)
    play = a_play(*some_nodes(draw))
    names: list[str] = []
    for number in range(draw.randrange(2, 7)):
        single = a_pod(f"single-{number}").requests(cpu="500m").spec(priority=draw.randrange(3))
        if draw.random() < 0.4:
            play.see(single)
        size, cpu = draw.randrange(1, 5), draw.choice(["500m", "1", "2"])
        priority, port = draw.choice([0, 0, 2]), draw.random() < 0.1
        for i in range(size):
            member = a_member(f"g{number}-{i}", f"g{number}", cpu).spec(priority=priority)
            if port:
                member = member.host_port(8080)
            names.append(f"g{number}-{i}")
            play.see(member)
        group_seen(play, f"g{number}", draw.randrange(1, size + 1))
    return {name: play.node_of(uid_of(name)) for name in names}, play.notes()


def test_counting_comes_to_the_same_as_trying(monkeypatch: pytest.MonkeyPatch) -> None:
    told: Told = []

    def watched(*args: Any, **more: bool) -> Told:
        found = guess(*args, **more)
        told.extend(found)
        return found

    for seed in range(60):
        monkeypatch.setattr(group_placements, "guess", watched)
        counted = a_life(seed)
        monkeypatch.setattr(group_placements, "guess", lambda _c, _g, p, **_: [None] * len(p))
        assert counted == a_life(seed), seed
    assert told.count(True) > 100
    assert told.count(False) > 10


def test_a_guess_that_was_wrong_costs_a_trial_of_all(monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong(_context: Any, _group: Any, placements: Any, *, is_wanted: bool) -> Told:
        return [True if is_wanted else None] * len(placements)

    monkeypatch.setattr(group_placements, "guess", wrong)
    play = a_play(in_zone("a1", "a", 1), in_zone("b1", "b", 2))
    for name in "ab":
        play.see(a_member(name))
    group_seen(play, "crew", 2)
    assert {play.node_of(uid_of(name)) for name in "ab"} == {"b1"}
