"""Counters against a twin that recounts from the pods, through random changes and trials."""

import pytest

from asched.core.cluster import topology
from asched.core.cluster.audit import recount
from asched.core.cluster.counters import CounterKey, PodCounter, PodPredicate
from tests.conformance.twins import topology as twin
from tests.topology_builders import HOST, RACK, ZONE, RandomWorld, World, a_node, a_pod
from tests.unit.core.cluster.topology_keys import key, on

KEYS = (ZONE, HOST, RACK)


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


@pytest.mark.parametrize("seed", range(10))
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


@pytest.mark.parametrize("seed", range(10))
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


def test_a_pod_moves_only_the_counters_that_match_it() -> None:
    """The index must find each counter once, whichever requirement it stands under."""
    world = World(a_node("n1"))
    counted = [key(f"app={app}", namespace) for app in "abc" for namespace in ("x", "y")]
    counted += [key("app=a,b", "x", "y"), key("tier", "x"), key("!tier"), key("", "y")]
    counters: list[PodCounter] = [world.cluster.counter(k) for k in counted]
    world.see(a_pod("p", "app=a tier=t", namespace="x", node="n1"))
    world.see(a_pod("q", "app=a", namespace="y", node="n1"))

    assert [c.total for c in counters] == [1, 1, 0, 0, 0, 0, 2, 1, 1, 1]
