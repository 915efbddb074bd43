"""What is read of the words of agents."""

from typing import Any

import pytest

from asched.core.model.decode import decode
from asched.hardware.numa.topology import (
    ZONES_MAX,
    NodeResourceTopology,
    TopologyManager,
    Zone,
    manager_of,
    zones_of,
)

Json = dict[str, Any]
GIB = 1 << 30


def told(**fields: Any) -> NodeResourceTopology:
    return decode(NodeResourceTopology, {"metadata": {"name": "n1"}, **fields})


def a_zone(name: str, **fields: Any) -> Json:
    return {"name": name, "type": "Node", **fields}


POLICY, SCOPE = "topologyManagerPolicy", "topologyManagerScope"
MOST = "topologyManagerMaxNUMANodes"


@pytest.mark.parametrize(
    ("attributes", "expected"),
    [
        ({}, ("none", "container", 8)),
        ({POLICY: "single-numa-node", SCOPE: "pod", MOST: "4"}, ("single-numa-node", "pod", 4)),
        ({POLICY: "restricted"}, ("restricted", "container", 8)),
        ({POLICY: "best-effort"}, ("best-effort", "container", 8)),
        # a value makes sense beside its own name alone
        ({POLICY: "pod", SCOPE: "restricted"}, ("none", "container", 8)),
        ({POLICY: "", SCOPE: "node"}, ("none", "container", 8)),
        ({"other": "pod"}, ("none", "container", 8)),
        ({"others": "restricted"}, ("none", "container", 8)),
        ({"numaNodes": "3"}, ("none", "container", 8)),
        ({MOST: "1"}, ("none", "container", 8)),
        ({MOST: "2"}, ("none", "container", 2)),
        ({MOST: "0"}, ("none", "container", 8)),
        ({MOST: "-4"}, ("none", "container", 8)),
        ({MOST: "x"}, ("none", "container", 8)),
        ({MOST: "³"}, ("none", "container", 8)),
        ({MOST: "٣"}, ("none", "container", 8)),
        ({MOST: ""}, ("none", "container", 8)),
        ({MOST: "1024"}, ("none", "container", 1024)),
        ({MOST: "1025"}, ("none", "container", 1024)),
        ({MOST: "9" * 5000}, ("none", "container", 1024)),
    ],
)
def test_what_makes_no_sense_is_passed_over(
    attributes: dict[str, str], expected: tuple[str, str, int]
) -> None:
    listed = [{"name": name, "value": value} for name, value in attributes.items()]
    manager = manager_of(told(attributes=listed))
    assert manager == TopologyManager(*expected)
    assert manager.is_single == (expected[0] == "single-numa-node")


@pytest.mark.parametrize(
    ("policies", "expected"),
    [
        ([], ("none", "container")),
        (["SingleNUMANodePodLevel"], ("single-numa-node", "pod")),
        (["SingleNUMANodeContainerLevel"], ("single-numa-node", "container")),
        (["BestEffortPodLevel"], ("best-effort", "pod")),
        (["BestEffortContainerLevel"], ("best-effort", "container")),
        (["RestrictedPodLevel"], ("restricted", "pod")),
        (["RestrictedContainerLevel"], ("restricted", "container")),
        (["RestrictedPodLevel", "SingleNUMANodeContainerLevel"], ("restricted", "pod")),
        (["x", "SingleNUMANodePodLevel"], ("none", "container")),
    ],
)
def test_the_deprecated_list_counts_where_no_attribute_does(
    policies: list[str], expected: tuple[str, str]
) -> None:
    assert manager_of(told(topologyPolicies=policies)) == TopologyManager(*expected)
    over = [{"name": POLICY, "value": "best-effort"}]
    manager = manager_of(told(topologyPolicies=policies, attributes=over))
    assert manager == TopologyManager("best-effort", expected[1])


def test_zones_are_numa_nodes_by_number() -> None:
    last = f"node-{ZONES_MAX - 1}"
    found = zones_of(
        told(
            zones=[
                a_zone(
                    last,
                    resources=[
                        {"name": "cpu", "available": "1500m"},
                        {"name": "memory", "available": "1Gi"},
                    ],
                    costs=[
                        {"name": "node-0", "value": 21},
                        {"name": last, "value": 10},
                        {"name": "elsewhere", "value": 1},
                    ],
                ),
                a_zone("node-0"),
                a_zone(last),  # of two with one number the first
                a_zone("7"),
                {"name": "node-1", "type": "Socket"},
                a_zone(f"node-{ZONES_MAX}"),
            ]
        )
    )
    assert found == (
        Zone(0, {}, {}),
        Zone(ZONES_MAX - 1, {"cpu": 1500, "memory": GIB}, {0: 21, ZONES_MAX - 1: 10}),
    )
    assert zones_of(told()) == ()


def test_what_is_not_there_is_empty() -> None:
    assert told().attribute("x") == ""
    listed = [{"name": "x", "value": "1"}, {"name": "x", "value": "2"}]
    assert told(attributes=listed).attribute("x") == "1"
    assert told(attributes=listed).attribute("y") == ""


def test_an_amount_that_is_none_is_refused_as_it_is_read() -> None:
    with pytest.raises(ValueError, match="a lot"):
        told(zones=[a_zone("node-0", resources=[{"name": "cpu", "available": "a lot"}])])
