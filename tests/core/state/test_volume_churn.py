"""Drivers, attachments and volumes that come and go leave nothing."""

from asched.core.model.decode import decode
from asched.core.model.kinds import CSI_NODE, NODE, VOLUME_ATTACHMENT, Kind
from asched.core.model.kinds import PERSISTENT_VOLUME as _PV
from asched.core.state.cluster import Cluster
from asched.core.state.facts import Gone, Seen
from tests.builders import Json, a_cluster, a_node
from tests.weigh import growth, weigh


def show(cluster: Cluster, kind: Kind, name: str, **parts: Json) -> object:
    obj = decode(kind.record, {"metadata": {"name": name, "uid": name}, **parts})
    cluster.apply(Seen(kind, obj))
    return obj


def a_round(cluster: Cluster, number: int) -> None:
    """One node with its drivers, a volume attached to it, and all of it gone again."""
    node, driver = f"node-{number}", f"driver-{number}"
    cluster.apply(Seen(NODE, a_node(node).build()))
    csi = show(
        cluster,
        CSI_NODE,
        node,
        spec={"drivers": [{"name": driver, "nodeID": node, "allocatable": {"count": 3}}]},
    )
    volume = show(
        cluster,
        _PV,
        f"pv-{number}",
        spec={"csi": {"driver": driver, "volumeHandle": "h"}, "capacity": {"storage": "1Gi"}},
    )
    attached = show(
        cluster,
        VOLUME_ATTACHMENT,
        f"a-{number}",
        spec={
            "attacher": driver,
            "nodeName": node,
            "source": {"persistentVolumeName": f"pv-{number}"},
        },
    )
    row = cluster.nodes.row_of[node]
    assert cluster.volumes.counts(driver)[row] == 1
    assert cluster.volumes.limits(driver)[row] == 3  # type: ignore[index]
    assert cluster.volumes.has_driver(driver)[row]
    for kind, obj in ((VOLUME_ATTACHMENT, attached), (_PV, volume), (CSI_NODE, csi)):
        cluster.apply(Gone(kind, obj))
    cluster.apply(Gone(NODE, cluster.node_of(node)))
    assert not cluster.volumes.counts(driver).any()
    assert not cluster.volumes.has_driver(driver).any()
    assert cluster.volumes.limits(driver) is None


def test_drivers_that_come_and_go_leave_nothing() -> None:
    cluster = a_cluster(a_node("n0"))
    for number in range(100, 110):
        a_round(cluster, number)
    before = weigh(cluster.volumes._counts, cluster.volumes._installed, *_tables(cluster))
    for number in range(200, 260):
        a_round(cluster, number)
    after = weigh(cluster.volumes._counts, cluster.volumes._installed, *_tables(cluster))
    assert growth(before, after) == {}


def _tables(cluster: Cluster) -> list[object]:
    return [one for name, one in vars(cluster.volumes).items() if name not in ("_nodes", "_lookup")]
