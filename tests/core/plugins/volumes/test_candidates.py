"""Free volumes in the order in which claims take them."""

from typing import Any

import numpy as np
import pytest

from asched.core.plugins.volumes.candidates import NONE, VolumeCandidates, needs_of
from asched.core.plugins.volumes.topology import Reach
from asched.core.state.cluster import Cluster
from tests.volume_builders import HOST, ZONE, a_claim, a_cluster, a_node, a_volume, see

CLAIM = a_claim("c", cls="s", size="2Gi", selector={"matchLabels": {"disk": "x"}})
X = {"disk": "x"}


def take(
    candidates: VolumeCandidates, cluster: Cluster, after: int = NONE
) -> dict[str, str | None]:
    """Node to the name of the next volume there."""
    start = np.full(cluster.view().size, after, dtype=np.int32)
    reach = cluster.singleton(Reach)
    ranks = candidates.first_after(cluster.view(), start, reach)
    if after == NONE:
        assert candidates.first(cluster.view(), reach).tolist() == ranks.tolist()
    return {
        name: None if ranks[row] == NONE else candidates.volumes[ranks[row]].metadata.name
        for name, row in cluster.nodes.row_of.items()
    }


@pytest.mark.parametrize(
    ("changes", "fits"),
    [
        ({}, True),
        ({"size": "1Gi"}, False),
        ({"size": "2048Mi"}, True),
        ({"cls": "other"}, False),
        ({"labels": {"disk": "y"}}, False),
        ({"modes": ["ReadOnlyMany"]}, False),
        ({"modes": ["ReadOnlyMany", "ReadWriteOnce"]}, True),
        ({"phase": "Bound"}, False),
        ({"claim": ("other", "")}, False),
        ({"volumeMode": "Block"}, False),
        ({"volumeMode": "Filesystem"}, True),
        ({"volumeAttributesClassName": "gold"}, False),
        ({"volumeAttributesClassName": ""}, True),
    ],
    ids=str,
)
def test_what_may_stand_on_a_shelf(changes: dict[str, Any], fits: bool) -> None:
    volume = a_volume("pv", **{"cls": "s", "size": "2Gi", "labels": X, **changes})

    assert VolumeCandidates(needs_of(CLAIM), [volume]).count == int(fits)


def some_candidates() -> tuple[Cluster, VolumeCandidates]:
    cluster = a_cluster(a_node("n1", "a"), a_node("n2", "b"), a_node("n3", "b", rack="r"))
    claim = a_claim("c", cls="s")
    volumes = [
        a_volume("big", cls="s", size="9Gi"),
        a_volume("on-n1", cls="s", size="1Gi", reach={HOST: ["n1"]}),
        a_volume("in-b", cls="s", size="2Gi", reach={ZONE: ["b"]}),
        a_volume("rack", cls="s", size="1Gi", reach={ZONE: ["b"], "rack": ["r"]}),
    ]
    return cluster, VolumeCandidates(needs_of(claim), volumes)


def test_each_row_takes_the_smallest_it_can_reach() -> None:
    cluster, candidates = some_candidates()

    assert take(candidates, cluster) == {"n1": "on-n1", "n2": "in-b", "n3": "rack"}
    assert take(candidates, cluster, 1) == {"n1": "big", "n2": "in-b", "n3": "in-b"}
    assert take(candidates, cluster, 3) == dict.fromkeys(("n1", "n2", "n3"))


def test_a_volume_that_is_taken_leaves_its_place_empty() -> None:
    cluster, candidates = some_candidates()
    for name in ("on-n1", "rack", "big"):
        candidates.update(name, None)

    assert take(candidates, cluster) == {"n1": None, "n2": "in-b", "n3": "in-b"}
    assert candidates.count == 1
    assert not candidates.is_stale
    assert candidates.rank_of("big") == NONE


def test_a_volume_that_stays_what_it_was_keeps_its_place() -> None:
    _, candidates = some_candidates()
    newer = a_volume("big", cls="s", size="9Gi", version="2")

    candidates.update("big", newer)

    assert candidates.volumes[candidates.rank_of("big")] is newer
    assert not candidates.is_stale


@pytest.mark.parametrize(
    "volume",
    [a_volume("new", cls="s"), a_volume("big", cls="s", size="1Gi")],
    ids=["it comes", "it changes"],
)
def test_a_volume_that_has_no_place_yet_makes_the_shelf_stale(volume: Any) -> None:
    _, candidates = some_candidates()

    candidates.update(volume.metadata.name, volume)

    assert candidates.is_stale


def test_values_of_nodes_that_come_later_are_found() -> None:
    cluster = a_cluster(a_node("n1"))
    candidates = VolumeCandidates(needs_of(a_claim("c")), [a_volume("pv", reach={HOST: ["late"]})])
    assert take(candidates, cluster) == {"n1": None}

    see(cluster, a_node("late"))

    assert take(candidates, cluster) == {"n1": None, "late": "pv"}
