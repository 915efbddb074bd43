"""Whatever is kept beside the objects, the audit names where it is wrong."""

import pytest

from asched.core.model.kinds import NODE, PERSISTENT_VOLUME, POD
from asched.core.state.audit import compare, known, known_as, recount
from asched.core.state.cluster import Cluster
from tests.builders import a_cluster, a_node, a_pod
from tests.core.state.scenes import WEBS
from tests.volume_builders import a_claim, a_csi_node, a_volume, an_attachment, see

TERM = {"labelSelector": {"matchLabels": {"app": "web"}}, "topologyKey": "zone"}


def a_full_cluster() -> Cluster:
    """One pod that takes part in all that is counted."""
    affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [TERM]}}
    volumes = [
        {"name": "v", "persistentVolumeClaim": {"claimName": "c"}},
        {"name": "d", "gcePersistentDisk": {"pdName": "disk"}},
    ]
    node = a_node("n1").labels(zone="z1").taints("a=b:NoSchedule").image("app:1", mib=9)
    pod = a_pod("web").labels(app="web").host_port(80).priority(7)
    pod.spec(affinity=affinity, volumes=volumes)
    nodes = [node.features("Fast"), a_node("n2")]
    cluster = a_cluster(*nodes, pods=[pod.on("n1")])
    bound = (a_volume("pv", csi=("csi", "h")), a_claim("c", volume="pv"))
    see(cluster, *bound, a_csi_node("n1", {"csi": 3}), an_attachment("va", "n1", "csi", "pv"))
    cluster.topology.counter(WEBS).domain("zone")
    assert recount(cluster) == []
    return cluster


def test_objects_are_known_by_kind_and_key_as_they_were_told() -> None:
    cluster = a_full_cluster()
    assert known_as(cluster, POD, "default/web") is cluster.pods_seen["default/web"]
    assert known_as(cluster, NODE, "n1") is known(cluster, NODE)["n1"]
    assert known_as(cluster, NODE, "n9") is None
    assert known_as(cluster, PERSISTENT_VOLUME, "v") is None
    assert set(known(cluster, POD)) == {"default/web"}


@pytest.mark.parametrize(("uid", "version"), [("u", "1"), ("uid-n1", "8")])
def test_an_object_that_is_another_than_the_api_has_is_named(uid: str, version: str) -> None:
    cluster = a_cluster(a_node("n1").metadata(uid="uid-n1", resourceVersion="1"))
    theirs = a_node("n1").metadata(uid=uid, resourceVersion=version).build()
    (found,) = compare(cluster, {NODE: [theirs]})
    assert found == f"nodes n1: known at version 1, the API is at {version}"
