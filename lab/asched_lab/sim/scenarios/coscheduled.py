"""Groups of scheduling.x-k8s.io, for the scenarios that use them."""

from typing import Final

from asched.core.cluster.pod_groups import COSCHEDULING_LABEL
from asched_lab.sim.steps import Json, pod_manifest

#: CPU of every pod: equal sizes leave no unusable fragments.
CPU: Final = "500m"
GROUPS: Final = "podgroups.scheduling.x-k8s.io"
CONFIG: Final[Json] = {
    "profiles": [
        {
            "schedulerName": "default-scheduler",
            "plugins": {
                "multiPoint": {
                    "enabled": [{"name": "Coscheduling"}],
                    "disabled": [{"name": "PrioritySort"}],
                }
            },
        }
    ]
}


def coscheduled(name: str, **spec: object) -> Json:
    """A PodGroup of scheduling.x-k8s.io."""
    return {
        "apiVersion": "scheduling.x-k8s.io/v1alpha1",
        "kind": "PodGroup",
        "metadata": {"name": name, "namespace": "default"},
        "spec": spec,
    }


def labelled(group: str, role: str, cpu: str = CPU) -> Json:
    """A pod of such a group."""
    pod = pod_manifest(f"{group}-{role}", cpu)
    pod["metadata"]["labels"][COSCHEDULING_LABEL] = group
    return pod
