"""Changes of the pod: what it tolerates, asks for and how it is spread; devices by counting."""

import random
from typing import Any

from asched.core.cluster.facts import Seen
from asched.core.model.decode import decode
from asched.core.model.kinds import DEVICE_CLASS, NODE, POD, RESOURCE_CLAIM, RESOURCE_SLICE
from asched.insight.explain.changes import changes
from tests.playbook import Play

Json = dict[str, Any]


# --- tolerations ---------------------------------------------------------------------------------


# --- requests ------------------------------------------------------------------------------------


# --- spread --------------------------------------------------------------------------------------


# --- devices -------------------------------------------------------------------------------------


def a_play(devices: dict[str, int], asked: dict[str, int]) -> tuple[Play, Json]:
    """Nodes with so many devices each, and a pod with a claim for each number."""
    play = Play()
    facts = [Seen(DEVICE_CLASS, decode(DEVICE_CLASS.record, {"metadata": {"name": "gpu"}}))]
    for name, count in devices.items():
        amounts = {"cpu": "4", "memory": "4Gi", "pods": "9"}
        node = {"metadata": {"name": name, "uid": name}, "status": {"allocatable": amounts}}
        facts.append(Seen(NODE, decode(NODE.record, node)))
        spec = {
            "driver": "gpu.example.com",
            "nodeName": name,
            "pool": {"name": name, "generation": 1, "resourceSliceCount": 1},
            "devices": [{"name": f"dev-{number}"} for number in range(count)],
        }
        facts.append(
            Seen(
                RESOURCE_SLICE,
                decode(RESOURCE_SLICE.record, {"metadata": {"name": name}, "spec": spec}),
            )
        )
    for name, count in asked.items():
        exactly = {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": count}
        request = {"name": "r", "exactly": exactly}
        claim = {
            "metadata": {"name": name, "namespace": "default", "uid": name},
            "spec": {"devices": {"requests": [request]}},
        }
        facts.append(Seen(RESOURCE_CLAIM, decode(RESOURCE_CLAIM.record, claim)))
    play.turn(*facts)
    pod = {
        "metadata": {"name": "w", "namespace": "default", "uid": "w"},
        "spec": {
            "schedulerName": "default-scheduler",
            "containers": [{"name": "main"}],
            "resourceClaims": [{"name": n, "resourceClaimName": n} for n in asked],
        },
    }
    return play, pod


def told(play: Play, pod: Json) -> list[Any]:
    context = play.machine.context
    runner = context.runners["default-scheduler"]
    return changes(runner, context.nominator, decode(POD.record, pod))


def test_a_claim_is_listed_how_many_devices_it_would_get() -> None:
    """Each alone: what the others ask for is taken first, whatever order they are in."""
    helped = 0
    for seed in range(75):
        rng = random.Random(seed)
        devices = {f"n{number}": rng.randint(0, 5) for number in range(rng.randint(1, 4))}
        asked = {f"c{number}": rng.randint(1, 4) for number in range(rng.randint(1, 2))}
        play, pod = a_play(devices, asked)
        found = {c.details["claim"]: c for c in told(play, pod) if c.kind == "device"}
        most, total = max(devices.values()), sum(asked.values())
        for name, count in asked.items():
            left = most - (total - count)
            if total <= most or left < 1:
                assert name not in found
                continue
            assert found[name].details["from"] == count
            assert found[name].details["to"] == left
            assert devices[found[name].node] == most
            helped += 1
    assert helped > 18


def test_one_more_node_has_the_devices_of_the_node_it_is_like() -> None:
    play, pod = a_play({"n1": 1, "n2": 2}, {"c": 2})
    taken = {
        "metadata": {"name": "t", "namespace": "default", "uid": "t"},
        "spec": {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "gpu"}}]}},
        "status": {
            "reservedFor": [{"resource": "pods", "name": "x", "uid": "x"}],
            "allocation": {
                "devices": {
                    "results": [
                        {
                            "request": "r",
                            "driver": "gpu.example.com",
                            "pool": "n2",
                            "device": "dev-0",
                        }
                    ]
                }
            },
        },
    }
    play.turn(Seen(RESOURCE_CLAIM, decode(RESOURCE_CLAIM.record, taken)))
    found = {change.kind: change for change in told(play, pod)}
    assert found["node"].text == "one more node like n2"
    assert found["device"].details["to"] == 1
    slices = play.machine.context.cluster.all(RESOURCE_SLICE)
    assert set(slices) == {"n1", "n2"}
