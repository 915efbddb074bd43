"""Devices that stand for an extended resource, as the scorers count them."""

import msgspec

from asched.core.cluster.cluster import Cluster
from asched.core.cluster.facts import Gone, Seen
from asched.core.config import args as config
from asched.core.dra.ledger import DeviceLedger
from asched.core.model.claim import ResourceClaim, ResourceSlice
from asched.core.model.decode import decode
from asched.core.model.kinds import RESOURCE_CLAIM, RESOURCE_SLICE
from asched.core.plugins.devices.amounts import Delegation, DeviceTally
from asched.core.plugins.resources.fit import NodeResourcesFit
from tests.builders import Json, a_cluster, a_node, a_pod, all_rows, pending

GPU = "example.com/gpu"


def a_class(expression: str = "device.driver == 'gpu.example.com'") -> Json:
    selectors = [{"cel": {"expression": expression}}]
    return {
        "metadata": {"name": "gpus"},
        "spec": {"extendedResourceName": GPU, "selectors": selectors},
    }


def a_slice(name: str, count: int, *, driver: str = "gpu.example.com", **place: object) -> Json:
    pool = {"name": name, "generation": 1, "resourceSliceCount": 1}
    devices = [{"name": f"d{number}"} for number in range(count)]
    spec = {"driver": driver, "pool": pool, "devices": devices, **place}
    return {"metadata": {"name": name}, "spec": spec}


def a_claim(pool: str, device: str, **more: object) -> Json:
    result = {"driver": "gpu.example.com", "pool": pool, "device": device, **more}
    return {
        "metadata": {"name": f"{pool}-{device}", "namespace": "default", "uid": f"{pool}-{device}"},
        "status": {"allocation": {"devices": {"results": [result]}}},
    }


def counted(cluster: Cluster, name: str = GPU) -> tuple[list[int], list[int]]:
    offered, taken = DeviceTally(cluster, Delegation(cluster))(name, all_rows(cluster))
    return offered.tolist(), taken.tolist()


def three_nodes(
    slices: list[Json], claims: list[Json] | None = None, cls: Json | None = None
) -> Cluster:
    nodes = [a_node(f"n{i}").labels(zone="a" if i else "b") for i in range(3)]
    return a_cluster(
        *nodes,
        deviceclasses=[cls or a_class()],
        resourceslices=slices,
        resourceclaims=claims or [],
    )


def test_devices_of_all_nodes_count_on_each_and_those_of_a_selector_where_it_holds() -> None:
    zone_a = {"nodeSelectorTerms": [{"matchExpressions": [
        {"key": "zone", "operator": "In", "values": ["a"]}
    ]}]}  # fmt: skip
    slices = [a_slice("all", 1, allNodes=True), a_slice("zone", 2, nodeSelector=zone_a)]

    assert counted(three_nodes(slices, [a_claim("zone", "d1")])) == ([1, 3, 3], [0, 1, 1])


def test_admin_access_takes_nothing() -> None:
    slices = [a_slice("p0", 2, nodeName="n0")]

    assert counted(three_nodes(slices, [a_claim("p0", "d0", adminAccess=True)]))[1] == [0, 0, 0]


def test_the_count_follows_claims() -> None:
    cluster = three_nodes([a_slice("p0", 2, nodeName="n0")])
    tally = DeviceTally(cluster, Delegation(cluster))
    before = tally.stamp([GPU])
    claim = decode(ResourceClaim, a_claim("p0", "d0"))

    cluster.apply(Seen(RESOURCE_CLAIM, claim))
    assert tally(GPU, all_rows(cluster))[1].tolist() == [1, 0, 0]
    assert tally.stamp([GPU]) != before

    cluster.apply(Gone(RESOURCE_CLAIM, claim))
    assert tally(GPU, all_rows(cluster))[1].tolist() == [0, 0, 0]
    assert tally.stamp(["cpu"]) == 0


