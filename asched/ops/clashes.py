"""Detect pods of ours that a kubelet refused: the node was full, or not as it was cached.

A refused pod fails without ever having run, so it disappears from our watch (which excludes
finished pods) in its former state: pending on its node, without a start time. Only pods deleted by
force do the same. Such a pod is read once; a refusal in its status is counted and logged, since a
clash with another scheduler shows nowhere else. The machine is notified, too, and keeps pods of the
same owner from that node for a while (`core/cluster/refusals.py`).

Pods that this process did not place are ignored: who creates a pod may write its node, so that such
refusals cost nothing and prove nothing.

Bounds  QUEUE_MAX pods wait to be read, further ones are ignored; one is read at a time.
Source  kubernetes/kubernetes v1.36 pkg/kubelet/lifecycle/predicate.go, pkg/kubelet/kubelet.go
        (rejectPod)
"""

import asyncio
import logging
from collections.abc import Callable
from typing import Final

import msgspec

from asched.core.cluster.facts import Fact, Gone
from asched.core.cycle.orders import KubeletRefused
from asched.core.model.kinds import POD
from asched.core.model.meta import Record
from asched.core.model.pod import Pod
from asched.kube.errors import ClientError
from asched.kube.session import Session
from asched.kube.writes import quoted

log = logging.getLogger("asched.host")

#: A guess: another scheduler that places at random causes some refusals per second.
QUEUE_MAX: Final = 1_000

#: `OutOfcpu`, `OutOfpods`, `OutOfexample.com/gpu`: the node is full.
FULL: Final = "OutOf"
#: Other reasons for which a kubelet rejects a pod.
REASONS: Final = frozenset(
    {
        "InvalidNodeInfo",
        "NodeAffinity",
        "NodeName",
        "NodePorts",
        "PodFeatureUnsupported",
        "PodOSNotSupported",
        "PodOSSelectorNodeLabelDoesNotMatch",
        "TaintToleration",
        "TopologyAffinityError",
        "UnexpectedAdmissionError",
    }
)
#: "OutOf" and the longest name of a resource; a kubelet writes no longer reason.
REASON_CHARS_MAX: Final = len(FULL) + 317
MESSAGE_CHARS_MAX: Final = 1_024


class Meta(msgspec.Struct, frozen=True):
    uid: str = ""


class PodEndStatus(msgspec.Struct, frozen=True):
    phase: str = ""
    reason: str = ""
    message: str = ""


class PodEnd(msgspec.Struct, frozen=True):
    """The status of a finished pod. Cached pods do not have these fields."""

    metadata: Meta = Meta()
    status: PodEndStatus = PodEndStatus()


def is_refusal(phase: str, reason: str) -> bool:
    if phase != "Failed" or len(reason) > REASON_CHARS_MAX:
        return False
    return reason.startswith(FULL) or reason in REASONS


class Clashes:
    """`has_chosen`: whether this process chose the node of the pod with a uid; `refused` counts by
    reason. Spawn `run`; observes facts about pods.
    """

    def __init__(
        self,
        session: Session,
        *,
        has_chosen: Callable[[str], bool],
        may_act: Callable[[], bool],
        refused: Callable[[str], None],
    ) -> None:
        self._session = session
        self._has_chosen = has_chosen
        self._may_act = may_act
        self._refused = refused
        self._put: Callable[[Fact], None] = lambda _: None
        self._suspects: asyncio.Queue[Pod] = asyncio.Queue(QUEUE_MAX)

    def observing(self, put: Callable[[Fact], None]) -> Callable[[Fact], None]:
        self._put = put

        def hear(fact: Fact) -> None:
            put(fact)
            if isinstance(fact, Gone) and fact.kind is POD:
                self._suspect(fact.obj)

        return hear

    def _suspect(self, pod: Record) -> None:
        assert isinstance(pod, Pod)
        has_run = pod.status.phase not in ("", "Pending") or pod.status.start_time
        if not pod.spec.node_name or has_run or pod.is_terminating:
            return
        if not self._has_chosen(pod.uid):  # the machine has not received the fact yet
            return
        if self._may_act() and not self._suspects.full():
            self._suspects.put_nowait(pod)

    async def run(self) -> None:
        """Read suspects one after the other, until cancelled."""
        while True:
            pod = await self._suspects.get()
            try:
                await self._check(pod)
            except ClientError as error:  # usually deleted
                log.debug("pod %s cannot be read any more: %s", pod.key, error)

    async def _check(self, pod: Pod) -> None:
        path = POD.object_path(quoted(pod.metadata.namespace), quoted(pod.metadata.name))
        end = await self._session.get_as(path, PodEnd)
        reason = end.status.reason
        if end.metadata.uid != pod.uid or not is_refusal(end.status.phase, reason):
            return
        controller = pod.metadata.controller
        self._put(
            KubeletRefused(
                namespace=pod.metadata.namespace,
                name=pod.metadata.name,
                uid=pod.uid,
                owner=controller.uid if controller is not None else "",
                node=pod.spec.node_name,
                reason=reason,
                reporter=pod.spec.scheduler_name,
            )
        )
        self._refused(reason)
        extra = {
            "pod": pod.key,
            "node": pod.spec.node_name,
            "schedulerName": pod.spec.scheduler_name,
            "reason": reason,
            "err": end.status.message[:MESSAGE_CHARS_MAX],
        }
        log.warning("A kubelet refused a pod", extra=extra)
