"""Volumes in use, as objects come and go in any order."""

from typing import Any

import pytest

from asched.core.model.decode import decode
from asched.core.model.kinds import PERSISTENT_VOLUME, PERSISTENT_VOLUME_CLAIM, STORAGE_CLASS
from asched.core.model.migration import CsiVolume
from asched.core.model.storage import ClaimUse
from asched.core.model.volume import CsiNode
from asched.core.state.cluster import Cluster
from asched.core.state.columns import ROWS_MIN
from asched.core.state.nodes import Aspect
from asched.core.state.volumes import UNLIMITED
from tests.volume_builders import (
    a_claim,
    a_class,
    a_cluster,
    a_csi_node,
    a_node,
    a_pod,
    a_volume,
    an_attachment,
    lose,
    see,
)

BOUND = (a_volume("pv", csi=("csi", "h")), a_claim("c", volume="pv"))


def count(cluster: Cluster, node: str = "n1", driver: str = "csi") -> int:
    return int(cluster.volumes.counts(driver)[cluster.nodes.row_of[node]])


def test_a_volume_counts_once_however_many_pods_use_it() -> None:
    users = [a_pod(name, "c", node="n1") for name in ("a", "b")]
    cluster = a_cluster(a_node("n1"), *BOUND, *users)

    assert count(cluster) == 1
    assert cluster.volumes.rows_of(CsiVolume("csi", "h")) == {0: 2}
    lose(cluster, users[0])
    assert count(cluster) == 1
    lose(cluster, users[1])
    assert count(cluster) == 0
    assert cluster.volumes.rows_of(CsiVolume("csi", "h")) == {}


def test_a_claim_is_counted_anew_when_it_is_bound_and_the_row_is_logged() -> None:
    cluster = a_cluster(
        a_node("n1"), a_class("late", "other"), a_claim("c", cls="late"), a_pod("a", "c", node="n1")
    )
    assert (count(cluster), count(cluster, driver="other")) == (0, 1)
    cursor = cluster.nodes.log.end

    see(cluster, *BOUND)

    assert (count(cluster), count(cluster, driver="other")) == (1, 0)
    assert (0, Aspect.PODS) in (cluster.nodes.log.since(cursor) or ())


def test_the_order_in_which_objects_appear_does_not_matter() -> None:
    objects: list[Any] = [a_node("n1"), *BOUND, a_pod("a", "c", node="n1"),
                          a_csi_node("n1", {"csi": 3}), an_attachment("va", "n1", "csi", "pv2"),
                          a_volume("pv2", csi=("csi", "h2"))]  # fmt: skip
    for turn in range(len(objects)):
        cluster = a_cluster(*objects[turn:], *objects[:turn])

        limits = cluster.volumes.limits("csi")
        assert count(cluster) == 2
        assert limits is not None
        assert limits[cluster.nodes.row_of["n1"]] == 3


def test_a_node_that_comes_back_has_what_it_had() -> None:
    node = a_node("n1")
    cluster = a_cluster(
        node, *BOUND, a_pod("a", "c", node="n1"), a_csi_node("n1", {"csi": 3}),
        an_attachment("va", "n1", "csi", "pv"),
    )  # fmt: skip
    lose(cluster, node)
    see(cluster, a_node("other"))
    assert count(cluster, "other") == 0
    assert not cluster.volumes.has_csi_node().any()

    see(cluster, node)

    assert count(cluster) == 1
    assert cluster.volumes.has_driver("csi")[cluster.nodes.row_of["n1"]]


def test_assumed_pods_and_trials_count() -> None:
    cluster = a_cluster(a_node("n1"), *BOUND)
    pod = cluster.classes.info_of(a_pod("a", "c"))

    cluster.assume(pod, "n1")
    assert count(cluster) == 1
    with cluster.supposing().gone([pod], 0):
        assert count(cluster) == 0
        assert cluster.volumes.on_trial == {"c": -1}
    assert count(cluster) == 1
    assert not cluster.volumes.on_trial
    cluster.forget(pod)
    assert count(cluster) == 0


def test_what_cannot_be_looked_up_is_not_counted() -> None:
    cluster = a_cluster(
        a_volume("nameless", csi=("csi", "")),
        a_claim("c", volume="nameless"),
        a_claim("d", cls="moved"),
        a_claim("e", cls="file"),
        a_class("moved", "kubernetes.io/aws-ebs"),
        a_class("file", "kubernetes.io/azure-file"),
    )
    found = cluster.volumes.volume_of
    see(cluster, a_volume("path"), a_claim("f", volume="path"))
    see(cluster, a_class("of-nobody", ""), a_claim("g", cls="of-nobody"))

    assert found(ClaimUse("default/c", "c")) is None
    assert found(ClaimUse("default/f", "f")) is None, "no driver attaches it"
    assert found(ClaimUse("default/g", "g")) is None
    assert found(ClaimUse("default/d", "d")) == CsiVolume("ebs.csi.aws.com", "\0default/d")
    assert found(ClaimUse("default/e", "e")) is None
    assert found(ClaimUse("default/gone", "gone")) is None
    assert found(ClaimUse("default/d", "d", "some-pod")) is None


