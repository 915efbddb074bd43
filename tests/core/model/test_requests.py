"""What pods ask for and hold, against the slow reading of the rule, and while they are resized."""

import random
from typing import Any

import pytest
from msgspec.structs import replace

from asched.core.model.pod import Pod
from asched.core.model.requests import (
    accounted_requests,
    container_requests,
    exact_requests,
    is_extended,
    is_scalar,
    is_scaled_down,
    is_simple,
    nano,
    pod_requests,
    scoring_requests,
    to_units,
    written,
)
from tests.builders import PodBuilder, a_pod
from tests.twins import pod_requests as twin

GIB, MIB = 1 << 30, 1 << 20
INFEASIBLE = [{"type": "PodResizePending", "status": "True", "reason": "Infeasible"}]
DEFERRED = [{"type": "PodResizePending", "status": "True", "reason": "Deferred"}]
AMOUNTS = {
    "cpu": ("0", "1", "250m", "1500u", "0.1n", "3"),
    "memory": ("0", "1", "128Mi", "1Gi", "1500m", "7"),
    "ephemeral-storage": ("1Gi", "100m"),
    "hugepages-2Mi": ("2Mi", "4Mi"),
    "example.com/gpu": ("1", "2"),
}
WHOLE_POD = ("cpu", "memory", "hugepages-2Mi")


def some_amounts(rng: random.Random, names: tuple[str, ...] = tuple(AMOUNTS)) -> dict[str, str]:
    return {n: rng.choice(AMOUNTS[n]) for n in names if rng.random() < 0.4}


def some_pod(rng: random.Random) -> PodBuilder:
    pod = a_pod().requests(some_amounts(rng))
    for _ in range(rng.choice((0, 0, 1, 2))):
        pod.container().json["spec"]["containers"][-1]["resources"] = {
            "requests": some_amounts(rng)
        }
    for _ in range(rng.choice((0, 0, 1, 2, 3))):
        pod.init(sidecar=rng.random() < 0.5).json["spec"]["initContainers"][-1]["resources"] = {
            "requests": some_amounts(rng)
        }
    if rng.random() < 0.3:
        pod.spec(overhead=some_amounts(rng, ("cpu", "memory")))
    if rng.random() < 0.4:
        pod.spec(resources={"requests": some_amounts(rng, WHOLE_POD)})
    return pod


@pytest.mark.parametrize("seed", range(150))
def test_pods_ask_for_what_their_containers_add_up_to(seed: int) -> None:
    pod = some_pod(random.Random(seed)).build()
    wanted, blind = pod_requests(pod), container_requests(pod)
    for name in AMOUNTS:
        assert wanted.get(name, 0) == twin.amount(pod, name, pod_level=True), name
        assert blind.get(name, 0) == twin.amount(pod, name, pod_level=False), name
    assert to_units(exact_requests(pod)) == accounted_requests(pod) == wanted
    for whole in (True, False):
        scored = tuple(twin.scored(pod, name, pod_level=whole) for name in ("cpu", "memory"))
        for resized in (True, False):
            assert scoring_requests(pod, pod_level=whole, resized=resized) == scored


def test_amounts_are_rounded_up_once_and_stay_within_64_bits() -> None:
    assert (nano("0.1n"), nano("1500u"), nano(2)) == (1, 1_500_000, 2_000_000_000)
    assert to_units({"cpu": 1, "memory": 10**9 + 1, "a.b/c": 0}) == {
        "cpu": 1,
        "memory": 2,
        "a.b/c": 0,
    }
    assert to_units({"memory": 10**9 * 2**64}) == {"memory": 2**63 - 1}


@pytest.mark.parametrize(
    ("resource", "amount", "text"),
    [
        ("cpu", 0, "0"),
        ("cpu", 1, "1m"),
        ("cpu", 1001, "1001m"),
        ("cpu", 3000, "3"),
        ("memory", 0, "0"),
        ("memory", 1023, "1023"),
        ("memory", 1024, "1Ki"),
        ("memory", 3 * MIB, "3Mi"),
        ("memory", MIB + 1024, "1025Ki"),
        ("memory", 1536 * MIB, "1536Mi"),
        ("memory", 2 * GIB, "2Gi"),
        ("example.com/gpu", 8, "8"),
    ],
)
def test_an_amount_is_written_as_people_write_it(resource: str, amount: int, text: str) -> None:
    assert written(resource, amount) == text
    assert to_units({resource: nano(text)}) == {resource: amount}


