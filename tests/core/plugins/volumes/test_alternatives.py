"""Other volumes than the smallest: all that leave others something else, and none twice."""

import msgspec
import pytest

from asched.core.model.volume import PersistentVolume, PersistentVolumeClaim
from asched.core.plugins.volumes.alternatives import TRY_STEPS, alternatives
from asched.core.plugins.volumes.choice import choose
from asched.core.plugins.volumes.claims import PodClaims
from asched.core.state.cluster import Cluster
from tests.volume_builders import (
    ZONE,
    a_capacity,
    a_claim,
    a_class,
    a_cluster,
    a_driver,
    a_node,
    a_volume,
    see,
    view_of,
)


def local(*volumes: PersistentVolume, provisioner: str = "none") -> Cluster:
    cls = a_class("late") if provisioner == "none" else a_class("late", provisioner)
    return a_cluster(a_node("n1", "a"), a_node("n2", "b"), cls, *volumes)


def pv(name: str, size: str = "1Gi", zone: str = "a") -> PersistentVolume:
    return a_volume(name, cls="late", size=size, reach={ZONE: [zone]})


def found(
    cluster: Cluster, *claims: PersistentVolumeClaim, most: int = 10
) -> tuple[list[list[str]], bool]:
    """By choice, what each claim gets on n1, the smallest first; "" for one that is to be made."""
    view = view_of(cluster, "n1")
    first = choose(cluster, PodClaims(delayed=claims), view)
    choices, are_all = alternatives(cluster, first, view, most)
    named = []
    for choice in choices:
        volumes = [match.volume_at(0) for match in choice.matches]
        named.append([volume.metadata.name if volume else "" for volume in volumes])
        making = [one.claim.metadata.name for one in choice.makings]
        assert all(one.needed.tolist() == [True] for one in choice.makings)
        assert all(one.provision.possible.all() for one in choice.makings)
        missing = [m.claim.metadata.name for m in choice.matches if m.volume_at(0) is None]
        assert making == missing
    return named, are_all


SELECTED = a_claim("selected", cls="late", selected="n1")
ONE, TWO = a_claim("one", cls="late"), a_claim("two", cls="late", size="2Gi")


def test_the_smallest_comes_first_and_every_other_after_it() -> None:
    cluster = local(pv("big", "3Gi"), pv("small"), pv("middle", "2Gi"), pv("away", zone="b"))
    assert found(cluster, ONE) == ([["small"], ["middle"], ["big"]], True)
    assert found(cluster, TWO, ONE) == (
        [["small", "middle"], ["small", "big"], ["middle", "big"], ["big", "middle"]],
        True,
    )


def test_volumes_that_are_alike_are_not_told_apart() -> None:
    assert found(local(*(pv(f"v{n}") for n in range(5))), ONE) == ([["v0"]], True)
    labelled = a_volume("x", cls="late", reach={ZONE: ["a"]}, labels={"tier": "fast"})
    assert found(local(pv("v0"), pv("v1"), labelled), ONE) == ([["v0"], ["x"]], True)
    disks = [
        a_volume(name, cls="late", csi=(driver, name))
        for name, driver in (("a", "one"), ("b", "one"), ("c", "other"))
    ]
    assert found(local(*disks), ONE) == ([["a"], ["c"]], True)


def test_what_no_volume_is_left_for_is_made() -> None:
    cluster = local(pv("only", "2Gi"), pv("small"), provisioner="csi")
    assert found(cluster, ONE, TWO) == ([["small", "only"], ["only", ""]], True)
    assert found(local(pv("only", "2Gi"), pv("small")), ONE, TWO) == ([["small", "only"]], True)


def test_what_cannot_be_made_where_no_volume_is_left_is_no_choice() -> None:
    volumes = pv("only", "2Gi"), pv("small")
    elsewhere = a_class("late", "csi", topologies=[{ZONE: ["b"]}])
    for obstacle in (elsewhere, a_driver("csi", capacity=True)):
        cluster = local(*volumes, provisioner="csi")
        see(cluster, obstacle)
        assert found(cluster, ONE, TWO) == ([["small", "only"]], True)
    see(cluster, a_capacity("k", "late", "2Gi", {}))
    assert found(cluster, ONE, TWO) == ([["small", "only"], ["only", ""]], True)


def test_claims_whose_node_was_selected_have_volumes_made_in_every_choice() -> None:
    cluster = local(pv("big", "3Gi"), pv("small"), provisioner="csi")
    first = choose(cluster, PodClaims(delayed=(SELECTED, ONE)), view_of(cluster, "n1"))

    choices, _ = alternatives(cluster, first, view_of(cluster, "n1"), 10)

    assert [len(choice.matches) for choice in choices] == [1, 1]
    for choice in choices:
        assert [making.claim for making in choice.makings] == [SELECTED]


@pytest.mark.parametrize("zone", ["a", "b"])
def test_a_claim_for_which_a_volume_was_made_takes_no_other(zone: str) -> None:
    """Where it cannot be reached, one is made."""
    own = a_volume("own", cls="late", reach={ZONE: [zone]}, claim=("one", "uid-one"))
    cluster = local(own, pv("big", "3Gi"), pv("small", "2Gi"), provisioner="csi")

    one = "own" if zone == "a" else ""
    assert found(cluster, ONE, TWO) == ([[one, "small"], [one, "big"]], True)


def test_without_any_volume_all_are_made() -> None:
    assert found(local(provisioner="csi"), ONE, TWO) == ([["", ""]], True)


def test_modes_tell_volumes_apart_and_those_that_are_not_told_do_not() -> None:
    volumes = [
        a_volume(f"v{n}", cls="late", modes=modes)
        for n, modes in enumerate((["ReadWriteOnce"], ["ReadWriteOnce", "ReadOnlyMany"]))
    ]
    assert found(local(*volumes), ONE) == ([["v0"], ["v1"]], True)
    claim = a_claim("any", cls="late", modes=())
    bare = [
        msgspec.structs.replace(v, spec=msgspec.structs.replace(v.spec, access_modes=None))
        for v in volumes
    ]
    assert found(local(*bare), claim) == ([["v0"]], True)


def test_what_was_looked_at_is_noted_in_the_budget() -> None:
    cluster = local(*(pv(f"v{n}", f"{n + 1}Gi") for n in range(5)))
    found(cluster, ONE)
    assert cluster.budget.spent == TRY_STEPS * 5
    found(cluster, ONE, TWO, most=100)  # beside each of five four for the second
    assert cluster.budget.spent == TRY_STEPS * (5 + 5 + 5 * 4)
