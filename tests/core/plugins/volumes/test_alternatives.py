"""Other volumes than the smallest: all that leave others something else, and none twice."""

import pytest

from asched.core.model.volume import PersistentVolume, PersistentVolumeClaim
from asched.core.plugins.volumes import alternatives as room
from asched.core.plugins.volumes.alternatives import alternatives
from asched.core.plugins.volumes.choice import choose
from asched.core.plugins.volumes.claims import PodClaims
from asched.core.state.cluster import Cluster
from tests.volume_builders import ZONE, a_claim, a_class, a_cluster, a_node, a_volume, view_of


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
        making = [one.claim.metadata.name for one in choice.makings if one.needed[0]]
        missing = [m.claim.metadata.name for m in choice.matches if m.volume_at(0) is None]
        assert making == missing
    return named, are_all


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


def test_it_ends_after_as_many_as_are_wanted_and_after_so_much_work(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cluster = local(*(pv(f"v{n}", f"{n + 1}Gi") for n in range(5)))
    assert found(cluster, ONE, most=2) == ([["v0"], ["v1"]], False)
    monkeypatch.setattr(room, "VOLUMES_MAX", 2)
    assert not found(cluster, ONE)[1]