def test_plugins_that_moved_are_known_by_row() -> None:
    cluster = a_cluster(a_node("n1"), a_node("n2"), a_csi_node("n2", moved="kubernetes.io/aws-ebs"))
    moved = cluster.volumes.moved("kubernetes.io/aws-ebs")
    assert moved is not None
    assert moved[:2].tolist() == [False, True]
    assert cluster.volumes.moved("kubernetes.io/gce-pd") is None
    before = cluster.volumes.moved_generation

    see(cluster, a_csi_node("n2"))

    moved = cluster.volumes.moved("kubernetes.io/aws-ebs")
    assert moved is not None
    assert not moved.any()
    assert cluster.volumes.moved_generation != before


def test_nothing_is_remembered_of_objects_that_went() -> None:
    objects: tuple[Any, ...] = (
        *BOUND, a_pod("a", "c", node="n1"), an_attachment("va", "n1", "csi", "pv"),
    )  # fmt: skip
    cluster = a_cluster(a_node("n1"), *objects)
    lose(cluster, *objects)

    index = cluster.volumes
    kept = (index._uses, index._volume_of, index._names_of, index._named_by, index._held)
    assert not any(kept)
    assert not any((index._attached, index._attachments, index._attachments_of))
    assert not any(index._attachments_on.values())


def logged(cluster: Cluster, *steps: Any) -> list[tuple[int, int]]:
    """What the log says of objects that are seen."""
    cursor = cluster.nodes.log.end
    see(cluster, *steps)
    return list(cluster.nodes.log.since(cursor) or ())


def test_a_claim_that_is_made_for_a_pod_counts_if_the_pod_owns_it_and_is_on_no_trial() -> None:
    cluster = a_cluster(
        a_node("n1"), a_volume("pv", csi=("csi", "h")), a_claim("c"),
        a_claim("a-e", volume="pv", owner="a"), a_pod("a", "c", ephemeral=["e"], node="n1"),
    )  # fmt: skip
    (info,) = cluster.pods_on(0).values()

    assert count(cluster) == 1
    with cluster.supposing().gone([info], 0):
        assert cluster.volumes.on_trial == {"c": -1}
        assert count(cluster) == 0


def test_an_inline_disk_counts_as_the_volume_of_the_driver_that_took_over() -> None:
    """Once for all pods there, and whatever attachments and claims say of the same volume."""
    driver, volume = "ebs.csi.aws.com", CsiVolume("ebs.csi.aws.com", "vol-1")
    disk = {"awsElasticBlockStore": {"volumeID": "vol-1"}}
    cluster = a_cluster(a_node("n"), a_node("n0"), a_node("n1"))
    pods = [a_pod(name, disks=[disk], node="n1") for name in ("a", "b")]
    see(cluster, *pods)
    assert (count(cluster, driver=driver), cluster.volumes.rows_of(volume)) == (1, {2: 2})
    see(cluster, a_volume("pv", csi=volume), an_attachment("va", "n1", driver, "pv"))
    assert (count(cluster, driver=driver), cluster.volumes.rows_of(volume)) == (1, {2: 2})
    lose(cluster, *pods)
    assert (count(cluster, driver=driver), cluster.volumes.rows_of(volume)) == (1, {})
    lose(cluster, an_attachment("va", "n1", driver, "pv"))
    assert count(cluster, driver=driver) == 0


def test_disks_are_known_by_row_with_their_users_and_those_that_do_not_share() -> None:
    def of_disk(name: str, *, shares: bool) -> Any:
        disk = {"gcePersistentDisk": {"pdName": "d", "readOnly": shares}}
        return a_pod(name, disks=[disk], node="n1")

    cluster, found = a_cluster(a_node("n0"), a_node("n1")), []
    pods = [of_disk("a", shares=True), of_disk("b", shares=False), of_disk("c", shares=True)]
    for pod in pods:
        see(cluster, pod)
        found.append(cluster.volumes.disks[("gce", "d")][1])
    for pod in pods[:2]:
        lose(cluster, pod)
        found.append(cluster.volumes.disks[("gce", "d")][1])
    lose(cluster, pods[2])

    assert found == [(1, 0), (2, 1), (3, 1), (2, 1), (1, 0)]
    assert not cluster.volumes.disks


