"""Requests of the what-if planner."""


def a_request(until: str, *ended: str, node: str = "n1") -> tuple[dict, dict]:
    """An accepted request with two places of a core and a half on a node."""
    container = {"name": "main", "resources": {"requests": {"cpu": "1500m"}}}
    template = {
        "apiVersion": "v1",
        "kind": "PodTemplate",
        "metadata": {"name": "worker", "namespace": "default"},
        "template": {
            "spec": {"schedulerName": "default-scheduler", "containers": [container]},
        },
    }
    types = ("Accepted", "Provisioned", *ended)
    request = {
        "apiVersion": "autoscaling.x-k8s.io/v1",
        "kind": "ProvisioningRequest",
        "metadata": {"name": "job", "namespace": "default", "uid": "u"},
        "spec": {
            "provisioningClassName": "check-and-hold.asched.dev",
            "podSets": [{"podTemplateRef": {"name": "worker"}, "count": 2}],
        },
        "status": {
            "conditions": [{"type": type_, "status": "True"} for type_ in types],
            "provisioningClassDetails": {"heldUntil": until, "places-0": f"0/{node}*2"},
        },
    }
    return template, request
