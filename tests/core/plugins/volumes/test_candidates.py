"""Free volumes in the order in which claims take them."""

from random import Random
from typing import Any

import msgspec
import numpy as np
import pytest

from asched.core.model.decode import decode
from asched.core.model.volume import VolumeNodeAffinity
from asched.core.plugins.volumes.candidates import NONE, VolumeCandidates, needs_of, size_of
from asched.core.plugins.volumes.topology import Reach
from asched.core.state.cluster import Cluster
from asched.core.state.gradual import FEW
from tests.twins.storage import reaches
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


def without(volume: Any, **spec: Any) -> Any:
    return msgspec.structs.replace(volume, spec=msgspec.structs.replace(volume.spec, **spec))


@pytest.mark.parametrize(
    ("claim", "volume", "fits"),
    [
        ({"volumeMode": "Block"}, {"volumeMode": "Block"}, True),
        ({"volumeMode": "Block"}, {}, False),
        ({"volumeAttributesClassName": "gold"}, {"volumeAttributesClassName": "gold"}, True),
        ({"volumeAttributesClassName": "gold"}, {}, False),
        ({"size": None}, {"size": "0"}, True),
        ({"size": "1"}, {"size": "0"}, False),
        ({"size": "1"}, {"size": "1"}, True),
        ({"selector": {"matchLabels": X}}, {"labels": None}, False),
        ({"selector": {"matchLabels": X}}, {"labels": X}, True),
    ],
    ids=str,
)
def test_what_claims_ask_for(claim: dict[str, Any], volume: dict[str, Any], fits: bool) -> None:
    needs, offered = needs_of(a_claim("c", **claim)), a_volume("pv", **volume)

    assert VolumeCandidates(needs, [offered]).count == int(fits)


def test_what_is_not_told_counts_as_nothing() -> None:
    volume, claim = a_volume("pv"), a_claim("c", size="1")

    def count(claim: Any, volume: Any) -> int:
        return VolumeCandidates(needs_of(claim), [volume]).count

    assert count(claim, without(volume, capacity=None)) == 0
    assert count(a_claim("c", size=None), without(volume, capacity=None)) == 1
    assert count(claim, without(volume, access_modes=None)) == 0
    bare = msgspec.structs.replace(
        claim, spec=msgspec.structs.replace(claim.spec, access_modes=None)
    )
    assert count(bare, without(volume, access_modes=None)) == 1


def test_a_volume_that_is_being_deleted_is_none() -> None:
    volume = a_volume("pv")
    metadata = msgspec.structs.replace(volume.metadata, deletion_timestamp="2026-03-01T08:00:00Z")
    going = msgspec.structs.replace(volume, metadata=metadata)
    candidates = VolumeCandidates(needs_of(a_claim("c")), [volume])
    assert VolumeCandidates(needs_of(a_claim("c")), [going]).count == 0

    candidates.update("pv", going)

    assert candidates.count == 0
    assert not candidates.is_stale


class Shelf:
    """Volumes come, change and go, and nodes come; beside it the plain list of what is free."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.cluster = a_cluster(*(self.node(n) for n in range(3)))
        self.needs = needs_of(a_claim("c"))
        self.volumes = {name: self.volume(name) for name in map("pv{}".format, range(8))}
        self.make()

    def make(self) -> None:
        self.candidates = VolumeCandidates(self.needs, self.volumes.values())
        self.listed = {name: v for name, v in self.volumes.items() if self.is_free(v)}

    def node(self, number: int) -> Any:
        disk = {"disk": self.random.choice("xy")} if self.random.random() < 0.5 else {}
        return a_node(f"n{number}", self.random.choice("abc"), **disk)

    def volume(self, name: str) -> Any:
        random = self.random
        hosts = random.sample(["n0", "n1", "n2", "n3", "n4"], 2)
        reaches = (
            None, None, {ZONE: ["a"]}, {ZONE: ["b", "c"]}, {HOST: hosts}, {HOST: ["nowhere"]},
            {ZONE: ["a"], "disk": ["x"]}, {ZONE: ["b"], "disk": ["x"]},
        )  # fmt: skip
        made = a_volume(
            name, size=random.choice(("1Gi", "1Gi", "2Gi", "512Mi")), reach=random.choice(reaches),
            phase="Bound" if random.random() < 0.1 else "Available",
        )  # fmt: skip
        if random.random() < 0.3:  # anything but one label that is in some values
            terms = random.choice(self.terms())
            affinity = {"required": {"nodeSelectorTerms": terms}}
            made = without(made, node_affinity=decode(VolumeNodeAffinity, affinity))
        return made

    @staticmethod
    def terms() -> list[list[Any]]:
        def term(key: str, operator: str, *values: str) -> Any:
            return {"matchExpressions": [{"key": key, "operator": operator, "values": values}]}

        in_a = term(ZONE, "In", "a")
        return [
            [], [term(ZONE, "NotIn", "a")], [term("disk", "Exists")],
            [in_a, term("disk", "In", "y")],
            [term(ZONE, "In", "nowhere")] * FEW + [in_a], [in_a] * (FEW + 1),
        ]  # fmt: skip

    def is_free(self, volume: Any) -> bool:
        gibi = volume.spec.capacity["storage"] != "512Mi"
        return bool(volume.status.phase == "Available" and gibi)

    def change(self) -> None:
        random, name = self.random, self.random.choice([*self.volumes, "pv8", "pv9"])
        if random.random() < 0.2:
            see(self.cluster, self.node(random.randrange(5)))
            return
        volume = self.volumes.pop(name, None)
        if volume is None or random.random() < 0.5:
            volume = None if random.random() < 0.5 else self.volume(name)
        if volume is not None:
            self.volumes[name] = volume
        self.candidates.update(name, volume)
        known, free = self.listed.get(name), volume is not None and self.is_free(volume)
        is_same = known is not None and free and place_of(known) == place_of(volume)
        if is_same:
            self.listed[name] = volume
        else:
            self.listed.pop(name, None)
        self.is_stale = self.is_stale or (free and not is_same)

    is_stale = False

    def check(self) -> None:
        """Row by row, volume by volume."""
        assert self.candidates.count == len(self.listed)
        assert self.candidates.is_stale is self.is_stale
        ordered = sorted(self.listed.values(), key=lambda v: (size_of(v), v.metadata.name))
        view, reach = self.cluster.view(), self.cluster.singleton(Reach)
        ranks = self.candidates.first(view, reach)
        found: dict[str, list[Any]] = {name: [] for name in self.cluster.nodes.row_of}
        while (ranks != NONE).any():
            for name, row in self.cluster.nodes.row_of.items():
                if ranks[row] != NONE:
                    volume = self.candidates.volumes[ranks[row]]
                    assert self.candidates.rank_of(volume.metadata.name) == ranks[row]
                    found[name].append(volume)
            after = np.where(ranks == NONE, len(self.candidates.volumes), ranks)
            ranks = self.candidates.first_after(view, after.astype(np.int32), reach)
        for _, node in self.cluster.nodes.nodes():
            assert found[node.name] == [volume for volume in ordered if reaches(volume, node)]
        if self.is_stale:
            self.make()
            self.is_stale = False


def place_of(volume: Any) -> Any:
    return size_of(volume), volume.spec.node_affinity


@pytest.mark.parametrize("seed", range(25))
def test_each_row_finds_what_it_can_reach_whatever_came_and_went(seed: int) -> None:
    shelf = Shelf(seed)
    shelf.check()
    for _ in range(15):
        for _ in range(shelf.random.choice((1, 1, 2, 3))):
            shelf.change()
        shelf.check()


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