def test_fit_scores_devices_where_no_plugin_offers_the_resource() -> None:
    nodes = [a_node("devices"), a_node("plugin").allocatable({GPU: "2"}), a_node("neither")]
    cluster = a_cluster(
        *nodes,
        deviceclasses=[a_class()],
        resourceslices=[a_slice("p0", 4, nodeName="devices")],
        resourceclaims=[a_claim("p0", "d3")],
    )
    strategy = config.ScoringStrategy("MostAllocated", (config.ResourceSpec(GPU, 1),))
    plugin = NodeResourcesFit(config.NodeResourcesFitArgs(scoring_strategy=strategy), cluster)
    pod = pending(cluster, a_pod().requests({GPU: "1"}))

    assert plugin.score(pod, all_rows(cluster), None).tolist() == [50, 50, 0]


def test_a_device_is_taken_once_whoever_holds_it_and_until_nobody_does() -> None:
    cluster = three_nodes([a_slice("p0", 2, nodeName="n0"), a_slice("all", 1, allNodes=True)])
    tally = DeviceTally(cluster, Delegation(cluster))

    def taken(*facts: Seen | Gone) -> list[int]:
        for fact in facts:
            cluster.apply(fact)
        found = tally(GPU, all_rows(cluster))[1].tolist()
        assert found == counted(cluster)[1], "as counted anew"
        return found

    first, second = (decode(ResourceClaim, a_claim("p0", "d0")) for _ in range(2))
    second = msgspec.structs.replace(
        second, metadata=msgspec.structs.replace(second.metadata, name="again", uid="again")
    )
    moved = decode(
        ResourceClaim, {**a_claim("all", "d0"), "metadata": a_claim("p0", "d0")["metadata"]}
    )
    assert taken(Seen(RESOURCE_CLAIM, first)) == [1, 0, 0]
    assert taken(Seen(RESOURCE_CLAIM, second)) == [1, 0, 0], "the same device"
    assert taken(Seen(RESOURCE_CLAIM, moved)) == [2, 1, 1]
    assert taken(Gone(RESOURCE_CLAIM, second)) == [1, 1, 1]
    more = decode(ResourceSlice, a_slice("p1", 1, nodeName="n1"))
    held = decode(ResourceClaim, a_claim("p1", "d0"))
    assert taken(Seen(RESOURCE_CLAIM, held)) == [1, 1, 1], "nobody offers it yet"
    assert taken(Seen(RESOURCE_SLICE, more)) == [1, 2, 1]
    free = decode(ResourceClaim, {"metadata": a_claim("p1", "d0")["metadata"]})
    assert taken(Seen(RESOURCE_CLAIM, free)) == [1, 1, 1]
    assert taken(Gone(RESOURCE_CLAIM, moved)) == [0, 0, 0]


def test_what_is_in_flight_is_taken_until_it_is_given_back_or_the_claim_says_so() -> None:
    """As in `GatherAllocatedState`: pods that come in a burst see each other's devices."""
    cluster = three_nodes([a_slice("p0", 2, nodeName="n0")])
    tally, ledger = DeviceTally(cluster, Delegation(cluster)), cluster.singleton(DeviceLedger)
    claim = decode(ResourceClaim, a_claim("p0", "d1"))
    assert claim.status.allocation is not None
    seen = [tally.stamp([GPU])]

    def taken() -> list[int]:
        seen.append(tally.stamp([GPU]))
        assert seen[-1] != seen[-2]
        return tally(GPU, all_rows(cluster))[1].tolist()

    ledger.reserve(claim.uid, claim.status.allocation)
    assert taken() == [1, 0, 0]
    ledger.release(claim.uid)
    assert taken() == [0, 0, 0]
    ledger.reserve(claim.uid, claim.status.allocation)
    assert taken() == [1, 0, 0]
    cluster.apply(Seen(RESOURCE_CLAIM, claim))
    ledger.release(claim.uid, claim.metadata.key)
    assert tally(GPU, all_rows(cluster))[1].tolist() == [1, 0, 0]
    cluster.apply(Gone(RESOURCE_CLAIM, claim))
    assert taken() == [0, 0, 0]
