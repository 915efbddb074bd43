"""Volumes in use, as objects come and go in any order."""

from typing import Any

from asched.core.cluster.cluster import Cluster
from asched.core.cluster.nodes import Aspect
from asched.core.model.migration import CsiVolume
from asched.core.model.storage import ClaimUse
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


def test_a_claim_is_counted_anew_when_it_is_bound_and_the_row_is_logged() -> None:
    cluster = a_cluster(
        a_node("n1"), a_class("late", "other"), a_claim("c", cls="late"), a_pod("a", "c", node="n1")
    )
    assert (count(cluster), count(cluster, driver="other")) == (0, 1)
    cursor = cluster.nodes.log.end

    see(cluster, *BOUND)

    assert (count(cluster), count(cluster, driver="other")) == (1, 0)
    assert cluster.nodes.log.rows(cursor, int(Aspect.PODS)) == (0,)


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
