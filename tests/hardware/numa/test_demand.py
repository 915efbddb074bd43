"""What pods ask of zones: quality of service, amounts, and who owns something alone."""

from typing import Any

import pytest

from asched.core.model.decode import decode
from asched.core.model.pod import Pod
from asched.hardware.numa.demand import QoS, demand_of, owns_exclusively, qos_of

Json = dict[str, Any]
GPU = "example.com/gpu"
GIB = 1 << 30


def container(requests: Json | None = None, limits: Json | None = None, **more: Any) -> Json:
    resources = {"requests": requests, "limits": limits}
    return {"name": "c", "resources": {k: v for k, v in resources.items() if v is not None}, **more}


def both(**amounts: str) -> Json:
    return container(amounts, amounts)


def a_pod(*containers: Json, inits: tuple[Json, ...] = (), **spec: Any) -> Pod:
    listed = {"initContainers": list(inits)} if inits else {}
    spec = {"containers": list(containers), **listed, **spec}
    return decode(Pod, {"metadata": {"name": "w", "namespace": "default"}, "spec": spec})


SOME, MORE = {"cpu": "1", "memory": "1Gi"}, {"cpu": "2", "memory": "2Gi"}
FULL = both(**SOME)


@pytest.mark.parametrize(
    ("pod", "expected"),
    [
        (a_pod(), "BestEffort"),
        (a_pod(container()), "BestEffort"),
        (a_pod(container({GPU: "1"}, {GPU: "1"})), "BestEffort"),
        (a_pod(container({"cpu": "0", "memory": "0"}, {"cpu": "0"})), "BestEffort"),
        (a_pod(FULL), "Guaranteed"),
        (a_pod(FULL, both(**MORE)), "Guaranteed"),
        (a_pod(both(cpu="1000m", memory="1024Mi", **{GPU: "1"})), "Guaranteed"),
        (a_pod(container({"cpu": "1"}, SOME)), "Burstable"),
        (a_pod(container(SOME)), "Burstable"),
        (a_pod(container(None, SOME)), "Burstable"),
        (a_pod(container(None, {"cpu": "1"})), "Burstable"),
        (a_pod(container(SOME, MORE)), "Burstable"),
        (a_pod(both(cpu="1")), "Burstable"),
        (a_pod(both(memory="1Gi")), "Burstable"),
        (a_pod(both(cpu="1"), both(memory="1Gi")), "Burstable"),
        (a_pod(FULL, container()), "Burstable"),
        (a_pod(both(cpu="1", memory="0")), "Burstable"),
        # sums may be equal where the containers are not
        (a_pod(container(SOME, MORE), container(MORE, SOME)), "Guaranteed"),
        (a_pod(FULL, inits=(FULL,)), "Guaranteed"),
        (a_pod(FULL, inits=(container(),)), "Burstable"),
        (a_pod(FULL, inits=(container(SOME),)), "Burstable"),
        (a_pod(container(), inits=(FULL,)), "Burstable"),
        # of the pod as a whole: its containers do not count
        (a_pod(container(SOME), resources={"requests": SOME, "limits": SOME}), "Guaranteed"),
        (a_pod(FULL, resources={"requests": SOME, "limits": MORE}), "Burstable"),
        (a_pod(FULL, resources={"requests": SOME}), "Burstable"),
        (a_pod(FULL, resources={"limits": SOME}), "Burstable"),
        (a_pod(FULL, resources={"requests": {"cpu": "1"}, "limits": {"cpu": "1"}}), "Burstable"),
        (a_pod(FULL, resources={}), "BestEffort"),
    ],
)
def test_the_class_of_quality(pod: Pod, expected: str) -> None:
    """Kubernetes' rule: ComputePodQOS."""
    assert qos_of(pod) is QoS(expected)
    assert demand_of(pod).is_guaranteed == (expected == "Guaranteed")


