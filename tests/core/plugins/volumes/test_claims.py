"""Claims sorted by what has to be done about them; where bound volumes can be reached from."""

from asched.core.plugins.volumes.claims import (
    PodClaims,
    VolumeAffinity,
    accepts,
    affinity_of,
    sort_claims,
)
from tests.volume_builders import (
    ZONE,
    a_claim,
    a_class,
    a_cluster,
    a_csi_node,
    a_node,
    a_pod,
    a_volume,
)

EBS = "kubernetes.io/aws-ebs"
DRIVER_ZONE = "topology.ebs.csi.aws.com/zone"
DISK = {"awsElasticBlockStore": {"volumeID": "vol-1"}}


def test_bound_claims_leave_their_distinct_affinities_and_delayed_ones_themselves() -> None:
    delayed = a_claim("d", cls="late")
    cluster = a_cluster(
        a_class("late"),
        delayed,
        a_volume("anywhere"),
        a_volume("a1", reach={ZONE: ["a"]}),
        a_volume("a2", reach={ZONE: ["a"]}),
        *(a_claim(f"c-{name}", volume=name) for name in ("anywhere", "a1", "a2", "gone")),
    )
    pod = cluster.classes.info_of(a_pod("p", "c-anywhere", "c-a1", "c-a2", "d", "c-gone"))

    claims = sort_claims(cluster, pod)

    assert isinstance(claims, PodClaims)
    assert claims.delayed == (delayed,)
    assert claims.bound == (
        affinity_of(a_volume("x", reach={ZONE: ["a"]})),
        VolumeAffinity(None, is_missing=True),
    )


def test_an_in_tree_volume_is_read_as_its_driver_does_where_it_has_moved() -> None:
    moved = a_node("moved", **{DRIVER_ZONE: "a"})
    cluster = a_cluster(
        a_node("old", "a"),
        moved,
        a_node("lost", "a"),
        a_csi_node("moved", moved=EBS),
        a_csi_node("lost", moved=EBS),
        a_csi_node("old"),
    )
    affinity = affinity_of(a_volume("pv", reach={ZONE: ["a"]}, **DISK))

    mask = accepts(affinity, cluster.view(), cluster)

    found = {name: bool(mask[row]) for name, row in cluster.nodes.row_of.items()}
    assert found == {"old": True, "moved": True, "lost": False}


def test_an_in_tree_volume_without_zones_needs_no_second_reading() -> None:
    assert affinity_of(a_volume("pv", **DISK)).is_anywhere
    zonal = affinity_of(a_volume("pv", labels={ZONE: "a"}, **DISK))
    assert (zonal.required, zonal.plugin) == (None, EBS)
    assert not zonal.is_anywhere  # on nodes where the plugin has moved
