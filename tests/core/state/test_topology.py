"""Counters against a twin that recounts from the pods, through random changes and trials."""

from typing import Any

import pytest

from asched.core.model.decode import decode
from asched.core.model.meta import LabelSelector
from asched.core.model.selector import Selector, compile_selector
from asched.core.state import topology
from asched.core.state.affinity_terms import AffinityTerm
from asched.core.state.audit import recount
from asched.core.state.budget import OutOfTurn
from asched.core.state.columns import ROWS_MIN
from asched.core.state.counters import (
    CounterKey,
    PodCounter,
    PodPredicate,
    SelectorIndex,
)
from asched.core.state.gradual import FEW
from asched.core.state.many_terms import Counting, ManyTerms
from asched.core.state.topology import Topology
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
    assert recount(world.cluster) == []


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
    pods = [a_pod(f"p{n}", f"app=web own={n}", node="n1", terminating=True) for n in range(2)]
    world = World(a_node("n1"), *pods)
    infos = list(world.cluster.pods_on(0).values())

    with world.cluster.supposing().gone(infos, 0):
        made = world.cluster.counter(key("app=web", terminating=False))
        world.cluster.counter(key("tier", terminating=False))

    left = made.total
    assert made.is_dropped
    world.see(a_pod("q", "app=web own=0", node="n1"))
    anew = world.cluster.counter(key("app=web", terminating=False))
    assert anew.rows().tolist() == [1]
    world.see(a_pod("r", "app=web own=1", node="n1"))
    assert anew.rows().tolist() == [2]
    assert made.total == left, "it moves with nobody any more"


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


