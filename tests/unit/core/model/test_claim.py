"""Records of resource.k8s.io: what is read is written again as it was."""

from typing import Any

import msgspec
import pytest

from asched.core.model.claim import (
    RESERVED_FOR_MAX,
    DeviceClass,
    ResourceClaim,
    ResourceSlice,
)
from asched.core.model.decode import decode

CLAIM: dict[str, Any] = {
    "metadata": {"name": "c", "namespace": "d", "uid": "u", "resourceVersion": "1"},
    "spec": {
        "devices": {
            "requests": [
                {
                    "name": "r",
                    "firstAvailable": [
                        {
                            "name": "s",
                            "deviceClassName": "gpu",
                            "allocationMode": "ExactCount",
                            "count": 2,
                            "selectors": [{"cel": {"expression": "true"}}],
                            "tolerations": [{"operator": "Exists", "tolerationSeconds": 5}],
                            "capacity": {"requests": {"memory": "1Gi"}},
                        }
                    ],
                }
            ],
            "constraints": [{"requests": ["r"], "matchAttribute": "d.com/a"}],
            "config": [{"opaque": {"driver": "d.com", "parameters": {"deep": [1, {"x": None}]}}}],
        }
    },
    "status": {
        "allocation": {
            "devices": {
                "results": [
                    {
                        "request": "r/s",
                        "driver": "d.com",
                        "pool": "p",
                        "device": "g",
                        "shareID": "1",
                        "consumedCapacity": {"memory": "1Gi"},
                        "bindingConditions": ["ok"],
                    }
                ],
                "config": [{"source": "FromClaim", "opaque": {"driver": "d.com"}}],
            },
            "allocationTimestamp": "2026-01-01T00:00:00Z",
        },
        "reservedFor": [{"resource": "pods", "name": "p", "uid": "pu"}],
        "devices": [{"driver": "d.com", "pool": "p", "device": "g"}],
    },
}
SLICE: dict[str, Any] = {
    "metadata": {"name": "s"},
    "spec": {
        "driver": "d.com",
        "pool": {"name": "p", "generation": 1, "resourceSliceCount": 2},
        "perDeviceNodeSelection": True,
        "devices": [
            {
                "name": "g",
                "attributes": {
                    "a": {"int": 0},
                    "b": {"bool": False},
                    "c": {"string": ""},
                    "d": {"version": "1.2.3"},
                },
                "capacity": {
                    "memory": {"value": "1Gi", "requestPolicy": {"validRange": {"min": "1Mi"}}}
                },
                "consumesCounters": [{"counterSet": "k", "counters": {"x": {"value": "1"}}}],
                "taints": [{"key": "t", "effect": "NoSchedule"}],
                "nodeName": "n",
                "bindsToNode": True,
                "allowMultipleAllocations": True,
            }
        ],
    },
}
CLASS: dict[str, Any] = {
    "metadata": {"name": "gpu"},
    "spec": {
        "selectors": [{"cel": {"expression": "true"}}],
        "config": [{"opaque": {"driver": "d.com", "parameters": {"a": 1}}}],
        "extendedResourceName": "example.com/gpu",
    },
}


@pytest.mark.parametrize(
    ("record", "mapping"), [(ResourceClaim, CLAIM), (ResourceSlice, SLICE), (DeviceClass, CLASS)]
)
def test_nothing_that_is_read_gets_lost(record: Any, mapping: dict[str, Any]) -> None:
    assert msgspec.json.decode(msgspec.json.encode(decode(record, mapping))) == mapping


def test_who_may_use_a_claim() -> None:
    claim = decode(ResourceClaim, CLAIM)
    assert claim.is_reserved_for("pu")
    assert not claim.is_reserved_for("other")
    assert claim.is_reservable
    crowd = [{"resource": "pods", "name": str(i), "uid": str(i)} for i in range(RESERVED_FOR_MAX)]
    full = decode(ResourceClaim, {**CLAIM, "status": {"reservedFor": crowd}})
    assert not full.is_reservable
    assert full.is_reserved_for("0")
    assert full.is_reserved_for(str(RESERVED_FOR_MAX - 1))
    free = decode(ResourceClaim, {**CLAIM, "status": {}})
    assert free.is_reservable
    assert not free.is_reserved_for("pu")
