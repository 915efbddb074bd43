"""What a PostFilter plugin may try and use: the class's verdicts, trials on rows, nominations.

It is the narrow door for making room: reading is free, taking pods away happens under
`Cluster.supposing` and undoes itself, and everything else leaves as effects.
"""

from typing import Any

import msgspec

from asched.core.framework.results.classes import ClassState
from asched.core.framework.results.nominated_filter import NominatedPods
from asched.core.framework.status import Status
from asched.core.framework.waiting import WaitingPods
from asched.core.state.cluster import Cluster
from asched.core.state.nominated import Nominator
from asched.core.state.pods import PodInfo


class Candidate(msgspec.Struct, frozen=True):
    """A node that would have room without its victims, the most important one first.

    `violations`: how many of them a disruption budget does not allow to go.
    """

    node: str
    row: int
    victims: tuple[PodInfo, ...]
    violations: int


class Trial(msgspec.Struct, frozen=True):
    """`seed` decides between equals; `extenders` is the chain of `core/extender`
    (`runner.ExtenderChain`), None if none is set. `in_placements`: the pod's group is tried in
    parts of the cluster, one after the other. `is_of_group`: room is made for the group alone, as a
    whole.
    """

    scheduler_name: str
    cluster: Cluster
    state: ClassState
    nominated_pods: NominatedPods
    nominator: Nominator
    waiting: WaitingPods
    seed: int
    now_s: float
    extenders: Any = None
    in_placements: bool = False
    is_of_group: bool = False

    def status_of(self, pod: PodInfo, row: int) -> Status | None:
        """Whether the pod fits a row as the columns stand now, nominated pods included: None,
        or why.
        """
        return self.nominated_pods.status_with(pod, self.state, row)
