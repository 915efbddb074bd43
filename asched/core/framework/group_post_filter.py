"""Preemption for a pod group as a whole: the interface of its plugin, and what it may try.

Since 1.37 a configuration names its plugins at podGroupPostFilter; before, those of postFilter that
implement it serve. A profile uses the first one.

Source  kubernetes/kubernetes v1.36 pkg/scheduler/framework/interface.go (PodGroupPostFilterPlugin)
"""

from abc import abstractmethod
from collections.abc import Generator, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple, Protocol

import msgspec

from asched.core.cluster.cluster import Cluster
from asched.core.cluster.facts import Answer
from asched.core.cluster.nominated import Nominator
from asched.core.cluster.pods import PodInfo
from asched.core.framework.effects import Effect
from asched.core.framework.placements import Mask
from asched.core.framework.points import Late, Plugin
from asched.core.framework.status import SUCCESS, Status
from asched.core.framework.waiting import WaitingPods
from asched.core.model.workload import PodGroup


class EqualMembers(NamedTuple):
    """Pods of the group that no rule distinguishes, by uid.

    `takes`: the minimum that each needs and uses on a row, place on axis R (or POD_PLACE) ->
    amount; `rows`: bool[N] of rows accepted by every rule that ignores the pods on them.
    """

    uids: tuple[str, ...]
    takes: Mapping[int, int]
    rows: Mask


class Probe(NamedTuple):
    """The result of a trial of the group: `places` by uid if it fits, else the `status`.

    `steps`: steps of the budget that it took.
    """

    status: Status = SUCCESS
    places: Mapping[str, str] = MappingProxyType({})
    steps: float = 0.0


class GroupTrial(Protocol):
    """The group and the cluster, within the limits of preemption.

    `pods` are the waiting ones; `needed` of them must get nodes, or none gets one. `refusal`: the
    rejection without evictions. `moves` counts changes of the cluster during the trial that the
    trial itself did not make.
    """

    cluster: Cluster
    nominator: Nominator
    waiting: WaitingPods
    group: PodGroup
    pods: Sequence[PodInfo]
    needed: int
    refusal: str
    moves: int

    def alike(self) -> Sequence[EqualMembers]:
        """All pods, in sets of equal ones."""

    def fits_without(
        self, gone: Sequence[PodInfo], hints: Mapping[str, str]
    ) -> Generator[Effect, Answer, Probe]:
        """Try the group without these placed pods. The state is restored afterwards.

        `hints`: by uid, the nodes on which pods of the group are tried first, as if nominated.
        """

    def charge(self, steps: float, *, is_alone: bool = False) -> Generator[Effect, Answer, None]:
        """Pause if the slice of the budget is used up, then count these steps. `is_alone`: no other
        work runs meanwhile.
        """


class RoomMade(msgspec.Struct, frozen=True):
    """`places`: by uid, where pods of the group may go once the victims have gone.

    `background` evicts them; None if all are terminating. `victims` by key. `violations`: of
    disruption budgets; `disruptions`: victims of groups, each evicted as a whole or by itself.
    """

    status: Status
    places: Mapping[str, str] = msgspec.field(default_factory=dict)
    background: Late | None = None
    victims: tuple[str, ...] = ()
    violations: int = 0
    disruptions: int = 0


class GroupPostFilterPlugin(Plugin):
    @abstractmethod
    def group_post_filter(self, trial: GroupTrial) -> Generator[Effect, Answer, RoomMade]:
        """Make room for a group that does not fit, or return why not."""
