"""What a hint derives from one waiting pod, made once and kept while that version of it waits.

Hints are asked about every resting pod for every change, so compiling a pod's selectors each time
would be most of the cost.

Bounds   PODS_MAX entries for each use; a full memory is emptied.
"""

from collections.abc import Callable
from typing import Final, Generic, TypeVar

from asched.core.model.pod import Pod

T = TypeVar("T")

#: Pods remembered by one plugin. A guess: as many rarely rest at the same time.
PODS_MAX: Final = 16_384


class PerPod(Generic[T]):
    """`memory(pod)` is `derive(pod)`, derived once for each version of the pod."""

    __slots__ = ("_derive", "_known")

    def __init__(self, derive: Callable[[Pod], T]) -> None:
        self._derive = derive
        self._known: dict[str, tuple[Pod, T]] = {}

    def __call__(self, pod: Pod) -> T:
        known = self._known.get(pod.uid)
        if known is not None and known[0] is pod:
            return known[1]
        made = self._derive(pod)
        if len(self._known) >= PODS_MAX:
            self._known.clear()
        self._known[pod.uid] = (pod, made)
        return made
