"""What a pod may use at most, case by case."""

from typing import Any

import pytest

from asched.core.model.decode import decode
from asched.core.model.pod import Pod
from asched.core.model.requests import exact_limits

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
