"""Pods that consume a ProvisioningRequest: which of them have a node, assumed or confirmed.

A pod names the request in its namespace by an annotation, in one of two spellings.

Bounds  one entry per placed pod with the annotation, and per such pod moved since the last turn.
Source  kubernetes/autoscaler cluster-autoscaler/provisioningrequest/pods (the annotations)
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from asched.core.cluster.pods import PodInfo
from asched.core.model.pod import Pod

CONSUMES: Final = "autoscaling.x-k8s.io/consume-provisioning-request"
CONSUMES_OLD: Final = "cluster-autoscaler.kubernetes.io/consume-provisioning-request"
_NO_PODS: Final[Mapping[str, PodInfo]] = MappingProxyType({})


def request_of(pod: Pod) -> str:
    """The key "namespace/name" of the request that a pod consumes, or empty."""
    said = pod.metadata.annotations or {}
    name = said.get(CONSUMES) or said.get(CONSUMES_OLD)
    return f"{pod.metadata.namespace}/{name}" if name else ""


class Consumers:
    """Only the cluster moves pods. The owner of the holds takes entries out of `moved`."""

    def __init__(self) -> None:
        self._placed: dict[str, dict[str, PodInfo]] = {}  # request -> uid -> pod
        self._request_of: dict[str, str] = {}
        #: pods that got or lost a node, by uid
        self.moved: dict[str, None] = {}

    def of(self, request: str) -> Mapping[str, PodInfo]:
        """The placed pods of a request by uid."""
        return self._placed.get(request, _NO_PODS)

    def request_of(self, uid: str) -> str:
        """The request of a placed pod, or empty."""
        return self._request_of.get(uid, "")

    def place(self, info: PodInfo) -> None:
        key = request_of(info.pod)
        if key:
            self._request_of[info.pod.uid] = key
            self._placed.setdefault(key, {})[info.pod.uid] = info
            self.moved[info.pod.uid] = None

    def displace(self, uid: str) -> None:
        key = self._request_of.pop(uid, None)
        if key is None:
            return
        pods = self._placed[key]
        del pods[uid]
        if not pods:
            del self._placed[key]
        self.moved[uid] = None
