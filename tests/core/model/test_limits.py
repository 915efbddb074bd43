"""What a pod may use at most, case by case."""

import copy
import random
from typing import Any

import pytest

from asched.core.model.decode import decode
from asched.core.model.limits import exact_limits
from asched.core.model.pod import Pod
from asched.core.model.requests import exact_requests

NANO = 10**9


def a_pod(spec: dict[str, Any]) -> Pod:
    return decode(Pod, {"metadata": {"name": "p"}, "spec": spec})


def a_container(cpu: str = "", **more: Any) -> dict[str, Any]:
    limits = {"cpu": cpu} if cpu else {}
    return {"name": "c", "image": "i", "resources": {"limits": limits}, **more}


@pytest.mark.parametrize(
    ("why", "spec", "cpu"),
    [
        ("containers add up", {"containers": [a_container("1"), a_container("500m")]}, 1.5),
        ("without limits there is none", {"containers": [a_container()]}, None),
        (
            "the largest init container counts where it is more",
            {
                "containers": [a_container("1")],
                "initContainers": [a_container("3"), a_container("2")],
            },
            3,
        ),
        (
            "a sidecar runs beside containers and later init containers",
            {
                "containers": [a_container("1")],
                "initContainers": [a_container("1", restartPolicy="Always"), a_container("4")],
            },
            5,
        ),
        (
            "the pod's own limit stands for all",
            {"containers": [a_container("1")], "resources": {"limits": {"cpu": "7"}}},
            7,
        ),
        (
            "overhead comes on top of what is limited",
            {"containers": [a_container("1")], "overhead": {"cpu": "250m", "memory": "1"}},
            1.25,
        ),
        (
            "a limit of nothing is no limit, and stays none",
            {"containers": [a_container("0")], "overhead": {"cpu": "250m"}},
            0,
        ),
    ],
)
def test_limits(why: str, spec: dict[str, Any], cpu: float | None) -> None:
    limits = exact_limits(a_pod(spec))

    assert limits == ({} if cpu is None else {"cpu": cpu * NANO}), why


@pytest.mark.parametrize("seed", range(60))
def test_limits_add_up_as_requests_do(seed: int) -> None:
    rng = random.Random(seed)

    def amounts() -> dict[str, str]:
        return {n: rng.choice(("0", "1n", "250m", "2")) for n in ("cpu", "memory", "a.b/c")}

    def containers(most: int) -> list[dict[str, Any]]:
        always = [{}, {"restartPolicy": "Always"}]
        return [{"name": "c", **rng.choice(always)} for _ in range(rng.randint(0, most))]

    spec: dict[str, Any] = {"containers": containers(2), "initContainers": containers(3)}
    asking = {"limits": copy.deepcopy(spec), "requests": copy.deepcopy(spec)}
    for where, written in spec.items():
        for at in range(len(written)):
            some = {n: a for n, a in amounts().items() if rng.random() < 0.5}
            for member, of_pod in asking.items():
                of_pod[where][at]["resources"] = {member: some}
    if rng.random() < 0.3:
        for member, of_pod in asking.items():
            of_pod["resources"] = {member: {"cpu": "3"}, "requests": {"cpu": "3"}}
    assert exact_limits(a_pod(asking["limits"])) == exact_requests(a_pod(asking["requests"]))


def test_a_pod_that_says_nothing_is_not_limited() -> None:
    assert exact_limits(a_pod({})) == {}
    assert exact_limits(a_pod({"resources": {"requests": {"cpu": "1"}}})) == {}