@pytest.mark.parametrize(
    ("least", "most", "cells"), [(4, 9, 0), (1, 4, 1 << 20), (1, 9, 4 * ROWS_MIN)]
)
def test_the_least_used_counters_go_and_say_so(
    least: int, most: int, cells: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From four on: so few always stay, or no more do, or that is as many cells as they may have
    for all rows.
    """
    monkeypatch.setattr(topology, "COUNTERS_MIN", least)
    monkeypatch.setattr(topology, "COUNTERS_MAX", most)
    monkeypatch.setattr(topology, "CELLS_MAX", cells)
    world = World(a_node("n1"), *(a_pod(f"p{n}", f"app=a{n}", node="n1") for n in (0, 1)))
    made = [world.cluster.counter(key(f"app=a{n}")) for n in range(4)]
    world.cluster.counter(key("app=a0"))
    first = world.cluster.classes.info_of(world.pods["default/p0"]).cls.label_set
    world.see(a_pod("q", "app=a0", node="n1"))
    assert list(first.counters) == [made[0]]
    world.cluster.counter(key("app=a9"))

    assert [counter.is_dropped for counter in made] == [False, True, True, False]
    assert not first.counters, "who comes rarely would keep what is dropped"
    for name, number in (("q", 1), ("r", 0), ("s", 3)):
        world.see(a_pod(name, f"app=a{number}", node="n1"))
    assert world.cluster.counter(key("app=a1")).total == 2
    assert [made[n].total for n in (0, 1, 3)] == [2, 1, 1], "one is not kept up to date any more"


def test_counters_that_count_nothing_go_unless_asked_for_lately(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of eight or more, the four that were asked for last stay."""
    monkeypatch.setattr(topology, "IDLE_MAX", 8)
    world = World(a_node("n1"))
    asked = world.cluster.counter(key("app=asked"))
    known = []
    for number in range(12):
        world.cluster.counter(key(f"app=a{number}"))
        world.cluster.counter(key("app=asked"))
        known.append(len(world.cluster.topology._counters))
    assert known == [2, 3, 4, 5, 6, 7, 8, 5, 6, 7, 8, 5]
    assert not asked.is_dropped
    pods = [a_pod(f"p{n}", f"app=busy{n}", node="n1") for n in range(20)]
    world.see(*pods)
    busy = [world.cluster.counter(key(f"app=busy{n}")) for n in range(20)]
    world.lose(*pods)
    for number in range(8):
        world.cluster.counter(key(f"app=b{number}"))
    assert [counter.is_dropped for counter in busy] == [True] * 20
    assert len(world.cluster.topology._counters) <= 8
    check(world)


@pytest.mark.parametrize("counts", [False, True])
def test_many_counters_and_terms_in_use_are_not_looked_through_with_each_new_one(
    counts: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(topology, "IDLE_MAX", 8)
    entries, looks = [], []
    add, drop_unused = SelectorIndex.add, Topology._drop_unused
    monkeypatch.setattr(SelectorIndex, "add", lambda *a: (entries.append(a), add(*a))[1])
    monkeypatch.setattr(
        Topology, "_drop_unused", lambda self: (looks.append(self), drop_unused(self))[1]
    )
    world, number = World(a_node("n1")), 64
    for n in range(number):
        apart = affinity(apart=[term("zone", f"app=a{n}")])
        world.see(a_pod(f"p{n}", f"app=a{n}", node="n1", affinity=None if counts else apart))
        if counts:
            world.cluster.counter(key(f"app=a{n}"))

    topology_ = world.cluster.topology
    tallies = topology_._counters.values() if counts else topology_._terms.values()
    assert [tally.total for tally in tallies] == [1] * number
    assert len(entries) <= 3 * number
    assert len(looks) <= number // (topology.IDLE_MAX // 2)


def test_a_pod_moves_only_the_counters_that_match_it() -> None:
    """The index must find each counter once, whichever requirement it stands under."""
    world = World(a_node("n1"))
    counted = [key(f"app={app}", namespace) for app in "abc" for namespace in ("x", "y")]
    counted += [key("app=a,b", "x", "y"), key("tier", "x"), key("!tier"), key("", "y")]
    counters: list[PodCounter] = [world.cluster.counter(k) for k in counted]
    world.see(a_pod("p", "app=a tier=t", namespace="x", node="n1"))
    world.see(a_pod("q", "app=a", namespace="y", node="n1"))

    assert [c.total for c in counters] == [1, 1, 0, 0, 0, 0, 2, 1, 1, 1]


def test_a_counter_that_is_still_filled_keeps_no_other_from_moving() -> None:
    world = World(a_node("n1"), a_pod("p", "app=web", node="n1"))
    world.cluster.budget.open(1)
    world.cluster.budget.charge(1)
    with pytest.raises(OutOfTurn):
        world.cluster.counter(key("app=web"))
    world.cluster.budget.close()
    other = world.cluster.counter(key("app=web", "default"))
    world.see(a_pod("q", "app=web", node="n1"))

    assert other.total == 2
    assert world.cluster.counter(key("app=web")).total == 2


def weighing(world: World, count: int, counting: Counting) -> ManyTerms:
    """So many terms: the first asks for `app=a0` and weighs 1, the next 2, and so on."""
    drawn = [(number + 1, term("zone", f"app=a{number}")) for number in range(count)]
    terms = world.info(a_pod("p", affinity=affinity(drawn=drawn))).cls.terms.preferred_affinity

    def predicate(one: AffinityTerm) -> PodPredicate:
        assert one.selector is not None
        return PodPredicate(one.namespaces, one.selector)

    return ManyTerms(world.cluster.budget, terms, predicate, counting)


@pytest.mark.parametrize(
    ("counting", "totals"), [(Counting.WEIGHTS, [3, 10, 7, 2, 0]), (Counting.ANY, [1, 2, 1, 1, 0])]
)
def test_a_pod_counts_for_what_the_terms_weigh_that_match_its_labels_of_now(
    counting: Counting, totals: list[int]
) -> None:
    """Or for one, if any does."""
    world = World(a_node("n1"), a_pod("p", "app=a2", node="n1"))
    counted = weighing(world, FEW + 1, counting)
    found = [world.cluster.counter(counted).total]
    for name, labels in (("q", "app=a6"), ("p", "app=other"), ("q", "app=a1"), ("q", "")):
        world.see(a_pod(name, labels, node="n1"))
        found.append(world.cluster.counter(counted).total)

    assert found == totals


def test_counts_have_moved_if_a_counter_or_a_term_did_and_only_then() -> None:
    world = World(a_node("n1", "zone=a"), a_pod("p", "app=db", node="n1"))
    world.cluster.counter(key("app=web", terminating=False))

    def has_moved(pod: Any) -> bool:
        before = world.cluster.counts
        world.see(pod)
        return world.cluster.counts > before

    assert not has_moved(a_pod("p", "app=job", node="n1"))
    assert not has_moved(a_pod("q", "app=db", node="n1"))
    assert has_moved(a_pod("p", "app=web", node="n1"))
    assert has_moved(a_pod("p", "app=job", node="n1"))
    assert has_moved(a_pod("r", "app=db", node="n1", affinity=affinity(apart=[term("zone")])))
    gone = a_pod("gone", "app=web", node="n1", terminating=True)
    world.see(gone)
    assert not has_moved(a_pod("gone", "app=web tier=x", node="n1", terminating=True))


def test_what_a_pod_moves_is_looked_up_once_for_all_with_its_labels_and_terms(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looks = []
    candidates, term_keys = SelectorIndex.candidates, topology.term_keys

    def look(index: Any, label_set: Any) -> Any:
        looks.append(label_set)
        return candidates(index, label_set)

    def terms_of(terms: Any) -> Any:
        looks.append(terms)
        return term_keys(terms)

    monkeypatch.setattr(SelectorIndex, "candidates", look)
    monkeypatch.setattr(topology, "term_keys", terms_of)
    world = World(a_node("n1", "zone=a"))
    apart = affinity(apart=[term("zone")])
    pods = [a_pod(f"p{n}", "app=web", node="n1", affinity=apart) for n in range(5)]
    world.see(*pods)
    world.lose(*pods)

    assert len(looks) == 2


@pytest.mark.parametrize(("written", "steps"), [(FEW, 0.0), (FEW + 1, (FEW + 1) / 10)])
def test_a_selector_with_many_requirements_is_paid_for(written: int, steps: float) -> None:
    world = World(a_node("n1"))
    counted = key(" ".join(f"!k{number}" for number in range(written)))
    before = world.cluster.budget.spent

    world.cluster.counter(counted)
    world.cluster.counter(counted)

    assert world.cluster.budget.spent - before == steps


def test_a_new_counter_looks_at_so_many_label_sets_between_two_looks_at_the_budget(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(topology, "FILLED_STEPS", 3)
    world = World(a_node("n1"))
    world.see(*(a_pod(f"p{n}", f"app=web own={n}", node="n1") for n in range(45)))
    before, slices, counter = world.cluster.budget.spent, 0, None
    while counter is None:
        slices += 1
        world.cluster.budget.open(1)
        try:
            counter = world.cluster.counter(key("app=web"))
        except OutOfTurn:
            continue
    world.cluster.budget.close()

    assert (slices, counter.total) == (2, 45), "a step is for ten of them"
    assert world.cluster.budget.spent - before == 4.5