def test_containers_add_up_init_containers_come_before_them_and_overhead_on_top() -> None:
    pod = a_pod(
        container({"cpu": "1", "memory": "1Gi"}),
        container({"cpu": "500m", GPU: "0"}),
        inits=(
            container({"cpu": "1200m", "memory": "3Gi"}),
            container({"memory": "2Gi", "x": "7"}),
        ),
        overhead={"cpu": "50m", "pods": "1"},
    )
    demand = demand_of(pod)
    assert demand.containers == ({"cpu": 1000, "memory": GIB}, {"cpu": 500, GPU: 0})
    assert demand.inits == ({"cpu": 1200, "memory": 3 * GIB}, {"memory": 2 * GIB, "x": 7})
    assert demand.whole == {"cpu": 1550, "memory": 3 * GIB, GPU: 0, "x": 7, "pods": 1}
    empty = demand_of(a_pod())
    assert (empty.whole, empty.inits, empty.containers) == ({}, (), ())


@pytest.mark.parametrize(
    ("pod", "expected"),
    [
        (a_pod(container()), True),
        (a_pod(container({"ephemeral-storage": "1Gi"})), True),
        (a_pod(container({"x.kubernetes.io/y": "1"})), True),
        (a_pod(container({GPU: "1"})), False),
        (a_pod(container({"ephemeral-storage": "1Gi", GPU: "1"})), False),
        (a_pod(container(), inits=(container({GPU: "1"}),)), False),
        (a_pod(container({"cpu": "1"})), False),
        (a_pod(FULL), False),
    ],
)
def test_of_best_effort_pods_only_those_with_devices_are_looked_at(
    pod: Pod, *, expected: bool
) -> None:
    assert demand_of(pod).is_indifferent == expected


@pytest.mark.parametrize(
    ("pod", "expected"),
    [
        (a_pod(), False),
        (a_pod(container()), False),
        (a_pod(FULL), True),
        (a_pod(both(cpu="1500m", memory="1Gi")), True),  # memory
        (a_pod(container({"cpu": "1"}), resources={"requests": SOME, "limits": SOME}), True),
        (a_pod(container({"cpu": "500m"}), resources={"requests": SOME, "limits": SOME}), False),
        (a_pod(container({"cpu": "0"}), resources={"requests": SOME, "limits": SOME}), False),
        (a_pod(container({"memory": "1"}), resources={"requests": SOME, "limits": SOME}), True),
        (a_pod(container({"pods": "1000"}), resources={"requests": SOME, "limits": SOME}), False),
        (
            a_pod(
                container({"hugepages-2Mi": "2Mi"}), resources={"requests": SOME, "limits": SOME}
            ),
            True,
        ),
        (a_pod(container(SOME)), False),  # whoever is not guaranteed has no core alone
        (a_pod(container({**SOME, "hugepages-2Mi": "2Mi"})), False),
        (a_pod(container({GPU: "1"})), True),
        (a_pod(container({"example.com/other": "1"})), False),  # no zone lists it
        (a_pod(container({"example.com/other": "1", GPU: "1"})), True),
        # what has ended keeps nothing
        (a_pod(container(), inits=(container({GPU: "1"}),)), False),
        (a_pod(container(), inits=(container({GPU: "1"}, restartPolicy="Always"),)), True),
    ],
)
def test_who_owns_something_alone(pod: Pod, *, expected: bool) -> None:
    assert owns_exclusively(pod, {GPU, "cpu"}) == expected


def test_pods_that_are_treated_alike_have_one_key() -> None:
    def key(*containers: Json, inits: tuple[Json, ...] = ()) -> object:
        return demand_of(a_pod(*containers, inits=inits)).key

    one, two = container({"cpu": "1", "memory": "1Gi"}), container({"memory": "1Gi", "cpu": "1"})
    assert key(one) == key(two)
    others = [
        key(one),
        key(one, one),
        key(one, inits=(one,)),
        key(one, one, inits=(one,)),
        key(one, inits=(one, one)),
        key(FULL),
        key(container({"cpu": "2", "memory": "1Gi"})),
    ]
    assert len(set(others)) == len(others)