@pytest.mark.parametrize(
    ("name", "extended", "scalar"),
    [
        ("cpu", False, False),
        ("memory", False, False),
        ("pods", False, False),
        ("gpu", False, False),
        ("example.com/gpu", True, True),
        ("a/b", True, True),
        ("hugepages-2Mi", False, True),
        ("attachable-volumes-aws-ebs", False, True),
        ("kubernetes.io/x", False, True),
        ("node.kubernetes.io/x", False, True),
        ("kubernetes.io", False, False),
        # a quota would write `requests.` twice
        ("requests.example.com/gpu", False, False),
        (f"{'x' * 244}/gpu", True, True),  # 253 with `requests.`
        (f"{'x' * 245}/gpu", False, False),
        (f"example.com/{'x' * 63}", True, True),
        (f"example.com/{'x' * 64}", False, False),
        ("example.com/a_b.c-d", True, True),
        ("example.com/-gpu", False, False),
        ("example.com/gpu-", False, False),
        ("example.com/", False, False),
        ("example.com/a/b", False, False),
        ("/gpu", False, False),
        ("Example.com/gpu", False, False),
        (".example.com/gpu", False, False),
        ("example..com/gpu", False, False),
        ("example.com-/gpu", False, False),
    ],
)
def test_a_device_is_named_with_the_domain_of_a_vendor(
    name: str, extended: bool, scalar: bool
) -> None:
    """IsExtendedResourceName and IsScalarResourceName of kubernetes 1.36."""
    assert is_extended(name) is extended
    assert is_scalar(name) is scalar


def test_a_pod_is_simple_as_long_as_its_containers_alone_say_what_it_holds() -> None:
    told = [{"name": "c0"}]
    assert is_simple(a_pod().requests(cpu="1").container(cpu="1").build())
    for pod in (
        a_pod().init(cpu="1"),
        a_pod().spec(overhead={"cpu": "1"}),
        a_pod().spec(resources={"requests": {"cpu": "1"}}),
        a_pod().status(containerStatuses=told),
        a_pod().status(initContainerStatuses=told),
    ):
        assert not is_simple(pod.build())


def shrunk(old: Pod, new: Pod) -> bool:
    before, after = accounted_requests(old), accounted_requests(new)
    return any(n not in after or after[n] < amount for n, amount in before.items())


@pytest.mark.parametrize("seed", range(60))
def test_a_pod_is_scaled_down_if_it_asks_for_less_of_anything(seed: int) -> None:
    """Versions of a pod may have parts in common, and more or less than simple pods have."""
    rng = random.Random(seed)
    specs, statuses = [], []
    for _ in range(3):
        pod = a_pod().requests({n: rng.choice(("1", "2")) for n in ("cpu", "memory")})
        if rng.random() < 0.3:
            del pod.first["resources"]["requests"]["memory"]
        if rng.random() < 0.3:
            pod.init(cpu=rng.choice(("1", "3")))
        specs.append(pod.build().spec)
    for conditions in ([], DEFERRED, INFEASIBLE):
        told = {"name": "c0", "resources": {"requests": {"cpu": rng.choice(("1", "3"))}}}
        statuses.append(a_pod().status(containerStatuses=[told], conditions=conditions).build())
    statuses.append(a_pod().build())
    pods = [
        replace(status, spec=spec) for spec in (*specs, replace(specs[0])) for status in statuses
    ]
    for old in pods:
        for new in pods:
            assert is_scaled_down(old, new) is shrunk(old, new)


C2 = {"name": "c0", "resources": {"requests": {"cpu": "2", "memory": "1Gi"}}}


@pytest.mark.parametrize(
    ("status", "cpu", "memory"),
    [
        # nothing is told of this container
        ({"containerStatuses": [{"name": "other", "resources": {"requests": {"cpu": "9"}}}]}, 2, 1),
        ({"containerStatuses": [{"name": "c0", "allocatedResources": {"cpu": "9"}}]}, 2, 1),
        # the largest of what is asked for, in force and allocated
        ({"containerStatuses": [{"name": "c0", "resources": {}}]}, 2, 1),
        ({"containerStatuses": [{"name": "c0", "resources": {"requests": {"cpu": "3"}}}]}, 3, 1),
        (
            {
                "containerStatuses": [
                    {
                        "name": "c0",
                        "resources": {"requests": {"cpu": "1", "memory": "3Gi"}},
                        "allocatedResources": {"cpu": "4"},
                    }
                ]
            },
            4,
            3,
        ),
        # a resize that waits is asked for; one that cannot be is not
        (
            {
                "containerStatuses": [{"name": "c0", "resources": {"requests": {"cpu": "1"}}}],
                "conditions": DEFERRED,
            },
            2,
            1,
        ),
        (
            {
                "containerStatuses": [
                    {
                        "name": "c0",
                        "resources": {"requests": {"cpu": "1"}},
                        "allocatedResources": {"memory": "2Gi"},
                    }
                ],
                "conditions": INFEASIBLE,
            },
            1,
            2,
        ),
    ],
)
def test_a_container_holds_what_its_status_tells(
    status: dict[str, Any], cpu: int, memory: int
) -> None:
    pod = a_pod().on("n1").spec(containers=[{"image": "app", **C2}]).status(**status).build()

    assert accounted_requests(pod) == {"cpu": 1000 * cpu, "memory": memory * GIB}
    for resized in (True, False):
        scored = (1000 * cpu, memory * GIB) if resized else (2000, GIB)
        assert scoring_requests(pod, pod_level=True, resized=resized) == scored
    assert pod_requests(pod) == container_requests(pod) == {"cpu": 2000, "memory": GIB}
    assert to_units(exact_requests(pod)) == pod_requests(pod)


