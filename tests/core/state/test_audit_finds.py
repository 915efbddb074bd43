"""Whatever is kept beside the objects, the audit names where it is wrong."""

from collections.abc import Callable
from typing import Any

import pytest

from asched.core.model.kinds import NODE, PERSISTENT_VOLUME, POD
from asched.core.state.audit import compare, known, known_as, recount
from asched.core.state.cluster import Cluster
from tests.builders import a_cluster, a_node, a_pod
from tests.core.state.test_cluster_told import WEBS
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


def first(mapping: Any) -> Any:
    return next(iter(mapping.values()))


def misfile(cluster: Cluster) -> None:
    first(cluster.placed).row = 1


def recount_one(cluster: Cluster) -> None:
    population = cluster.topology._populations.of(next(iter(cluster.topology._populations)))
    assert population is not None
    population.staying[1] = 1


@pytest.mark.parametrize(
    ("spoil", "found"),
    [
        (lambda c: c.nodes.row_of.pop("n2"), "nodes: kept [] too much, lack ['n2']"),
        (lambda c: c.priorities.update({7: 1}), "priorities, 7: kept 2, counted 1"),
        (lambda c: c.nodes.images["app:1"].rows.add(1), "images, app:1: kept ['n2'] too much"),
        (lambda c: c.occupancy.ports.clear(), "host ports, ('TCP', 80): kept None, counted"),
        (lambda c: c.occupancy.claims.clear(), "claims in use, default/c: kept None, counted"),
        (lambda c: c.volumes.disks.clear(), "volumes, disks"),
        (lambda c: c.topology._counters[WEBS].move(1, 2), "rows, n2: kept 2, counted None"),
        (lambda c: c.topology._counters[WEBS].rows().fill(3), "dense, n1: kept 3, counted 1"),
        (
            lambda c: c.topology._counters[WEBS]._domains["zone"].fill(5),
            "zone, z1: kept 5, counted 1",
        ),
        (lambda c: first(c.topology._terms).move(1, 4), "rows, n2: kept 4, counted None"),
        (lambda c: c.topology._terms.clear(), "terms that pods carry: kept [] too much, lack"),
        (recount_one, "label sets, default [('app', 'web')], staying, n2: kept 1, counted None"),
        (lambda c: c._orphans.update({"x": {"u": None}}), "pods on unknown nodes, x: kept {'u'}"),
        (misfile, "pod default/web: says row 1, node 'n1' is row 0"),
        (lambda c: c.nodes.taint_sets._holders.__setitem__(1, 2), "holders of taints, "),
        (lambda c: c.nodes.columns.write["taint_set"].fill(0), "node n1, taints: kept (), counted"),
        (lambda c: c.nodes.columns.write["feature_set"].fill(0), "node n1, features: kept [] too"),
        (lambda c: c._rows[1].update({"u": None}), "node n2, pods: kept ['u'] too much"),
        (
            lambda c: c.nodes.pod_amounts._add("requested", 0, 0, 2**63),
            "node n1, beyond 64 bits: kept [1], counted []",
        ),
        (
            lambda c: c.nodes.label_column("zone").ids.fill(0),
            "node n1, label columns that differ from the node, zone",
        ),
        (
            lambda c: c.nodes.label_column("zone").ids.fill(1),
            "label column zone: a row without a node is not zero",
        ),
        (lambda c: c.nodes.feature_sets._holders.__setitem__(1, 2), "holders of features, "),
        (
            lambda c: c.nodes.label_column("zone").values._holders.__setitem__(1, 2),
            "holders of label zone, z1: kept 2, counted 1",
        ),
        (lambda c: c.nodes.images.clear(), "images, app:1: kept None, counted {'n1'}"),
        (lambda c: c.occupancy.claims.update({"x": {0: 1}}), "claims in use, x: kept {'n1': 1}, "),
        (lambda c: c.volumes._held.clear(), "volumes, held, "),
        (lambda c: c.volumes._attached.clear(), "volumes, attached, "),
        (lambda c: c.volumes._counts["csi"].fill(0), "volumes, counts, csi: kept None, "),
        (
            lambda c: c.volumes._limits["csi"].__setitem__(0, 9),
            "volumes, limits, csi, n1: kept 9, counted 3",
        ),
        (lambda c: c.volumes._installed["csi"].fill(0), "volumes, installed, csi: kept None, "),
        (lambda c: c._rows.append({"u": None}), "row 2: pods without a node: ['u']"),
    ],
)
def test_what_is_wrong_is_named(spoil: Callable[[Cluster], object], found: str) -> None:
    cluster = a_full_cluster()
    spoil(cluster)
    told = recount(cluster)
    assert any(found in line for line in told), told


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
