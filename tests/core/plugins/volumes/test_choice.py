"""The order in which claims decide what is told of a node."""

import msgspec
import pytest

from asched.core.model.volume import PersistentVolumeClaim
from asched.core.plugins.volumes.choice import Reject, choose
from asched.core.plugins.volumes.claims import PodClaims, VolumeAffinity, affinity_of
from asched.core.plugins.volumes.reservation import reserve
from tests.volume_builders import (
    ZONE,
    a_claim,
    a_class,
    a_cluster,
    a_driver,
    a_node,
    a_volume,
    see,
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


def test_a_claim_need_not_have_annotations() -> None:
    metadata = msgspec.structs.replace(MADE.metadata, annotations=None)
    bare = msgspec.structs.replace(MADE, metadata=metadata)

    assert choose(CLUSTER, PodClaims(delayed=(bare,)), CLUSTER.view()).codes.tolist() == [0, 0]


def test_volumes_are_made_for_claims_on_rows_that_are_left_and_find_none() -> None:
    cluster = a_cluster(
        a_node("n1", "a"), a_node("n2", "b"), a_class("none"), a_class("made", "other"),
        a_volume("pv", cls="made", reach={ZONE: ["a"]}),
    )  # fmt: skip

    def made(*claims: PersistentVolumeClaim) -> list[tuple[str, list[bool]]]:
        makings = choose(cluster, PodClaims(delayed=claims), cluster.view()).makings
        return [(making.claim.metadata.name, making.needed.tolist()) for making in makings]

    assert made(MADE) == [("made", [False, True])]
    see(cluster, a_volume("pv-b", cls="made", reach={ZONE: ["b"]}))
    assert made(MADE) == []
    assert made(a_claim("x", cls="made", selected="n2"), NONE) == [
        ("x", [False, True]), ("none", [False, True])
    ]  # fmt: skip
    assert made(NONE, a_claim("x", cls="made", size="9Gi")) == [("none", [True, True])]


def test_a_claim_for_which_another_pod_chose_a_volume_has_none_made_elsewhere() -> None:
    """Nor does it take the volume of the other: it is written only once."""
    shared, more = a_claim("shared", cls="made"), a_claim("more", cls="none", size="2Gi")
    cluster = a_cluster(
        a_node("n1", "a"), a_node("n2", "b"), a_class("made", "other"), a_class("none"),
        a_volume("pv", cls="made", reach={ZONE: ["b"]}), shared, more,
    )  # fmt: skip
    alone = PodClaims(delayed=(shared,))
    assert choose(cluster, alone, cluster.view()).codes.tolist() == [0, 0]

    reserve(cluster, choose(cluster, alone, view_of(cluster, "n2")), "n2")

    found = choose(cluster, PodClaims(delayed=(shared, more)), cluster.view())
    assert found.codes.tolist() == [Reject.UNBINDABLE, Reject.UNBINDABLE]
    assert [making.claim.metadata.name for making in found.makings] == ["more"]
    see(cluster, a_volume("pv-b", cls="none", size="2Gi"))
    found = choose(cluster, PodClaims(delayed=(shared, more)), cluster.view())
    assert found.codes.tolist() == [Reject.UNBINDABLE, 0]


def test_where_the_only_volume_is_another_claims_one_can_be_made() -> None:
    claim = a_claim("c", cls="made")
    cluster = a_cluster(a_node("n1"), a_class("made", "other"), a_volume("pv", cls="made"))
    claims = PodClaims(delayed=(claim,))
    assert choose(cluster, claims, cluster.view()).makings == ()

    for version in ("2", "3"):  # bound, and changed once more
        taken = a_volume("pv", cls="made", claim=("other", "uid-other"), version=version)
        see(cluster, taken)
        found = choose(cluster, claims, cluster.view())
        assert found.codes.tolist() == [0]
        assert [making.claim for making in found.makings] == [claim]
