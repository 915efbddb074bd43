"""The terms of placed pods: which of them speak of a pod, who carries them, and when they go."""

from typing import Any

import pytest

from asched.core.model.pod import Pod
from asched.core.state import topology
from asched.core.state.counters import Spoken, TermKind
from asched.core.state.gradual import FEW
from tests.core.state.test_topology import check, domains_of
from tests.topology_world import ZONE, World, a_node, a_pod, affinity, term


def test_terms_that_nobody_carries_are_swept_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Once there are IDLE_MAX, or twice as many as somebody carries."""
    monkeypatch.setattr(topology, "IDLE_MAX", 4)
    world = World(a_node("n1", "zone=a"))

    def a_carrier(name: str) -> Pod:
        return a_pod(name, node="n1", affinity=affinity(apart=[term("zone", f"app={name}")]))

    world.see(a_carrier("stays"))
    classes = []  # as long as somebody waits with the same terms, the class stays
    most = []
    for number in (*range(20), 0):
        if number in (7, 8, 9):
            world.see(a_carrier(f"stays{number}"))
        pod = a_carrier(f"a{number}")
        classes.append(world.info(pod).cls)
        world.see(pod)
        check(world)
        for app in ("stays", pod.metadata.name):
            assert [spoken.tally.total for spoken in spoken_of(world, f"app={app}")] == [1]
        world.lose(pod)
        most.append(len(world.cluster.topology._terms))

    assert max(most[:7]) == 4
    assert max(most[10:]) == 8


def test_terms_that_speak_of_a_pod() -> None:
    near = affinity(
        near=[term("zone", "app=web", within="team=a")], apart=[term("host", "app=web")]
    )
    world = World(a_node("n1", "zone=a host=n1"), a_pod("p", "", node="n1", affinity=near))
    web = world.info(a_pod("web", "app=web")).cls.label_set
    away = world.info(a_pod("web", "app=web", namespace="other")).cls.label_set
    db = world.info(a_pod("db", "app=db")).cls.label_set
    speaking = world.cluster.topology.terms_speaking_of

    def kinds(*arguments: object) -> set[TermKind]:
        return {spoken.kind for spoken in speaking(*arguments)}  # type: ignore[arg-type]

    assert kinds(web, {}) == {TermKind.REQUIRED_ANTI_AFFINITY}
    assert kinds(web, {"team": "a"}) == {
        TermKind.REQUIRED_ANTI_AFFINITY,
        TermKind.REQUIRED_AFFINITY,
    }
    assert kinds(away, {"team": "a"}) == {TermKind.REQUIRED_AFFINITY}
    assert kinds(db, {"team": "a"}) == set()


def apart_from(count: int, key: str = "zone") -> dict[str, Any]:
    """Anti-affinity to so many apps."""
    return affinity(apart=[term(key, f"app=a{number}") for number in range(count)])


def spoken_of(world: World, labels: str) -> list[Spoken]:
    label_set = world.info(a_pod("asks", labels)).cls.label_set
    return world.cluster.topology.terms_speaking_of(label_set, {})


@pytest.mark.parametrize("count", [FEW, FEW + 1])
def test_what_speaks_of_a_pod_says_how_and_where(count: int) -> None:
    drawn = [(number + 1, term("zone", f"app=a{number}")) for number in range(count)]
    world = World(a_node("n1", "zone=a"))
    world.see(a_pod("p", "", node="n1", affinity=affinity(drawn=drawn)))

    (spoken,) = spoken_of(world, "app=a5")

    assert spoken[1:] == (TermKind.PREFERRED_AFFINITY, ZONE, 6, 1)
    assert domains_of(world, spoken.tally, ZONE) == {"a": 1}
    assert len(world.cluster.topology._terms) == (count if count == FEW else 0)
    world.see(a_node("n1", "zone=b"))
    assert domains_of(world, spoken.tally, ZONE) == {"b": 1}
    assert spoken_of(world, "app=b") == []


def test_whether_a_term_may_speak_of_a_pod_is_known_at_a_glance() -> None:
    world = World(a_node("n1", "zone=a"))
    web = world.info(a_pod("web", "app=a0")).cls.label_set
    other = world.info(a_pod("other", "app=other")).cls.label_set
    many = a_pod("many", node="n1", affinity=apart_from(FEW + 1))
    may_speak_of = world.cluster.topology.may_speak_of
    told = [(may_speak_of(web), may_speak_of(other))]
    world.see(many)
    told.append((may_speak_of(web), may_speak_of(other)))
    world.lose(many)
    told.append((may_speak_of(web), may_speak_of(other)))
    world.see(a_pod("few", node="n1", affinity=apart_from(1)))
    told.append((may_speak_of(web), may_speak_of(other)))

    assert told == [(False, False), (True, True), (False, False), (True, False)]


def test_matches_found_before_are_old_with_each_term_that_is_new_or_dropped_and_with_keys(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(topology, "IDLE_MAX", 2)
    world = World(a_node("n1", "zone=a"))
    few, many = (a_pod(f"p{n}", node="n1", affinity=apart_from(n)) for n in (1, FEW + 1))
    same = a_pod("same", "app=other", node="n1", affinity=apart_from(1))
    swept = a_pod("swept", node="n1", affinity=apart_from(2))
    # Of a class not seen before, but with no new term: those that nobody carries go then.
    sweeps = a_pod("sweeps", "app=third", node="n1", affinity=apart_from(1))
    told = [world.cluster.topology.terms_generation]

    def is_news(*steps: Any) -> bool:
        for step, obj in steps:
            step(obj)
        told.append(world.cluster.topology.terms_generation)
        assert told[-1] >= told[-2]
        return told[-1] > told[-2]

    assert is_news((world.see, few))
    assert not is_news((world.see, same), (world.lose, same)), "somebody carries that term already"
    assert is_news((world.see, many))
    assert is_news((world.see, a_node("n1", "zone=a rack=1")))
    assert is_news((world.see, a_node("n1", "zone=a")))
    assert is_news((world.lose, many))
    assert is_news((world.see, swept), (world.lose, swept))
    assert is_news((world.see, sweeps))
    assert len(world.cluster.topology._terms) == 1


@pytest.mark.parametrize("is_nested", [False, True])
def test_a_trial_neither_drops_many_terms_of_who_is_there_nor_keeps_those_of_a_guest(
    is_nested: bool,
) -> None:
    """They are large, and it takes turns to make them."""
    world = World(a_node("n1", "zone=a"))
    world.see(a_pod("p", node="n1", affinity=apart_from(FEW + 1)))
    info = next(iter(world.cluster.pods_on(0).values()))
    guest = world.info(a_pod("guest", affinity=apart_from(FEW + 2)))
    (before,) = spoken_of(world, "app=a1")
    generation = world.cluster.topology.terms_generation

    with world.cluster.supposing().gone([info], 0) as suppose:
        if is_nested:
            suppose.gone([], 0)
            suppose.back()
    (after,) = spoken_of(world, "app=a1")
    assert (after.tally, after.tally.total) == (before.tally, 1)
    assert world.cluster.topology.terms_generation == generation

    with world.cluster.supposing().there([guest], 0):
        assert len(spoken_of(world, "app=a1")) == 2
    assert [spoken.tally for spoken in spoken_of(world, "app=a1")] == [before.tally]
    assert world.cluster.topology.terms_generation > generation
    world.see(a_pod("guest", node="n1", affinity=apart_from(FEW + 2)))
    assert [spoken.tally.total for spoken in spoken_of(world, "app=a1")] == [1, 1]
