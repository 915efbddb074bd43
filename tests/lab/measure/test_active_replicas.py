"""The run with several active replicas: its observer finds a spread that was broken meanwhile."""

import pytest

from asched_lab.measure.active_replicas import POOLS, Bound, mixed_pod, pool_node, pool_of, uneven

NODES = [pool_node(index) for index in range(len(POOLS) * 3)]
#: Of one pool, a node in each of three zones.
OF_POOL = {node["metadata"]["labels"]["topology.kubernetes.io/zone"]: node for node in NODES[::4]}
A, B, C = sorted(OF_POOL)


def bound(at_s: float, number: int, zone: str) -> Bound:
    """A pod of the pool that spreads over zones."""
    pod = mixed_pod((16 * number + 1) * len(POOLS))
    assert pod["spec"]["topologySpreadConstraints"][0]["maxSkew"] == 1
    assert pool_of(pod) == POOLS[0]
    node = OF_POOL[zone]["metadata"]["name"]
    return at_s, {**pod, "spec": {**pod["spec"], "nodeName": node}}


@pytest.mark.parametrize(
    ("bindings", "count"),
    [
        ([(0.0, A), (1.0, B), (2.0, C), (3.0, A)], 0),
        ([(0.0, A), (1.0, A), (2.0, B), (3.0, C)], 0),
        ([(0.0, A), (1.0, A), (2.0, B), (90.0, C)], 1),
        ([(0.0, A), (1.0, B), (2.0, A)], 1),
        ([(0.0, A), (0.1, A), (0.2, A), (0.3, B), (0.4, C)], 1),
    ],
    ids=["in turn", "arrived in another order", "evened out much later", "two above", "three"],
)
def test_a_spread_that_no_order_of_decisions_explains_is_found(
    bindings: list[tuple[float, str]], count: int
) -> None:
    made = [bound(at_s, number, zone) for number, (at_s, zone) in enumerate(bindings)]
    assert len(list(uneven(list(OF_POOL.values()), made))) == count


@pytest.mark.parametrize(
    ("end_s", "waited", "count"), [(1.2, 2, 0), (1.2, 1, 1), (9.0, 2, 1), (0.2, 2, 1)]
)
def test_bindings_that_a_process_lost_with_its_end_explain_a_spread(
    end_s: float, waited: int, count: int
) -> None:
    """Two pods on one zone: the process had placed others on the other zones before."""
    made = [bound(0.0, 0, A), bound(1.0, 1, A)]
    later = [bound(60.0 + number, 2 + number, zone) for number, zone in enumerate((B, C)[:waited])]
    seen = [(0.0, one) for _, one in (*made, *later)]
    assert len(list(uneven(list(OF_POOL.values()), made, seen, [end_s]))) == count
