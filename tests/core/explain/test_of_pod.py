"""Changes of the pod: what it tolerates, asks for and how it is spread; devices by counting."""

import random
from typing import Any

import pytest

from asched.core.explain import of_pod
from asched.core.explain.changes import changes
from asched.core.explain.of_pod import devices as fewer_devices
from asched.core.explain.of_pod import requests, skews, tolerations
from asched.core.model.claim import AllocationResult
from asched.core.model.decode import decode
from asched.core.model.kinds import DEVICE_CLASS, NODE, POD, RESOURCE_CLAIM, RESOURCE_SLICE
from asched.core.state.facts import Seen
from tests.builders import a_pod
from tests.core.cycle.playbook import Play
from tests.core.explain.test_of_nodes import Scene, room, wants

Json = dict[str, Any]
CORDON = {"key": "node.kubernetes.io/unschedulable", "operator": "Equal", "effect": "NoSchedule"}


# --- tolerations ---------------------------------------------------------------------------------


def test_a_cordon_is_tolerated_as_the_taint_that_it_stands_for() -> None:
    both = room("n1").cordoned().taints("team=a:NoSchedule")
    found = Scene(wants(), both, room("n2").cordoned()).change(tolerations)
    assert found is not None
    assert found.text == "tolerate node.kubernetes.io/unschedulable:NoSchedule"
    (listed_,) = found.details["tolerations"]
    assert listed_ == {**listed_, **CORDON}
    assert (found.nodes, found.node) == (1, "n2")


def test_what_the_pod_tolerates_already_stays() -> None:
    pod = wants().tolerates("team=a:NoSchedule")
    node = room("n1").taints("team=a:NoSchedule soft=x:PreferNoSchedule spot=y:NoExecute")
    found = Scene(pod, node, room("small", 0)).change(tolerations)
    assert found is not None
    assert found.text == "tolerate spot=y:NoExecute"
    assert (found.nodes, found.node) == (1, "n1")


def test_tolerations_help_nobody_whom_something_else_keeps_off() -> None:
    assert Scene(wants("9"), room("n1").taints("a=b:NoSchedule")).change(tolerations) is None
    assert Scene(wants("9"), room("n1")).change(tolerations) is None


# --- requests ------------------------------------------------------------------------------------


def test_the_first_of_the_containers_that_ask_for_most_asks_for_less() -> None:
    pod = (
        a_pod()
        .container(cpu="500m")
        .container(cpu="2")
        .container(cpu="2", memory="1Gi")
        .container(cpu="500m")
    )
    found = Scene(pod, room("n1", 2), room("n2", 3)).change(requests)
    assert found is not None
    assert found.text == "request 2 less cpu in container c2 (0 instead of 2)"
    assert found.details == {"resource": "cpu", "container": "c2", "from": "2", "to": "0"}
    assert (found.nodes, found.node) == (1, "n2")


def test_the_resource_of_which_there_is_too_little_is_asked_for_less() -> None:
    pod = wants().requests(cpu="1", memory="9Gi")
    found = Scene(pod, room("n1")).change(requests)
    assert found is not None
    assert found.text == "request 1Gi less memory in container c0 (8Gi instead of 9Gi)"


def test_a_device_less_may_be_enough() -> None:
    def with_devices(count: int) -> Any:
        return a_pod().requests({"cpu": "1", "example.com/gpu": str(count)})

    node = room("n1").allocatable({"cpu": "4", "example.com/gpu": "2"}, pods="9")
    found = Scene(with_devices(3), node).change(requests)
    assert found is not None
    assert found.text == "request 1 less example.com/gpu in container c0 (2 instead of 3)"
    none = Scene(with_devices(1), room("n1")).change(requests)
    assert none is not None
    assert none.details["to"] == "0"


def test_containers_have_no_part_in_what_is_asked_for_beside_them() -> None:
    assert Scene(a_pod().spec(overhead={"cpu": "9"}), room("n1")).change(requests) is None
    assert Scene(wants().spec(overhead={"memory": "9Gi"}), room("n1")).change(requests) is None
    assert Scene(a_pod().requests(cpu="0").init(cpu="9"), room("n1")).change(requests) is None


# --- spread --------------------------------------------------------------------------------------


def spread(pod: Any, *constraints: tuple[int, str]) -> Any:
    listed = [
        {
            "maxSkew": skew,
            "topologyKey": "zone",
            "whenUnsatisfiable": unless,
            "labelSelector": {"matchLabels": {"app": "x"}},
        }
        for skew, unless in constraints
    ]
    return pod.labels(app="x").spec(topologySpreadConstraints=listed)


@pytest.mark.parametrize("there", [1, 3, 5])
def test_a_constraint_is_loosened_as_far_as_there_are_pods(there: int) -> None:
    """Zone b is full: one more in zone a makes one more than there are."""
    placed = [a_pod(f"x{at}").labels(app="x").on("n1") for at in range(there)]
    pod = spread(wants(), (1, "ScheduleAnyway"), (1, "DoNotSchedule"))
    listed = (room("n1").labels(zone="a"), room("n2", 0).labels(zone="b"))
    found = Scene(pod, *listed, placed=placed).change(skews)
    assert found is not None
    assert found.text == f"allow maxSkew {there + 1} on zone (now 1)"
    assert found.details == {"constraint": 1, "from": 1, "to": there + 1}
    assert (found.nodes, found.node) == (1, "n1")


