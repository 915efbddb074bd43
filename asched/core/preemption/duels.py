"""Lost rooms: stop evicting for a preemptor whose freed room other schedulers keep taking.

Another scheduler neither sees nor honours the room that we make for a pod. If its pods take it each
time, evicting would never end. A preemptor that still waits although its victims are gone, while a
pod of another scheduler is on a node that they left, has lost a room.

Rules   after ROOMS_LOST_MAX lost rooms no pod is evicted for the preemptor for REST_S. It waits for
        room like other pods, is retried by events and the sweep, and its condition says why.
Bounds  PREEMPTORS_MAX; the one that made room longest ago is forgotten first.
"""

from collections import OrderedDict
from collections.abc import Iterable
from typing import Final, NamedTuple

from asched.core.cluster.cluster import Cluster

ROOMS_LOST_MAX: Final = 2
REST_S: Final = 3600.0
PREEMPTORS_MAX: Final = 4_096


class _Fought(NamedTuple):
    """`rooms`: the nodes that victims left last, each with the number of pods of other schedulers
    that had come there until then. `rests_until_s` is since 1970.
    """

    rooms: tuple[tuple[str, int], ...]
    lost: int = 0
    rests_until_s: float = 0.0


class Duels:
    """Lost rooms by the uid of a preemptor, a pod or a group. For `Cluster.singleton`."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._fought: OrderedDict[str, _Fought] = OrderedDict()

    def __len__(self) -> int:
        return len(self._fought)

    def makes_room(self, uid: str, nodes: Iterable[str]) -> None:
        """Record that pods are evicted from these nodes for a preemptor."""
        known = self._fought.pop(uid, None)
        count_foreign = self._cluster.refusals.foreign_pods
        rooms = tuple((node, count_foreign(node)) for node in dict.fromkeys(nodes))
        self._fought[uid] = _Fought(rooms, known.lost if known is not None else 0)
        if len(self._fought) > PREEMPTORS_MAX:
            self._fought.popitem(last=False)

    def is_resting(self, uid: str) -> bool:
        """Whether evictions for it are suspended; changes nothing."""
        known = self._fought.get(uid)
        return known is not None and known.rests_until_s > self._cluster.wall_clock_s

    def rests(self, uid: str) -> bool:
        """Whether evictions are suspended for a preemptor that fits nowhere although its victims
        are gone; counts a lost room.
        """
        known = self._fought.get(uid)
        if known is None:
            return False
        now_s = self._cluster.wall_clock_s
        count_foreign = self._cluster.refusals.foreign_pods
        if any(count_foreign(node) > before for node, before in known.rooms):
            lost = known.lost + 1
            until_s = now_s + REST_S if lost >= ROOMS_LOST_MAX else 0.0
            known = self._fought[uid] = _Fought((), lost, until_s)
        if known.rests_until_s and now_s >= known.rests_until_s:
            del self._fought[uid]
            return False
        return known.lost >= ROOMS_LOST_MAX