def test_objects_that_decide_what_a_claim_counts_as_are_followed_as_soon_as_it_names_them() -> None:
    cluster = a_cluster(a_node("n1"), a_pod("a", "c", node="n1"), a_claim("c", cls="late"))
    is_named = cluster.volumes.is_named
    assert is_named(STORAGE_CLASS, "late")
    assert is_named(PERSISTENT_VOLUME_CLAIM, "default/c")
    assert not is_named(PERSISTENT_VOLUME, "pv")
    assert logged(cluster, a_claim("c", volume="pv")) == [], "it counts as nothing as before"
    assert is_named(PERSISTENT_VOLUME, "pv")
    assert not is_named(STORAGE_CLASS, "late")

    see(cluster, a_volume("pv", csi=("csi", "h")))
    assert count(cluster) == 1
    assert logged(cluster, a_claim("c", volume="pv", version="2")) == []


def test_attachments_are_news_of_their_row_if_a_driver_attaches_what_they_name() -> None:
    cluster = a_cluster(a_node("n0"), a_node("n1"), a_volume("pv", csi=("csi", "h")))
    see(cluster, a_volume("path"))
    moved = (1, int(Aspect.PODS))
    assert logged(cluster, an_attachment("va", "n1", "csi", "pv")) == [moved]
    assert logged(cluster, an_attachment("vb", "n1", "", "pv")) == []
    assert logged(cluster, an_attachment("vc", "n1", "csi", "path")) == []
    assert logged(cluster, an_attachment("vd", "unknown", "csi", "pv")) == []
    assert count(cluster) == 1


def test_a_driver_is_on_the_rows_whose_nodes_have_it_with_the_limits_that_they_tell() -> None:
    cluster = a_cluster(a_node("n0"), a_node("n1"))
    volumes = cluster.volumes

    def told(driver: str = "csi") -> tuple[list[bool], list[bool], list[int] | None]:
        limits = volumes.limits(driver)
        return (
            volumes.has_csi_node().tolist(),
            volumes.has_driver(driver)[:2].tolist(),
            None if limits is None else limits[:2].tolist(),
        )

    assert logged(cluster, a_csi_node("n1", {"csi": 3, "free": None})) == [(1, int(Aspect.PODS))]
    assert told() == ([False, True], [False, True], [UNLIMITED, 3])
    assert told("free") == ([False, True], [False, True], None)
    spec = {"drivers": [{"name": "csi", "nodeID": "n0"}, {"name": "free", "nodeID": "n0"}]}
    see(cluster, decode(CsiNode, {"metadata": {"name": "n0"}, "spec": spec}))
    assert told() == ([True, True], [True, True], [UNLIMITED, 3])
    see(cluster, decode(CsiNode, {"metadata": {"name": "n1"}, "spec": {}}))
    assert told() == ([True, True], [True, False], [UNLIMITED, UNLIMITED])
    assert told("free") == ([True, True], [True, False], None)
    lose(cluster, a_node("n0"))
    assert told() == ([False, True], [False, False], None)


@pytest.mark.parametrize("is_read", [False, True])
def test_rows_that_come_later_have_nothing_and_the_first_keep_what_they_have(
    is_read: bool,
) -> None:
    """Whether the columns grow as they are read, or as they are written."""
    plugin = "kubernetes.io/aws-ebs"
    cluster = a_cluster(
        a_node("n0"), a_node("n1"), *BOUND, a_pod("a", "c", node="n1"),
        *(a_csi_node(name, {"csi": 3}, moved=plugin) for name in ("n0", "n1")),
    )  # fmt: skip
    see(cluster, *(a_node(f"n{number}") for number in range(2, ROWS_MIN + 2)))
    volumes, last = cluster.volumes, ROWS_MIN + 1

    def columns() -> list[Any]:
        found = [volumes.counts("csi"), volumes.limits("csi")]
        return [*found, volumes.moved(plugin), volumes.has_driver("csi")]

    if is_read:
        assert [column[last] for column in columns()] == [0, UNLIMITED, False, False]
    see(cluster, a_csi_node("n0", {}))
    assert [column[[0, 1, last]].tolist() for column in columns()] == [
        [0, 1, 0],
        [UNLIMITED, 3, UNLIMITED],
        [False, True, False],
        [False, True, False],
    ]
    for column in columns():
        with pytest.raises(ValueError):
            column[0] = 1
    see(cluster, a_csi_node(f"n{last}", {"csi": 5}), a_pod("b", "c", node=f"n{last}"))
    assert [column[last] for column in columns()] == [1, 5, False, True]
