"""Counters against a twin that recounts from the pods, through random changes and trials."""

import pytest

from asched.core.model.decode import decode
from asched.core.model.meta import LabelSelector
from asched.core.model.selector import Selector, compile_selector
from asched.core.state import topology
from asched.core.state.counters import CounterKey, PodCounter, PodPredicate, TermKind
from tests.topology_world import (
    HOST,
    RACK,
    ZONE,
    RandomWorld,
    World,
    a_node,
    a_pod,
    affinity,
    selector_of,
    term,
)
from tests.twins import topology as twin

KEYS = (ZONE, HOST, RACK)


def on(text: str) -> Selector:
    compiled = compile_selector(decode(LabelSelector, selector_of(text) or {}))
    assert compiled is not None
    return compiled


def key(
    text: str, *namespaces: str, terminating: bool = True, on_trial: bool = False
) -> CounterKey:
    predicate = PodPredicate(frozenset(namespaces) if namespaces else None, on(text))
    return CounterKey((predicate,), terminating, on_trial)


COUNTED = (
    key("app=web"),
    key("app=web", "default"),
    key("app=web,db", "default", "other", terminating=False),
    key("!tier", "default", terminating=False),
    key("", terminating=True),
    key("", "other", terminating=False),
    key("", "default", terminating=False, on_trial=True),
    CounterKey(
        (PodPredicate(frozenset({"default"}), on("app=web")), PodPredicate(None, on("tier=x"))),
        counts_terminating=True,
    ),
    CounterKey((), counts_terminating=True),
)


def domains_of(world: World, counter: topology.Tally, label: str) -> dict[str, int]:
    counts = counter.domain(label)
    values = world.cluster.nodes.label_column(label).values.values
    return {value: int(n) for value, n in zip(values, counts, strict=True) if n}


def check(world: World) -> None:
    placed = list(world.on_nodes())
    for counted in COUNTED:
        counter = world.cluster.counter(counted)
        assert world.by_node(counter.rows()) == twin.by_row(counted, placed, world.nodes)
        assert counter.total == sum(counter.rows())
        for label in KEYS:
            assert domains_of(world, counter, label) == twin.by_domain(counted, placed, label)
    for term_key, carriers in world.cluster.topology._terms.items():
        found = domains_of(world, carriers, term_key.topology_key)
        assert found == twin.carriers(term_key, placed)


@pytest.mark.parametrize("seed", range(25))
def test_counters_agree_with_a_recount(seed: int) -> None:
    world = RandomWorld(seed)
    for _ in range(40):
        world.step()
        if world.rng.random() < 0.3:
            check(world)
    check(world)


def fingerprint(world: World) -> dict[object, tuple[int, list[int]]]:
    topology_ = world.cluster.topology
    tallies = {**topology_._counters, **{k: t for k, t in topology_._terms.items() if t.total}}
    return {k: (t.version, t.rows().tolist()) for k, t in tallies.items()}


@pytest.mark.parametrize("seed", range(25))
def test_trials_leave_no_trace(seed: int) -> None:
    world = RandomWorld(1000 + seed)
    for _ in range(10):
        world.step()
        if not world.nodes:
            continue
        check(world)
        before = fingerprint(world)
        with world.trial() as (name, removed, added):
            changed = [p for p in (*removed, *added) if p.metadata.namespace == "default"]
            counter = world.cluster.counter(key("", "default", terminating=False, on_trial=True))
            net = sum(p.metadata.namespace == "default" for p in added) - sum(
                p.metadata.namespace == "default" for p in removed
            )
            assert world.by_node(counter.rows())[name] == net
            version = before[counter.key][0]
            assert not changed or counter.version != version
            with world.trial():
                pass
        after = fingerprint(world)
        assert {k: after[k] for k in before} == before
        check(world)


def test_a_trial_takes_what_never_counted() -> None:
    """A terminating pod does not count, but a trial that removes it takes one away all the same."""
    world = World(a_node("n1", "zone=a"), a_pod("p", "app=web", node="n1", terminating=True))
    counter = world.cluster.counter(key("app=web", "default", terminating=False))
    info = next(iter(world.cluster.pods_on(0).values()))

    with world.cluster.supposing().gone([info], 0):
        inside = counter.rows().tolist()

    assert inside == [-1]
    assert counter.rows().tolist() == [0]


