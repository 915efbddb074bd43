"""The page of what pods request and may use: kube-scheduler's families, labels and units."""

import pytest

from asched.serve.resources import render, unit_of
from tests.builders import a_pod

REQUEST, LIMIT = "kube_pod_resource_request", "kube_pod_resource_limit"


def samples(*pods) -> dict[str, float]:
    lines = render([pod.build() for pod in pods]).decode().splitlines()
    return {
        name: float(value)
        for name, value in (line.rsplit(" ", 1) for line in lines if not line.startswith("#"))
    }


def series(family: str, resource: str, unit: str, *, node: str = "", pod: str = "web") -> str:
    return (
        f'{family}{{namespace="default",node="{node}",pod="{pod}",priority="0",'
        f'resource="{resource}",scheduler="",unit="{unit}"}}'
    )


def test_amounts_are_cores_and_bytes_and_nothing_is_left_out() -> None:
    pod = a_pod().requests({"cpu": "250m", "memory": "1Mi", "example.com/gpu": "2", "storage": "0"})
    pod.first["resources"]["limits"] = {"cpu": "1500m"}
    assert samples(pod) == {
        series(REQUEST, "cpu", "cores"): 0.25,
        series(REQUEST, "memory", "bytes"): float(1 << 20),
        series(REQUEST, "example.com/gpu", ""): 2.0,
        series(LIMIT, "cpu", "cores"): 1.5,
    }


@pytest.mark.parametrize("phase", ["Succeeded", "Failed", "Running", "Pending"])
def test_pods_that_have_ended_on_a_node_are_left_out(phase: str) -> None:
    ended = phase in ("Succeeded", "Failed")
    placed = a_pod().requests(cpu="1").on("n1").status(phase=phase)
    first, last = (a_pod(name).requests(cpu="1") for name in ("first", "zlast"))
    found = samples(first, placed, last)
    assert (series(REQUEST, "cpu", "cores", node="n1") in found) is not ended
    assert len(found) == (2 if ended else 3)
    waiting = a_pod().requests(cpu="1").status(phase=phase)
    assert samples(waiting) == {series(REQUEST, "cpu", "cores"): 1.0}


def test_series_come_in_the_order_of_their_labels() -> None:
    pods = [a_pod(name).requests(cpu="1", memory="1") for name in ("b", "a")]
    found = list(samples(*pods))
    assert found == [
        series(REQUEST, resource, unit, pod=name)
        for name in "ab"
        for resource, unit in (("cpu", "cores"), ("memory", "bytes"))
    ]
    assert samples() == {}


@pytest.mark.parametrize(
    ("resource", "unit"),
    [
        ("cpu", "cores"),
        ("memory", "bytes"),
        ("storage", "bytes"),
        ("ephemeral-storage", "bytes"),
        ("hugepages-2Mi", "bytes"),
        ("attachable-volumes-aws-ebs", "integer"),
        ("pods", ""),
        ("example.com/gpu", ""),
    ],
)
def test_units(resource: str, unit: str) -> None:
    assert unit_of(resource) == unit
