"""What extensions do in the scheduling cycle, in dry runs and at changes; nothing by default.

`Extensions` (`extension.py`) fills the record with the methods that extensions in use override.
"""

from collections.abc import Callable, Generator, Hashable, Sequence
from typing import Final, NamedTuple

import msgspec

from asched.core.cluster.cluster import ObservedChange
from asched.core.cluster.facts import Answer
from asched.core.cluster.pods import PodInfo
from asched.core.cycle.attempt import Attempt
from asched.core.framework.effects import Effect
from asched.core.framework.placements import Mask
from asched.core.framework.rejection import Rejection
from asched.core.framework.runner import Decision, Runner
from asched.core.model.pod import Pod
from asched.core.queue.queued import QueuedPod

Finding = Generator[Effect, Answer, Decision | Rejection]
#: (attempt, only these rows) -> the steps that find a node
Placing = Callable[[Attempt, Mask | None], Finding]
#: (runner, waiting pod, version of all that filters read)
DryRunOfUnit = Callable[[Runner, QueuedPod, Hashable], bool]


class Addition(NamedTuple):
    """What an extension adds to the condition of pods without a place."""

    text: str
    #: nodes that an autoscaler adds for single pods would not help
    new_nodes_do_not_help: bool = False


NOTHING_TO_ADD: Final = Addition("")


class ExtensionPoints(msgspec.Struct):
    """Methods of the extensions in use, by the names that they have in `Extension`."""

    place: Placing | None = None
    defers_evictions_each: tuple[Callable[[Attempt], bool], ...] = ()
    lacks_places: DryRunOfUnit | None = None
    may_start: DryRunOfUnit | None = None
    rejected: tuple[Callable[[Sequence[Attempt]], Generator[Effect, Answer, Addition]], ...] = ()
    placed: tuple[Callable[[Pod], None], ...] = ()
    saw: tuple[Callable[[ObservedChange], None], ...] = ()
    saw_node: tuple[Callable[[ObservedChange], None], ...] = ()
    yields_to_each: tuple[Callable[[int], bool], ...] = ()
    yields_places_each: tuple[Callable[[PodInfo, Rejection], bool], ...] = ()
    #: adds the extensions that new profiles use
    follow_profiles: Callable[[], None] = lambda: None

    def defers_evictions(self, attempt: Attempt) -> bool:
        return any(defers_evictions(attempt) for defers_evictions in self.defers_evictions_each)

    def yields_to(self, priority: int) -> bool:
        return any(yields_to(priority) for yields_to in self.yields_to_each)

    def yields_places(self, pod: PodInfo, rejection: Rejection) -> bool:
        return any(yields_places(pod, rejection) for yields_places in self.yields_places_each)
