"""Data that a plugin derives from pods, cached.

    PerClass, PerKey   from a class of pods, as long as the class exists; the data must not refer to
                       the class, or neither would ever be freed
    Latest             from the pod of an attempt, for its extension points, while neither the pod
                       nor any object beside pods and nodes has changed
    PerPod             from a waiting pod, one entry per version of the pod, for hints

Hints are asked about every unschedulable pod for every change, so compiling a pod's selectors each
time would be most of the cost.

Bounds   twice the existing pods, or PODS_MIN: then entries of deleted pods are dropped.
"""

from collections.abc import Callable, Hashable
from typing import Any, Final, Generic, TypeVar
from weakref import WeakValueDictionary, ref

from asched.core.cluster.cluster import Cluster
from asched.core.cluster.pods import Memory, PodClass, PodInfo
from asched.core.framework.points import Plugin
from asched.core.model.pod import Pod
from asched.core.model.quantity import QuantityError

T = TypeVar("T")
#: Amounts that cannot be parsed raise.
RAISED: Final = object()


class PerClass(Generic[T]):
    """`memory(cls)` is `derive(cls)`, cached.

    `unreadable`: the result for pods with an amount that cannot be parsed. Plugins that read pods
    on nodes need it, since such a pod must not fail the attempt of another one.
    If `derive` is a plugin's own method, it does not keep the plugin alive; other owners it does.
    """

    def __init__(self, derive: Callable[[PodClass], T], unreadable: Any = RAISED) -> None:
        owner = getattr(derive, "__self__", None)
        is_weak = isinstance(owner, Plugin)
        self._plugin = ref(owner) if is_weak else None
        self._derive: Any = getattr(derive, "__func__", None) if is_weak else derive
        self._known: dict[int, T] = {}
        self._me: ref[Memory] = ref(self)
        self._unreadable = unreadable

    def __call__(self, cls: PodClass) -> T:
        number, known = cls.number, self._known
        if number in known:  # unknown half of the time if no two pods are equal
            return known[number]
        plugin = self._plugin
        try:
            made: T = self._derive(cls) if plugin is None else self._derive(plugin(), cls)
        except QuantityError:
            if self._unreadable is RAISED:
                raise
            made = self._unreadable
        known[number] = made
        cls.known_by.append(self._me)
        return made

    def __len__(self) -> int:
        return len(self._known)

    def forget(self, number: int) -> None:
        """The class with this number was freed."""
        self._known.pop(number, None)


class PerKey(PerClass[T]):
    """`memory(cls)` is `derive(cls)`, cached for all classes with an equal `key_of(cls)`.

    Derived data must allow weak references and depend on the key only.
    """

    def __init__(
        self, key_of: Callable[[PodClass], Hashable], derive: Callable[[PodClass], T]
    ) -> None:
        super().__init__(derive)
        self._key_of, self._make = key_of, derive
        self._shared: WeakValueDictionary[Hashable, T] = WeakValueDictionary()

    def __call__(self, cls: PodClass) -> T:
        number, known = cls.number, self._known
        if number in known:
            return known[number]
        key = self._key_of(cls)
        found = self._shared.get(key)
        if found is None:
            found = self._shared[key] = self._make(cls)
        known[number] = found
        cls.known_by.append(self._me)
        return found


class Latest(Generic[T]):
    """`latest(pod)` is `derive(pod)`, derived once per pod and epoch of the cluster."""

    def __init__(self, cluster: Cluster, derive: Callable[[PodInfo], T]) -> None:
        self._cluster = cluster
        self._derive = derive
        self._pod: PodInfo | None = None
        self._epoch = -1
        self._found: T

    def __call__(self, pod: PodInfo) -> T:
        epoch = self._cluster.epoch
        if pod is not self._pod or epoch != self._epoch:
            self._found = self._derive(pod)
            self._pod, self._epoch = pod, epoch
        return self._found


#: Below this number, entries of deleted pods are not searched for.
PODS_MIN: Final = 1_024


class PerPod(Generic[T]):
    """`memory(pod)` is `derive(pod)`, derived once for each version of the pod."""

    def __init__(self, cluster: Cluster, derive: Callable[[Pod], T]) -> None:
        self._cluster = cluster
        self._derive = derive
        self._known: dict[str, tuple[Pod, T]] = {}
        self._sweep_at = PODS_MIN

    def __call__(self, pod: Pod) -> T:
        known = self._known.get(pod.metadata.uid)
        if known is not None and known[0] is pod:
            return known[1]
        made = self._derive(pod)
        if len(self._known) >= self._sweep_at:
            self._sweep()
        self._known[pod.metadata.uid] = (pod, made)
        return made

    def _sweep(self) -> None:
        seen = self._cluster.pods_seen
        self._known = {
            uid: kept for uid, kept in self._known.items() if seen.get(kept[0].key) is kept[0]
        }
        self._sweep_at = max(PODS_MIN, 2 * len(self._known))