def test_a_counter_first_asked_for_in_a_trial_does_not_outlive_it() -> None:
    world = World(a_node("n1"), a_pod("p", "app=web", node="n1", terminating=True))
    info = next(iter(world.cluster.pods_on(0).values()))

    with world.cluster.supposing().gone([info], 0):
        made = world.cluster.counter(key("app=web", terminating=False))

    assert made.is_dropped
    assert world.cluster.counter(key("app=web", terminating=False)).rows().tolist() == [0]


def test_a_failing_trial_is_undone() -> None:
    world = World(a_node("n1"), a_pod("p", "app=web", node="n1"))
    counter = world.cluster.counter(key("app=web"))
    version = counter.version
    info = next(iter(world.cluster.pods_on(0).values()))

    with pytest.raises(ZeroDivisionError), world.cluster.supposing().gone([info], 0):
        _ = 1 // 0

    assert (counter.version, counter.rows().tolist()) == (version, [1])


def test_orphans_count_when_their_node_comes_back() -> None:
    node = a_node("n1", "zone=a")
    world = World(node, a_pod("p", "app=web", node="n1"), a_pod("q", "app=web", node="n2"))
    counter = world.cluster.counter(key("app=web"))
    counts = [counter.total]
    world.lose(node)
    counts.append(counter.total)
    world.see(a_node("n2", "zone=b"))
    counts.append(counter.total)
    world.see(node)
    counts.append(counter.total)

    assert counts == [1, 0, 1, 2]
    check(world)


def test_the_least_used_counters_go_and_say_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topology, "COUNTERS_MIN", 4)
    monkeypatch.setattr(topology, "CELLS_MAX", 0)
    world = World(a_node("n1"), a_pod("p", "app=a1", node="n1"))
    made = [world.cluster.counter(key(f"app=a{n}")) for n in range(4)]
    world.cluster.counter(key("app=a0"))
    world.cluster.counter(key("app=a9"))

    assert [counter.is_dropped for counter in made] == [False, True, True, False]
    world.see(a_pod("q", "app=a1", node="n1"))
    assert world.cluster.counter(key("app=a1")).total == 2
    assert made[1].total == 1  # not kept up to date any more


def test_counters_that_count_nothing_go_unless_asked_for_lately(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(topology, "IDLE_MAX", 8)
    world = World(a_node("n1"), a_pod("p", "app=stays", node="n1"))
    world.cluster.topology._drop_at = 8
    stays = world.cluster.counter(key("app=stays"))
    asked = world.cluster.counter(key("app=asked"))
    for number in range(200):
        world.cluster.counter(key(f"app=a{number}"))
        world.cluster.counter(key("app=asked"))
    assert not stays.is_dropped
    assert not asked.is_dropped
    assert len(world.cluster.topology._counters) <= 2 + 8
    check(world)


def test_terms_that_nobody_carries_are_swept_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topology, "IDLE_MAX", 4)
    world = World(a_node("n1", "zone=a"))
    world.cluster.topology._sweep_at = 4
    stays = a_pod("stays", "", node="n1", affinity=affinity(apart=[term("zone", "app=stays")]))
    world.see(stays)
    classes = []  # as long as somebody waits with the same terms, the class stays
    for number in (*range(20), 0):
        apart = affinity(apart=[term("zone", f"app=a{number}"), term("host", f"app=b{number}")])
        pod = a_pod(f"p{number}", "", node="n1", affinity=apart)
        classes.append(world.info(pod).cls)
        world.see(pod)
        check(world)
        world.lose(pod)

    kept = world.cluster.topology._terms
    assert len(kept) <= 6
    assert any(k.selector == on("app=stays") and t.total == 1 for k, t in kept.items())


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


def test_a_pod_moves_only_the_counters_that_match_it() -> None:
    """The index must find each counter once, whichever requirement it stands under."""
    world = World(a_node("n1"))
    counted = [key(f"app={app}", namespace) for app in "abc" for namespace in ("x", "y")]
    counted += [key("app=a,b", "x", "y"), key("tier", "x"), key("!tier"), key("", "y")]
    counters: list[PodCounter] = [world.cluster.counter(k) for k in counted]
    world.see(a_pod("p", "app=a tier=t", namespace="x", node="n1"))
    world.see(a_pod("q", "app=a", namespace="y", node="n1"))

    assert [c.total for c in counters] == [1, 1, 0, 0, 0, 0, 2, 1, 1, 1]
