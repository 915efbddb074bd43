"""Extended resources: the class that stands for one, and the requests a pod's containers make."""

from typing import Any

import pytest

from asched.core.dra.extended_requests import device_requests, is_delegable
from asched.core.dra.ledger import classes_by_resource
from asched.core.model.claim import DeviceClass
from asched.core.model.decode import decode
from asched.core.model.pod import Pod
from tests.device_builders import a_class

GPU = "example.com/gpu"


def a_pod(**containers: Any) -> Pod:
    """`name=amount` for an app container, `name=(amount, "init" or "sidecar")` for the others."""
    apps, inits = [], []
    for name, asked in containers.items():
        amount, kind = asked if isinstance(asked, tuple) else (asked, "app")
        container: dict[str, Any] = {
            "name": name,
            "resources": {"requests": {"cpu": "1", GPU: amount}},
        }
        if kind == "sidecar":
            container["restartPolicy"] = "Always"
        (apps if kind == "app" else inits).append(container)
    return decode(
        Pod, {"metadata": {"name": "p"}, "spec": {"containers": apps, "initContainers": inits}}
    )


def made(pod: Pod) -> tuple[dict[str, int], list[tuple[str, str]]]:
    found = device_requests(pod, {GPU: a_class("c")})
    counts = {r.name: r.exactly.count for r in found.requests if r.exactly is not None}
    return counts, [(m.container, m.request) for m in found.mappings]


def test_each_container_has_a_request() -> None:
    counts, mappings = made(a_pod(a="1", b="2"))
    assert counts == {"container-0-request-1": 1, "container-1-request-1": 2}
    assert mappings == [("a", "container-0-request-1"), ("b", "container-1-request-1")]


def test_containers_that_ask_for_none_have_none() -> None:
    assert made(a_pod(a="0", b="1"))[0] == {"container-1-request-1": 1}


def test_an_init_container_uses_what_comes_after_it() -> None:
    counts, mappings = made(a_pod(i=("1", "init"), a="2"))
    assert counts == {"container-1-request-1": 2}
    assert mappings == [("a", "container-1-request-1"), ("i", "container-1-request-1")]


def test_what_init_containers_need_beyond_is_asked_for_once() -> None:
    counts, mappings = made(a_pod(i=("3", "init"), j=("2", "init"), a="1"))
    assert counts == {"container-0-request-1": 2, "container-2-request-1": 1}
    assert ("j", "container-0-request-1") in mappings


def test_a_sidecar_before_an_init_container_keeps_its_devices() -> None:
    counts, _ = made(a_pod(s=("1", "sidecar"), i=("1", "init"), a="1"))
    assert counts == {"container-0-request-1": 1, "container-2-request-1": 1}


def test_init_containers_before_many_others_name_few_of_them_and_count_all() -> None:
    inits: dict[str, Any] = {f"i{i}": ("500", "init") for i in range(300)}
    sidecars: dict[str, Any] = {f"s{i}": ("1", "sidecar") for i in range(300)}
    counts, mappings = made(a_pod(**inits, **sidecars))
    assert counts.pop("container-0-request-1") == 200
    assert len(counts) == 300
    assert len(mappings) < 300 * 40  # not 300 * 300: no such claim is ever allocated


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (GPU, True),
        ("deviceclass.resource.kubernetes.io/c", True),
        ("cpu", False),
        ("kubernetes.io/batch", False),
    ],
)
def test_which_names_may_stand_for_devices(name: str, expected: bool) -> None:
    assert is_delegable(name) is expected


def dated(name: str, created: str) -> DeviceClass:
    return decode(
        DeviceClass,
        {
            "metadata": {"name": name, "creationTimestamp": created},
            "spec": {"extendedResourceName": GPU},
        },
    )


def test_of_several_classes_the_newest_then_the_first_by_name_stands_for_a_resource() -> None:
    old, b, a = dated("z", "2026-01-01"), dated("b", "2026-02-01"), dated("a", "2026-02-01")
    found = classes_by_resource((b, old, a))
    assert found[GPU].metadata.name == "a"
    assert found["deviceclass.resource.kubernetes.io/z"].metadata.name == "z"
    newer = dated("y", "2026-03-01")
    for order in ((newer, a), (a, newer)):
        assert classes_by_resource(order)[GPU].metadata.name == "y"


NIC, CPU = "example.com/nic", "cpu"