def test_each_constraint_is_loosened_by_itself() -> None:
    placed = [a_pod(f"x{at}").labels(app="x").on("n1") for at in range(3)]
    listed = (room("n1").labels(zone="a"), room("n2", 0).labels(zone="b"))

    def ways(*constraints: tuple[int, str]) -> list[int]:
        scene = Scene(spread(wants(), *constraints), *listed, placed=placed)
        with scene.deciding.within_budget():
            return [way.change.details["constraint"] for way in skews(scene.deciding)]

    assert ways((4, "DoNotSchedule"), (2, "DoNotSchedule")) == [1]
    assert ways((1, "DoNotSchedule"), (2, "DoNotSchedule")) == []
    assert ways() == []


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
    for seed in range(300):
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
    assert helped > 75


def test_as_many_devices_as_a_node_has_are_tried_first(monkeypatch: pytest.MonkeyPatch) -> None:
    tried, asking_for = list[int](), of_pod._asking_for

    def counting(claim: Any, index: int, count: int) -> Any:
        tried.append(count)
        return asking_for(claim, index, count)

    monkeypatch.setattr(of_pod, "_asking_for", counting)
    play, pod = a_play({"n1": 3, "n2": 4}, {"c": 30})
    (found,) = [c for c in told(play, pod) if c.kind == "device"]
    assert (found.details["to"], set(tried)) == (4, {4})


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


def exact(count: int, **more: Any) -> Json:
    mode = {"allocationMode": "ExactCount"}
    return {"exactly": {"deviceClassName": "gpu", "count": count, **mode, **more}}


def scene_of(devices: dict[str, int], *requests: Json, made: bool = False) -> Scene:
    """Nodes with devices, and a pod with a claim of these requests, perhaps made for the pod."""
    play, _ = a_play(devices, {})
    pod = a_pod("w")
    owner = {"kind": "Pod", "name": "w", "uid": pod.build().uid, "controller": True}
    claim = {
        "metadata": {"name": "c", "namespace": "default", "ownerReferences": [owner]},
        "spec": {
            "devices": {"requests": [{"name": f"r{at}", **one} for at, one in enumerate(requests)]}
        },
    }
    play.turn(Seen(RESOURCE_CLAIM, decode(RESOURCE_CLAIM.record, claim)))
    if made:
        pod.spec(resourceClaims=[{"name": "x", "resourceClaimTemplateName": "t"}])
        pod.status(resourceClaimStatuses=[{"name": "x", "resourceClaimName": "c"}])
    else:
        pod.spec(resourceClaims=[{"name": "x", "resourceClaimName": "c"}])
    return Scene(pod, play=play)


@pytest.mark.parametrize("made", [False, True])
def test_the_request_that_asks_for_too_many_asks_for_fewer(made: bool) -> None:
    one = exact(1)["exactly"]
    others = (exact(1), {"firstAvailable": [{"name": "s", **one}]})
    found = scene_of({"n1": 6, "n2": 3}, *others, exact(7), made=made).change(fewer_devices)
    assert found is not None
    assert found.text == "ask for 4 instead of 7 devices in request r2 of claim c"
    assert found.details == {
        "claim": "c",
        "request": "r2",
        "deviceClassName": "gpu",
        "from": 7,
        "to": 4,
    }
    assert (found.nodes, found.node) == (1, "n1")


def test_of_two_requests_each_may_ask_for_fewer() -> None:
    def ways(*counts: int) -> list[tuple[str, int]]:
        scene = scene_of({"n1": 5}, *map(exact, counts))
        with scene.deciding.within_budget():
            found = [way.change.details for way in fewer_devices(scene.deciding)]
        return [(one["request"], one["to"]) for one in found]

    assert ways(2, 5) == [("r1", 3)]
    assert ways(3, 4) == [("r0", 1), ("r1", 2)]
    assert ways(7, 5) == []


def test_two_devices_may_become_one_and_one_stays_one() -> None:
    found = scene_of({"n1": 1}, exact(2)).change(fewer_devices)
    assert found is not None
    assert found.details["to"] == 1
    assert scene_of({"n1": 0}, exact(1)).change(fewer_devices) is None
    assert scene_of({"n1": 1}, exact(1), exact(1)).change(fewer_devices) is None


def test_all_devices_of_a_node_are_no_number_and_what_a_claim_has_stays() -> None:
    every = exact(0, allocationMode="All")
    assert scene_of({"n1": 0}, every).change(fewer_devices) is None
    scene = scene_of({"n1": 4}, every, exact(2))
    with scene.deciding.within_budget():
        assert list(fewer_devices(scene.deciding)) == []
    gone = Scene(
        a_pod().spec(resourceClaims=[{"name": "x", "resourceClaimName": "gone"}]), room("n1")
    )
    with gone.deciding.within_budget():
        assert list(fewer_devices(gone.deciding)) == []
    scene = scene_of({"n1": 1}, exact(3))
    (claim,) = scene.cluster.all(RESOURCE_CLAIM).values()
    scene.cluster.apply(Seen(RESOURCE_CLAIM, claim.allocated(AllocationResult())))
    with scene.deciding.within_budget():
        assert list(fewer_devices(scene.deciding)) == []
