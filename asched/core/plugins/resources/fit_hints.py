"""Which changes may help a pod that NodeResourcesFit rejected.

A deleted pod always may; a pod that shrinks, if it releases something that the waiting pod needs. A
node may if the pod would fit it were it empty, and it is new or has grown in what the pod needs.
Ignored resources are not ignored here, as in upstream; `overlooked` corrects that. Of thousands of
waiting pods, a node concerns those that request no more CPU and memory than it has, found by the
size of both (`_sizes_sought`).

Source  kubernetes/kubernetes v1.36 pkg/scheduler/framework/plugins/noderesources/fit.go
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import product
from typing import Final

from asched.core.cluster.changes import Action, Trigger
from asched.core.cluster.cluster import Cluster
from asched.core.cluster.nodes import FIXED_RESOURCES
from asched.core.cluster.pods import PodClass
from asched.core.framework.per_class import PerClass, PerPod
from asched.core.framework.registrations import Concerns, Hint, Registration
from asched.core.model.claim import DeviceClass
from asched.core.model.kinds import DEVICE_CLASS, NODE, POD
from asched.core.model.node import Node
from asched.core.model.pod import Pod
from asched.core.model.quantity import milli, whole
from asched.core.model.requests import CPU, MEMORY, PODS, accounted_requests, is_scalar
from asched.core.plugins.devices.amounts import Delegation, names_of

Amounts = Mapping[str, int]
#: Powers of two of milli-CPU, and of four of bytes.
Size = tuple[int, int]

#: Key of pods that request an ignored resource.
_IGNORED: Final = ("ignored",)


class FitHints:
    """The hint functions, with the requests of waiting pods."""

    def __init__(
        self,
        cluster: Cluster,
        delegation: Delegation,
        is_ignored: Callable[[str], bool] = lambda _: False,
    ) -> None:
        self._delegation = delegation
        self._is_ignored = is_ignored
        of_class, classes = PerClass(_requests_of), cluster.classes
        #: per pod: computing its class is the largest part of a hint
        self._requests_of = PerPod(cluster, lambda pod: of_class(classes.class_of(pod)))

    def registrations(self) -> Sequence[Registration]:
        pod = Trigger(POD.resource, Action.DELETE | Action.UPDATE_POD_SCALE_DOWN)
        node = Trigger(NODE.resource, Action.ADD | Action.UPDATE_NODE_ALLOCATABLE)
        device_class = Trigger(DEVICE_CLASS.resource, Action.ADD | Action.UPDATE)
        of_sizes = Concerns(self._sizes_sought, self._sizes_offered)
        return (
            Registration(pod, self._pod_changed),
            Registration(node, self._node_changed, of_sizes),
            Registration(device_class, self._device_class_changed),
        )

    def extra_events(self) -> Sequence[Registration]:
        node = Trigger(NODE.resource, Action.ADD | Action.UPDATE_NODE_ALLOCATABLE)
        of_ignored = Concerns(self._ignored_sought, lambda *_: _IGNORED)
        return (Registration(node, self._wants_ignored, of_ignored),)

    def _wants_ignored(self, pod: Pod, old: Node | None, new: Node) -> Hint:
        """The node lacks only resources that are ignored."""
        wants = any(map(self._is_ignored, self._requests_of(pod)))
        return Hint.QUEUE if wants else Hint.SKIP

    def _ignored_sought(self, pod: Pod) -> Collection[str]:
        return _IGNORED if any(map(self._is_ignored, self._requests_of(pod))) else ()

    def _sizes_sought(self, pod: Pod) -> Collection[Size]:
        wanted = self._requests_of(pod)
        return (_size(wanted.get(CPU, 0), wanted.get(MEMORY, 0)),)

    def _sizes_offered(self, old: Node | None, new: Node) -> Collection[Size]:
        """Sizes up to the node's own; none for a node that has not grown."""
        offered = new.status.allocatable or {}
        if old is not None and not self._delegation.classes:
            before = old.status.allocatable or {}
            if not any(_amount(offered, name) > _amount(before, name) for name in offered):
                return ()
        cpu, memory = _size(_amount(offered, CPU), _amount(offered, MEMORY))
        return tuple(product(range(cpu + 1), range(memory + 1)))

    def _pod_changed(self, pod: Pod, old: Pod, new: Pod | None) -> Hint:
        if new is None:
            held_place = old.spec.node_name or old.status.nominated_node_name
            return Hint.QUEUE if held_place else Hint.SKIP
        if new.uid == pod.uid:
            return Hint.QUEUE
        if not new.spec.node_name:
            return Hint.SKIP
        before, after = accounted_requests(old), accounted_requests(new)
        gave_back = any(before.get(name, 0) > after.get(name, 0) for name in self._requests_of(pod))
        return Hint.QUEUE if gave_back else Hint.SKIP

    def _node_changed(self, pod: Pod, old: Node | None, new: Node) -> Hint:
        wanted = self._requests_of(pod)
        offered = new.status.allocatable or {}
        if _amount(offered, PODS) < 1:
            return Hint.SKIP
        classes = self._delegation.classes
        delegated = {n for n in wanted if n in classes and not _amount(offered, n)}
        if any(_amount(offered, n) < amount for n, amount in wanted.items() if n not in delegated):
            return Hint.SKIP
        if old is None or delegated:
            return Hint.QUEUE
        before = old.status.allocatable or {}
        has_grown = any(_amount(offered, n) > _amount(before, n) for n in (PODS, *wanted))
        return Hint.QUEUE if has_grown else Hint.SKIP

    def _device_class_changed(self, pod: Pod, old: DeviceClass | None, new: DeviceClass) -> Hint:
        gained = names_of(new) - (names_of(old) if old is not None else set())
        return Hint.QUEUE if gained & self._requests_of(pod).keys() else Hint.SKIP


def _requests_of(cls: PodClass) -> Amounts:
    """The requests, without zeroes and ignored names."""
    return {
        name: amount
        for name, amount in cls.requests.items()
        if amount > 0 and (name in FIXED_RESOURCES or is_scalar(name))
    }


def _size(milli_cpu: int, memory_bytes: int) -> Size:
    """Monotonic in both amounts."""
    return milli_cpu.bit_length(), memory_bytes.bit_length() // 2


def _amount(allocatable: Mapping[str, str | int | float], name: str) -> int:
    amount = allocatable.get(name, 0)
    return milli(amount) if name == CPU else whole(amount)
