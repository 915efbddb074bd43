"""The runner of hints itself, where no recording reaches."""

from typing import Any

from asched.core.model.decode import decode
from asched.core.model.pod import Pod
from tests.conformance.hints import would_fit
from tests.conformance.world import build

NODE = {"metadata": {"name": "n1"}, "status": {"allocatable": {"cpu": "4", "pods": "10"}}}
POD: dict[str, Any] = {
    "metadata": {"name": "p", "namespace": "default", "uid": "p"},
    "spec": {
        "schedulerName": "default-scheduler",
        "containers": [{"name": "c"}],
        "volumes": [{"name": "scratch", "ephemeral": {"volumeClaimTemplate": {"spec": {}}}}],
    },
}
#: The claim a generic ephemeral volume would make, made by somebody else.
FOREIGN_CLAIM = {
    "metadata": {"name": "p-scratch", "namespace": "default", "uid": "x"},
    "spec": {"volumeName": "v"},
}


#: VolumeBinding would reject the pod first; without it NodeVolumeLimits answers with an error.
CONFIG = {
    "apiVersion": "kubescheduler.config.k8s.io/v1",
    "kind": "KubeSchedulerConfiguration",
    "profiles": [{"plugins": {"multiPoint": {"disabled": [{"name": "VolumeBinding"}]}}}],
}


def test_a_pod_whose_attempt_ends_in_an_error_would_not_fit() -> None:
    world = build(CONFIG, {"nodes": [NODE], "persistentvolumeclaims": [FOREIGN_CLAIM]})
    assert would_fit(world, decode(Pod, POD)) is False
    without = {**POD, "spec": {**POD["spec"], "volumes": []}}
    assert would_fit(world, decode(Pod, without)) is True
