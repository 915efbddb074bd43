"""Binding by an extender: it calls the API itself, and this plugin checks the outcome.

    asked ──yes──> the watch shows the pod on its node ─────────────> bound
      │              └─ silence for SEEN_S: read the pod ─ placed ──> bound
      │                                                  └ pending ─> failure, the place is free
      ├──no──────────────────────────────────────────────────────> failure
      └──nothing of use─> read the pod, as above: it may be bound all the same. Without an
                          answer to the read it still may be: the place is reserved for
                          LANDS_WITHIN_S

kube-scheduler trusts a positive answer and keeps the node assumed; a pod that was not bound then
waits forever, and its room stays reserved.

Bounds  SEEN_S for the watch; pauses between reads that fail double up to READ_AGAIN_S_MAX.
Source  kubernetes/kubernetes v1.36 pkg/scheduler/extender.go (Bind)
"""

from collections.abc import Generator
from typing import Final

from asched import names
from asched.core.cluster.cluster import Cluster
from asched.core.cluster.facts import Answer, ReadGone, ReadPlaced, Refused, Replied, Unknown
from asched.core.cluster.pods import PodInfo
from asched.core.config.v1 import Extender
from asched.core.extender import wire
from asched.core.extender.wire import WireError
from asched.core.framework.effects import (
    LANDS_WITHIN_S,
    AskExtender,
    Effect,
    PodRef,
    ReadPod,
    WaitFor,
)
from asched.core.framework.points import BindPlugin, Late
from asched.core.framework.status import SKIP, SUCCESS, Status, failure
from asched.core.model.kinds import POD

#: A watch rarely lags by more; then the pod is read. A guess.
SEEN_S: Final = 5.0
#: Pauses between unanswered reads, as for bindings of our own.
READ_AGAIN_S: Final = 0.2
READ_AGAIN_S_MAX: Final = 5.0


class ExtenderBinder(BindPlugin):
    """Replaces the bind plugins; an ignorable extender falls back to them when it fails."""

    name = names.EXTENDER

    def __init__(self, config: Extender, cluster: Cluster) -> None:
        self._config = config
        self._cluster = cluster

    def bind(self, pod: PodInfo, node: str) -> Late:
        body = wire.binding_arguments(pod.pod, node)
        answer = yield AskExtender(extender=self._config, verb=self._config.bind_verb, body=body)
        match answer:
            case Replied(value=value):
                try:
                    error = wire.binding_error(value)
                except WireError as fault:
                    error = str(fault)
                if error:
                    return self._failed(error)
                prefix = self._config.url_prefix
                lost = f"extender {prefix} reported the pod as bound, but the pod has no node"
                return (yield from self._check(pod, node, lost, patience_s=SEEN_S))
            case Refused(code=0, message=message):  # the request was not delivered
                return self._failed(message)
            case Refused(message=message) | Unknown(message=message):
                held_s = LANDS_WITHIN_S if isinstance(answer, Unknown) else 0.0
                return (yield from self._check(pod, node, message, held_s=held_s))
        raise TypeError(f"an extender was answered for with {type(answer).__name__}")

    def _failed(self, message: str) -> Status:
        return SKIP if self._config.ignorable else failure(message)

    def _check(
        self,
        pod: PodInfo,
        node: str,
        otherwise: str,
        *,
        patience_s: float = 0.0,
        held_s: float = 0.0,
    ) -> Generator[Effect, Answer, Status]:
        """Check whether the pod is on its node; `otherwise` is the message if it has none.

        The watch has `patience_s`; a pod that has no node then may still get it for `held_s`.
        """
        if patience_s and not self._is_seen(pod):
            yield self._wait(pod, patience_s)
        metadata = pod.pod.metadata
        ref = PodRef(namespace=metadata.namespace, name=metadata.name, uid=metadata.uid)
        pause_s = READ_AGAIN_S
        while True:
            now = self._cluster.pods_seen.get(pod.pod.key)
            if now is not None and now.uid == pod.pod.uid and now.spec.node_name:
                return self._placed(now.spec.node_name, node)
            answer = yield ReadPod(pod=ref)
            match answer:
                case ReadPlaced(node=found):
                    return self._placed(found, node)
                case ReadGone():
                    return failure(f'pods "{metadata.name}" not found')
                case Unknown():
                    yield self._wait(pod, pause_s)
                    pause_s = min(2 * pause_s, READ_AGAIN_S_MAX)
                case _ if held_s:
                    yield self._wait(pod, held_s)
                    held_s = 0.0
                case _:
                    return self._failed(otherwise)

    def _placed(self, bound_to: str, node: str) -> Status:
        if bound_to == node:
            return SUCCESS
        prefix = self._config.url_prefix
        return failure(f'extender {prefix} bound the pod to node "{bound_to}" instead of "{node}"')

    def _wait(self, pod: PodInfo, timeout_s: float) -> WaitFor:
        on = ((POD.resource, pod.pod.key),)
        return WaitFor(ready=lambda: self._is_seen(pod), timeout_s=timeout_s, on=on)

    def _is_seen(self, pod: PodInfo) -> bool:
        """Whether the watch has shown the pod's binding or deletion."""
        now = self._cluster.pods_seen.get(pod.pod.key)
        return now is None or now.uid != pod.pod.uid or bool(now.spec.node_name)
