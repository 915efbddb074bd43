"""Extended resources: the class that stands for one, and the requests a pod's containers make."""

import random
from typing import Any

import pytest

from asched.core.dra.extended import classes_by_resource, device_requests, is_delegable
from asched.core.model.claim import DeviceClass
from asched.core.model.decode import decode
from asched.core.model.pod import Pod
from tests.core.dra.worlds import a_class

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


@pytest.mark.parametrize(("wanted", "own"), [(36, None), (40, None), (41, 1), (50, 10)])
def test_of_many_others_all_count_though_few_are_named(wanted: int, own: int | None) -> None:
    sidecars: dict[str, Any] = {f"s{i}": ("1", "sidecar") for i in range(40)}
    counts, mappings = made(a_pod(i=(str(wanted), "init"), **sidecars))
    assert counts.get("container-0-request-1") == own
    assert len([1 for name, _ in mappings if name == "i"]) == 32 + (own is not None)


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


def test_a_class_without_a_date_is_the_oldest() -> None:
    undated = a_class("u", extendedResourceName=GPU)
    for order in ((undated, dated("old", "2020-01-01")), (dated("old", "2020-01-01"), undated)):
        assert classes_by_resource(order)[GPU].metadata.name == "old"
    assert "deviceclass.resource.kubernetes.io/u" in classes_by_resource((undated,))
    assert classes_by_resource((a_class("plain"),)).keys() == {
        "deviceclass.resource.kubernetes.io/plain"
    }


def test_a_pod_without_requests_makes_none() -> None:
    bare = decode(Pod, {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "a"}]}})
    assert made(bare) == ({}, [])
    inits = [{"name": "i", "resources": {"requests": {GPU: "2"}}}]
    only = {"metadata": {"name": "p"}, "spec": {"initContainers": inits}}
    assert made(decode(Pod, only)) == (
        {"container-0-request-0": 2},
        [("i", "container-0-request-0")],
    )


NIC, CPU = "example.com/nic", "cpu"
RESOURCES = (GPU, NIC)


def by_rule(
    containers: list[tuple[str, str, dict[str, int]]],
) -> tuple[dict[str, tuple[str, int]], list[tuple[str, str, str]]]:
    """createRequestsAndMappings, with (name, kind, requests) of each container, inits first:
    requests by name, of a class and a count; and mappings, in order.
    """
    requests, mappings = {}, []
    for resource in sorted(RESOURCES):
        lasting: dict[int, int] = {}  # container -> what it asks for itself
        told: list[list[Any]] = []  # [container, index of the one that serves it]
        passing: dict[int, int] = {}
        for at, (name, kind, wanted) in enumerate(containers):
            if kind != "init" and wanted.get(resource):
                lasting[at] = wanted[resource]
                told.append([name, at])
        for at, (name, kind, wanted) in enumerate(containers):
            if kind != "init" or not wanted.get(resource):
                continue
            missing = wanted[resource]
            for later, count in lasting.items():
                if later > at and missing > 0:
                    told.append([name, later])
                    missing -= count
            if missing > 0:
                passing[at] = missing
                told.append([name, at])
        # Init containers run one after the other: the first of the largest serves them all.
        largest = min(passing, key=lambda at: (-passing[at], at), default=-1)

        def name_of(at: int, resource: str = resource) -> str:
            return f"container-{at}-request-{sorted(containers[at][2]).index(resource)}"

        kept = lasting | ({largest: passing[largest]} if passing else {})
        requests |= {name_of(at): (resource, count) for at, count in kept.items()}
        for name, at in told:
            mappings.append((name, resource, name_of(largest if at in passing else at)))
    return requests, mappings


@pytest.mark.parametrize("seed", range(40))
def test_requests_and_mappings_are_those_of_the_rule(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(20):
        containers, given = [], []
        inits, apps = rng.randrange(6), rng.randrange(1, 4)
        for at in range(inits + apps):
            kind = rng.choice(("init", "sidecar")) if at < inits else "app"
            wanted = {
                resource: rng.randrange(5) for resource in (*RESOURCES, CPU) if rng.random() < 0.7
            }
            containers.append((f"c{at}", kind, wanted))
            asked = {name: str(count) for name, count in wanted.items()}
            container = {"name": f"c{at}", "resources": {"requests": asked}}
            # Of an app container it means nothing.
            if kind == "sidecar" or (kind == "app" and rng.random() < 0.2):
                container["restartPolicy"] = "Always"
            given.append(container)
        spec = {"initContainers": given[:inits], "containers": given[inits:]}
        pod = decode(Pod, {"metadata": {"name": "p"}, "spec": spec})

        found = device_requests(pod, {NIC: a_class(NIC), GPU: a_class(GPU)})

        requests, mappings = by_rule(containers)
        assert [
            (one.name, one.exactly and (one.exactly.device_class_name, one.exactly.count))
            for one in found.requests
        ] == sorted(requests.items())
        assert [tuple(one) for one in found.mappings] == mappings
