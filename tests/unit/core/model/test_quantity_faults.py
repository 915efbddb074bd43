"""Objects with amounts that are no quantities: nobody but the object itself suffers."""

import msgspec
import pytest

from asched.core.model.kinds import (
    CSI_STORAGE_CAPACITY,
    NODE,
    PERSISTENT_VOLUME,
    RESOURCE_SLICE,
)
from asched.core.model.requests import is_scaled_down
from tests.builders import a_node, a_pod
from tests.playbook import Play

BROKEN = [
    (NODE, b'{"status": {"allocatable": {"cpu": "4", "memory": "lots"}}}'),
    (PERSISTENT_VOLUME, b'{"spec": {"capacity": {"storage": "1..5Gi"}}}'),
    (CSI_STORAGE_CAPACITY, b'{"capacity": "1Gi", "maximumVolumeSize": "--1"}'),
    (RESOURCE_SLICE, b'{"spec": {"devices": [{"capacity": {"memory": {"value": "x"}}}]}}'),
    (RESOURCE_SLICE, b'{"spec": {"sharedCounters": [{"counters": {"c": {"value": "x"}}}]}}'),
]


@pytest.mark.parametrize(("kind", "written"), BROKEN)
def test_an_object_with_a_broken_amount_is_malformed(kind, written) -> None:
    with pytest.raises(msgspec.ValidationError, match="is not a number with an optional suffix"):
        msgspec.json.decode(written, type=kind.record)


def test_a_placed_pod_whose_amounts_cannot_be_read_counts_as_a_pod() -> None:
    """1. Somebody placed a pod that asks for nonsense. 2. Others are scheduled beside it."""
    play = Play(a_node("n1").offering_only(cpu="1", pods="2"))
    play.see(a_pod("odd").requests(cpu="lots").on("n1"))
    play.see(a_pod("web").requests(cpu="1"))

    assert play.node_of("uid-web") == "n1"
    assert play.parts.cluster.nodes.columns.read("pod_count")[0] == 2


def test_a_waiting_pod_whose_amounts_cannot_be_read_is_told() -> None:
    play = Play(a_node("n1"))
    play.see(a_pod("odd").requests(cpu="lots"))

    (note,) = play.notes()
    assert "'lots' is not a number" in note


def test_an_update_from_or_to_nonsense_may_have_freed_something() -> None:
    good, bad = a_pod("odd").requests(cpu="1").build(), a_pod("odd").requests(cpu="x").build()

    assert is_scaled_down(good, bad)
    assert is_scaled_down(bad, good)
