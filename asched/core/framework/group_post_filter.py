"""Making room for a pod group as a whole: what is asked of whoever can, and what it may try.

One plugin of a profile at most is of this kind, wherever else it stands; it is no extension point
that a configuration could name.

Source  kubernetes/kubernetes v1.36 pkg/scheduler/framework/interface.go (PodGroupPostFilterPlugin)
"""

from abc import abstractmethod
from collections.abc import Generator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol

import msgspec

from asched.core.framework.effects import Effect
from asched.core.framework.placements import Mask
from asched.core.framework.points import Late, Plugin
from asched.core.framework.status import SUCCESS, Status
from asched.core.framework.waiting import WaitingPods
from asched.core.model.workload import PodGroup
from asched.core.state.cluster import Cluster
from asched.core.state.facts import Answer
from asched.core.state.nominated import Nominator
from asched.core.state.pods import PodInfo


class EqualMembers(NamedTuple):
    """Pods of the group that no rule tells apart, by uid.

    `takes`: what each surely needs of a row and holds there, place on axis R (or POD_PLACE) to
    amount; `rows`: bool[N] of those to which every rule agrees that ignores the pods there.
    """

    uids: tuple[str, ...]
    takes: Mapping[int, int]
    rows: Mask


class Probe(NamedTuple):
    """What a trial of the group came to: `places` by uid if it fits, else `status` says why not.

    `steps`: of the budget, that it took.
    """

    status: Status = SUCCESS
    places: Mapping[str, str] = MappingProxyType({})
    steps: float = 0.0


class GroupTrial(Protocol):
    """The group and the cluster, as far as making room may touch it.

    `pods` are those that wait; `needed` of them must get places, or the group has none. `refusal`:
    what it was told when nobody had gone. `moves` counts how often anything happened meanwhile
    that is none of the trial's doing.
    """

    scheduler_name: str
    cluster: Cluster
    nominator: Nominator
    waiting: WaitingPods
    group: PodGroup
    pods: Sequence[PodInfo]
    needed: int
    refusal: str
    moves: int

    def alike(self) -> Sequence[EqualMembers]:
        """All pods, sorted by what they are like."""

    def fits_without(
        self, gone: Sequence[PodInfo], hints: Mapping[str, str]
    ) -> Generator[Effect, Answer, Probe]:
        """Try the group as if these placed pods were gone. Everything is as it was afterwards.

        `hints`: by uid, the nodes that pods of the group are tried on first, as if nominated.
        """

    def charge(self, steps: float, *, is_alone: bool = False) -> Generator[Effect, Answer, None]:
        """Pause if the slice of the budget is used up, then count so many steps. `is_alone`: nobody
        has a turn meanwhile.
        """


class RoomMade(msgspec.Struct, frozen=True):
    """`places`: by uid, where pods of the group may go once those in the way have gone.

    `background` evicts them; None if all are on their way out. `victims` by key.
    """

    status: Status
    places: Mapping[str, str] = msgspec.field(default_factory=dict)
    background: Late | None = None
    victims: tuple[str, ...] = ()


class GroupPostFilterPlugin(Plugin):
    @abstractmethod
    def group_post_filter(self, trial: GroupTrial) -> Generator[Effect, Answer, RoomMade]:
        """Make room for a group that has no place, or say why not."""


def group_post_filter(plugins: Mapping[str, Any]) -> GroupPostFilterPlugin | None:
    """The plugin of a profile that makes room for groups; None if it has none."""
    for plugin in plugins.values():
        if isinstance(plugin, GroupPostFilterPlugin):
            return plugin
    return None
