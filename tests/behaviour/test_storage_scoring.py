"""Nodes preferred by the storage they have left (StorageCapacityScoring); facts in, effects out."""

from typing import Any

import pytest

from asched.core.cluster.facts import Seen
from asched.core.framework.effects import Patch, PatchPodStatus
from tests.builders import a_node
from tests.playbook import Play
from tests.volume_builders import KIND_OF, a_capacity, a_claim, a_class, a_driver, a_pod

GATES = {"StorageCapacityScoring": True, "NominatedNodeNameForExpectation": True}
ZONE = "zone"


def node_for(play: Play, *objects: Any) -> str:
    """Where a pod goes whose claim asks for 1 GiB of a class that makes volumes."""
    made = (a_class("fast", "csi"), a_driver("csi", capacity=True), a_claim("c", cls="fast"))
    play.turn(*(Seen(KIND_OF[type(obj)], obj) for obj in (*made, *objects)))
    play.see(a_pod("web", "c", schedulerName="default-scheduler"))
    assert play.of(Patch)  # the claim is given its node
    return next(
        patch.nominated_node_name for patch in play.of(PatchPodStatus) if patch.nominated_node_name
    )


def two_nodes() -> Play:
    return Play(*(a_node(name).labels({ZONE: name}) for name in ("n1", "n2")), gates=GATES)


@pytest.mark.parametrize(("sizes", "node"), [(("4Gi", "2Gi"), "n1"), (("2Gi", "4Gi"), "n2")])
def test_the_node_with_more_storage_left_is_taken(sizes: tuple[str, str], node: str) -> None:
    capacities = [
        a_capacity(name, "fast", size, {ZONE: name})
        for name, size in zip(("n1", "n2"), sizes, strict=True)
    ]
    assert node_for(two_nodes(), *capacities) == node


def test_a_capacity_that_gives_the_largest_volume_alone_counts_as_full() -> None:
    """kube-scheduler 1.36.3 panics on it: what is left is not known."""
    unknown = a_capacity("n1", "fast", None, {ZONE: "n1"}, largest="100Gi")
    known = a_capacity("n2", "fast", "2Gi", {ZONE: "n2"})
    assert node_for(two_nodes(), unknown, known) == "n2"
    play = Play(a_node("n1").labels({ZONE: "n1"}), gates=GATES)
    assert node_for(play, unknown) == "n1"