def test_sidecars_are_resized_and_other_init_containers_are_not() -> None:
    def told(name: str) -> dict[str, Any]:
        return {"name": name, "resources": {"requests": {"cpu": "4"}}}

    pod = (
        a_pod()
        .requests(cpu="1")
        .container(cpu="1")
        .init(cpu="1")
        .init(sidecar=True, cpu="2")
        .status(initContainerStatuses=[told("i0"), told("i1")])
    )
    assert accounted_requests(pod.build()) == {"cpu": 6000}
    pod.status(containerStatuses=[told("c1")])
    assert accounted_requests(pod.build()) == {"cpu": 9000}
    assert pod_requests(pod.build()) == {"cpu": 4000}
    # a pod without sidecars, and one whose containers say nothing
    plain = a_pod().status(containerStatuses=[{"name": "c0"}, told("gone")])
    assert accounted_requests(plain.build()) == {}
    assert scoring_requests(plain.build(), pod_level=True, resized=True) == (100, 200 * MIB)


@pytest.mark.parametrize(
    ("asked", "status", "cpu", "memory"),
    [
        # the largest of what is asked for, allocated and in force counts
        ({"cpu": "2"}, {"resources": {"requests": {"cpu": "3"}}}, 3000, None),
        (
            {"cpu": "2"},
            {"resources": {"requests": {"cpu": "1"}}, "allocatedResources": {"cpu": "4"}},
            4000,
            None,
        ),
        # of resources that the pod asks for as a whole, and no others
        ({"cpu": "2"}, {"resources": {"requests": {"memory": "8Gi"}}}, 2000, None),
        # no word of what is in force: what is allocated says nothing
        ({"cpu": "2"}, {"allocatedResources": {"cpu": "4"}}, 2000, None),
        ({}, {"resources": {"requests": {"cpu": "4"}}}, None, None),
        # what cannot be had is not held, not even if nothing is told about it
        (
            {"cpu": "2", "memory": "4Gi"},
            {"resources": {"requests": {"memory": "1Gi"}}, "conditions": INFEASIBLE},
            0,
            GIB,
        ),
        (
            {"cpu": "2"},
            {"resources": {"requests": {"cpu": "1"}}, "conditions": DEFERRED},
            2000,
            None,
        ),
    ],
)
def test_pod_level_resources_while_they_are_resized(
    asked: dict[str, str], status: dict[str, Any], cpu: int, memory: int | None
) -> None:
    pod = a_pod().on("n1").spec(resources={"requests": asked}).status(**status).build()

    held = accounted_requests(pod)

    assert held.get("cpu") == cpu
    assert held.get("memory") == memory
    assert pod_requests(pod) == to_units({name: nano(text) for name, text in asked.items()})


def test_a_pod_as_a_whole_asks_for_no_devices() -> None:
    whole = {"cpu": "1", "memory": "2", "hugepages-2Mi": "4Mi", "example.com/gpu": "1"}
    pod = a_pod().requests({"example.com/gpu": "3"}).spec(resources={"requests": whole}).build()
    expected = {"cpu": 1000, "memory": 2, "hugepages-2Mi": 4 * MIB, "example.com/gpu": 3}
    assert pod_requests(pod) == expected


def test_a_name_counts_with_no_amount_and_a_pod_without_containers_holds_nothing() -> None:
    assert pod_requests(a_pod().init(cpu="0").build()) == {"cpu": 0}
    for containers in (None, []):
        pod = a_pod().spec(containers=containers).status(containerStatuses=[C2]).build()
        assert accounted_requests(pod) == pod_requests(pod) == {}
        assert scoring_requests(pod, pod_level=True, resized=True) == (0, 0)
