"""DefaultBinder: the pod is bound by a POST to its binding subresource.

Binds     with the pod's uid as precondition; a refusal is an error and the pod is tried again.
Retry     nothing: it rejects no pod. A lost answer is resolved before this plugin sees it.
Cost      one effect.
Source    kubernetes/kubernetes v1.36 pkg/scheduler/framework/plugins/defaultbinder
"""

from collections.abc import Sequence

from asched import names
from asched.core.cluster.facts import Bound, Refused, Unknown
from asched.core.cluster.pods import PodInfo
from asched.core.framework.effects import Bind, PodRef
from asched.core.framework.points import BindPlugin, Late, Registration
from asched.core.framework.status import SUCCESS, failure


class DefaultBinder(BindPlugin):
    name = names.DEFAULT_BINDER

    def registrations(self) -> Sequence[Registration]:
        return ()

    def bind(self, pod: PodInfo, node: str) -> Late:
        metadata = pod.pod.metadata
        ref = PodRef(namespace=metadata.namespace, name=metadata.name, uid=metadata.uid)
        answer = yield Bind(pod=ref, node=node)
        match answer:
            case Bound():
                return SUCCESS
            case Refused(message=message) | Unknown(message=message):
                return failure(message)
        raise TypeError(f"a binding was answered with {type(answer).__name__}")
