"""The interface of PostFilter plugins: trials on rows, and nominations.

Reading is unrestricted, pods are removed tentatively by `Cluster.supposing`, which restores them,
and everything else is an effect.
"""

from abc import abstractmethod
from typing import Any

import msgspec

from asched.core.cluster.cluster import Cluster
from asched.core.cluster.nominated import Nominator
from asched.core.cluster.pods import PodInfo
from asched.core.framework.status import Status
from asched.core.framework.waiting import WaitingPods


class Candidate(msgspec.Struct, frozen=True):
    """A node that would have room without its victims, the most important one first.

    `violations`: number of victims whose disruption budget does not allow an eviction.
    """

    node: str
    row: int
    victims: tuple[PodInfo, ...]
    violations: int


class Trial(msgspec.Struct, frozen=True):
    """`seed` decides ties; `extenders` is the chain of `core/extender`
    (`runner.ExtenderChain`), None without extenders. `in_placements`: the pod's group is tried in
    parts of the cluster, one after the other. `is_of_group`: room is made only for the group as a
    whole.
    """

    scheduler_name: str
    cluster: Cluster
    nominator: Nominator
    waiting: WaitingPods
    seed: int
    now_s: float
    extenders: Any = None
    in_placements: bool = False
    is_of_group: bool = False

    @abstractmethod
    def status_of(self, pod: PodInfo, row: int) -> Status | None:
        """Why the pod does not fit a row with the columns as they are now, nominated pods included;
        None if it fits.
        """
