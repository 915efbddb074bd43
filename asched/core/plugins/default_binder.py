"""DefaultBinder: bind the pod by a POST to its binding subresource.

Binds     with the pod's uid and version as preconditions; a refusal is an error and the pod is
          tried again.
Retry     nothing: it rejects no pod. A lost answer, or a changed pod, is resolved before this
          plugin sees it.
Cost      one effect.
Source    kubernetes/kubernetes v1.36 pkg/scheduler/framework/plugins/defaultbinder
"""

from collections.abc import Sequence

from asched import names
from asched.core.cluster.facts import Bound, Refused, Unknown
from asched.core.cluster.pods import PodInfo
from asched.core.framework.effects import Bind, ref_of
from asched.core.framework.points import BindPlugin, Late
from asched.core.framework.registrations import Registration
from asched.core.framework.status import SUCCESS, failure


class DefaultBinder(BindPlugin):
    name = names.DEFAULT_BINDER

    def registrations(self) -> Sequence[Registration]:
        return ()

    def bind(self, pod: PodInfo, node: str) -> Late:
        answer = yield Bind(pod=ref_of(pod.pod), node=node)
        match answer:
            case Bound():
                return SUCCESS
            case Refused(message=message) | Unknown(message=message):
                return failure(message)
        raise TypeError(f"a binding was answered with {type(answer).__name__}")
