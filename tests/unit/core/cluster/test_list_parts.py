"""A list in parts has the effect of the whole, and a list that was never ended has none."""

import random

import pytest

from asched.core.cluster.audit import recount
from asched.core.cluster.cluster import Cluster
from asched.core.cluster.facts import Gone, Listed, Seen
from asched.core.model.kinds import NODE, POD
from tests.builders import a_node, a_pod


def pods(rng, numbers, before=()):
    """Those that had a node keep it, unless they are other pods of the same name."""
    nodes = {pod.metadata.name: pod.spec.node_name for pod in before}
    made = []
    for i in numbers:
        uid = rng.choice(("", "-new")) if f"p{i}" in nodes else ""
        kept = nodes.get(f"p{i}", "") if not uid else ""
        node = kept or rng.choice(("", "", "n0", "n1", "n2", "n3"))
        pod = a_pod(f"p{i}").labels(app=f"a{i % 3}").requests(cpu="1")
        pod = pod.metadata(
            uid=f"uid-p{i}{uid}",
            creationTimestamp=f"2026-01-01T00:00:{rng.randrange(60):02}Z",
            resourceVersion=str(rng.randrange(10**9)),
        )
        made.append((pod.on(node) if node else pod).build())
    return made


def in_parts(rng, objects):
    cuts = sorted(rng.randrange(len(objects) + 1) for _ in range(3))
    pieces = [tuple(objects[a:b]) for a, b in zip([0, *cuts], [*cuts, len(objects)], strict=True)]
    last = len(pieces) - 1
    return [Listed(POD, one, at, has_more=at < last) for at, one in enumerate(pieces)]


def a_cluster():
    cluster = Cluster()
    for i in range(3):  # the fourth node is never seen
        cluster.apply(Seen(NODE, a_node(f"n{i}").build()))
    return cluster


def news(changes):
    """Who appeared without a node, in order, and who went."""
    waiting = [
        s.new.metadata.name for s in changes if s.new is not None and not s.new.spec.node_name
    ]
    return waiting, sorted(s.old.metadata.name for s in changes if s.new is None)


@pytest.mark.parametrize("seed", range(8))
def test_the_parts_of_a_list_tell_what_the_list_tells(seed):
    rng = random.Random(seed)
    before = pods(rng, range(12))
    now = pods(rng, range(4, 16), before)
    whole, pieces = a_cluster(), a_cluster()
    expected, found = [], []
    for cluster, changes, parts in ((whole, expected, False), (pieces, found, True)):
        cluster.apply(Listed(POD, tuple(before)))
        for fact in in_parts(random.Random(seed), now) if parts else [Listed(POD, tuple(now))]:
            changes.extend(cluster.apply(fact))
    assert news(found) == news(expected)
    assert pieces.pods_seen == whole.pods_seen
    assert pieces.placed.keys() == whole.placed.keys()
    for cluster in (whole, pieces):
        assert recount(cluster) == []


@pytest.mark.parametrize("seed", range(8))
def test_a_list_that_begins_anew_makes_up_for_the_one_before(seed):
    """The stream broke: what went meanwhile is gone, also if a part had told of it."""
    rng = random.Random(seed)
    first = pods(rng, range(12))
    second = pods(rng, range(4, 16), first)
    cluster, plain = a_cluster(), a_cluster()
    for fact in in_parts(rng, first)[:2]:
        cluster.apply(fact)
    for fact in in_parts(rng, second):
        cluster.apply(fact)
    plain.apply(Listed(POD, tuple(second)))
    assert cluster.pods_seen == plain.pods_seen
    assert cluster.placed.keys() == plain.placed.keys()
    assert recount(cluster) == []


def test_a_pod_that_was_placed_between_two_parts_does_not_wait():
    waits, placed = a_pod("p").build(), a_pod("p").on("n1").build()
    cluster = a_cluster()
    cluster.apply(Listed(POD, (waits,), 0, has_more=True))
    cluster.apply(Listed(POD, (placed,), 1, has_more=True))
    assert cluster.apply(Listed(POD, (), 2)) == []
    assert cluster.pods_seen["default/p"].spec.node_name == "n1"
    cluster.apply(Gone(POD, placed))
    assert cluster.pods_seen == {}
