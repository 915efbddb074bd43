"""Places that pods gave back, and the waiting pods that are notified of them."""

from collections.abc import Generator, Iterator
from typing import Final

from asched.core.cluster.changes import ASSIGNED_POD_DELETE, Change
from asched.core.cluster.facts import Answer
from asched.core.cycle.context import SchedulerContext
from asched.core.framework.effects import Effect, Pause
from asched.core.model.pod import Pod

#: Budget steps to notify waiting pods of a change, or to report the result of a group's pod.
TELL_STEPS: Final = 5


class FreedPlaces:
    """Places that pods gave back, collected to one change for each class of equal pods."""

    def __init__(self) -> None:
        #: number of a class -> one of its pods, and the nodes where places became free
        self.nodes: dict[int, tuple[Pod, set[str]]] = {}

    def __len__(self) -> int:
        return len(self.nodes)

    def add(self, class_number: int, pod: Pod, node: str) -> None:
        self.nodes.setdefault(class_number, (pod, set()))[1].add(node)

    def take_over(self, other: "FreedPlaces") -> None:
        """Move the places of another collection to this one."""
        for number, (pod, nodes) in other.nodes.items():
            self.nodes.setdefault(number, (pod, set()))[1].update(nodes)
        other.nodes.clear()

    def take(self) -> Iterator[Change]:
        """Yield and remove the changes."""
        while self.nodes:
            pod, nodes = self.nodes.popitem()[1]
            freed = pod.on(min(nodes))
            yield Change(ASSIGNED_POD_DELETE, freed, is_of_many=len(nodes) > 1)


def notify_of_freed(
    context: SchedulerContext, freed: FreedPlaces
) -> Generator[Effect, Answer, None]:
    """Notify waiting pods of places that were given back; other pods may be tried between two
    changes.
    """
    for change in freed.take():
        if context.cluster.budget.is_used_up:
            yield Pause()
        while context.sliced_work:
            yield Pause()
        context.cluster.budget.note(TELL_STEPS)
        context.queue.move(change, context.now_s)
