"""The order in which claims decide what is told of a node."""

import pytest

from asched.core.plugins.volumes.choice import Reject, choose
from asched.core.plugins.volumes.claims import PodClaims, VolumeAffinity, affinity_of
from tests.volume_builders import (
    ZONE,
    a_claim,
    a_class,
    a_cluster,
    a_driver,
    a_node,
    a_volume,
    view_of,
)

IN_A = affinity_of(a_volume("a", reach={ZONE: ["a"]}))
GONE = VolumeAffinity(None, is_missing=True)
CLUSTER = a_cluster(
    a_node("n1", "a"),
    a_node("n2", "b"),
    a_class("none"),
    a_class("full", "csi"),
    a_class("made", "other"),
    a_driver("csi", capacity=True),
)
NONE, FULL, MADE = (a_claim(name, cls=name) for name in ("none", "full", "made"))


@pytest.mark.parametrize(
    ("bound", "codes"),
    [
        ((), [0, 0]),
        ((IN_A,), [0, Reject.UNREACHABLE]),
        ((IN_A, GONE), [Reject.NO_VOLUME, Reject.UNREACHABLE]),
        ((GONE, IN_A), [Reject.NO_VOLUME, Reject.NO_VOLUME]),
    ],
)
def test_of_bound_claims_the_first_that_fails_is_told(
    bound: tuple[VolumeAffinity, ...], codes: list[int]
) -> None:
    assert choose(CLUSTER, PodClaims(bound=bound), CLUSTER.view()).codes.tolist() == codes


@pytest.mark.parametrize(
    ("delayed", "codes"),
    [
        ((MADE,), [0, 0]),
        ((NONE, FULL), [Reject.UNBINDABLE, Reject.UNBINDABLE]),
        ((FULL, NONE), [Reject.NO_ROOM, Reject.NO_ROOM]),
        ((a_claim("x", cls="full", selected="n2"), NONE), [Reject.UNBINDABLE, Reject.NO_ROOM]),
        ((NONE, a_claim("x", cls="made", selected="nowhere")), [2, 2]),
    ],
)
def test_of_delayed_claims_the_first_that_fails_is_told(delayed, codes: list[int]) -> None:
    assert choose(CLUSTER, PodClaims(delayed=delayed), CLUSTER.view()).codes.tolist() == codes


def test_a_choice_for_a_few_rows_is_the_same_as_for_all() -> None:
    claims = PodClaims((IN_A,), (FULL,))

    whole = choose(CLUSTER, claims, CLUSTER.view()).codes
    few = choose(CLUSTER, claims, view_of(CLUSTER, "n2", "n1")).codes

    assert few.tolist() == whole[::-1].tolist()
