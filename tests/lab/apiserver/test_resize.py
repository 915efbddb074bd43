"""Updates of a pod through its doors: what a client leaves out, and what `resize` lets through.

Source  kubernetes/kubernetes v1.36 plugin/pkg/admission/priority, pkg/registry/core/pod/strategy.go
        (podResizeStrategy), pkg/apis/core/validation (ValidatePodResize), pkg/apis/core/v1
"""

from typing import Any

import pytest

from asched_lab.apiserver.server import ApiServer
from tests.lab.apiserver.client import PODS, Client, a_binding, a_node

RESIZE = f"{PODS}/web/resize"


def manifest(*containers: dict[str, Any], **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "web"},
        "spec": {"containers": list(containers), **spec},
    }


def container(name: str = "c", image: str = "pause:1", **requests: Any) -> dict[str, Any]:
    return {"name": name, "image": image, "resources": {"requests": requests}}


@pytest.fixture
async def placed(server: ApiServer, client: Client) -> Client:
    """A pod on n1 that asks for a tenth of a milli of CPU and 30 MiB."""
    server.create("nodes", a_node("n1"))
    await client.post(PODS, manifest(container(cpu=0.0001, memory="30Mi")))
    await client.post(f"{PODS}/web/binding", a_binding("web", "n1"))
    return client


async def test_an_update_may_leave_out_what_admission_filled_in(placed: Client) -> None:
    body = manifest(container(cpu=0.0001, memory="30Mi"), nodeName="n1")
    status, pod = await placed.ask("PUT", f"{PODS}/web", body)

    assert status == 200
    assert (pod["spec"]["priority"], pod["spec"]["preemptionPolicy"]) == (0, "PreemptLowerPriority")


async def test_amounts_change_through_the_door_resize_alone(placed: Client) -> None:
    smaller = manifest(container(image="other", cpu=0.0001, memory="1Mi"), nodeName="elsewhere")
    refused, _ = await placed.ask("PUT", f"{PODS}/web", smaller)
    assert refused == 422

    status, pod = await placed.ask("PUT", RESIZE, smaller)

    assert status == 200
    (changed,) = pod["spec"]["containers"]
    assert changed["resources"]["requests"] == {"cpu": "1m", "memory": "1Mi"}
    assert (changed["image"], pod["spec"]["nodeName"]) == ("pause:1", "n1")
    assert pod["metadata"]["generation"] == 2


@pytest.mark.parametrize(
    ("containers", "complaint"),
    [
        (
            [container(cpu="1m", memory="1Mi"), container("d")],
            "spec.containers: Forbidden: containers may not be added or removed on resize",
        ),
        (
            [container("d", cpu="1m", memory="1Mi")],
            "spec.containers[0].name: Forbidden: containers may not be renamed or reordered",
        ),
        (
            [container(cpu="1m")],
            "spec.containers[0].resources.requests: Forbidden: resource requests cannot be removed",
        ),
        (
            [container(cpu="1m", memory="1Mi", **{"example.com/gpu": "1"})],
            "only cpu and memory resources are mutable",
        ),
        (
            [
                {
                    **container(cpu="1m", memory="1Mi"),
                    "resources": {
                        "requests": {"cpu": "1m", "memory": "1Mi"},
                        "limits": {"cpu": "1m", "memory": "1Mi"},
                    },
                }
            ],
            "Pod QOS Class may not change as a result of resizing",
        ),
    ],
)
async def test_what_a_resize_may_not_do(
    placed: Client, containers: list[dict[str, Any]], complaint: str
) -> None:
    status, answer = await placed.ask("PUT", RESIZE, manifest(*containers))

    assert status == 422
    assert complaint in answer["message"]
