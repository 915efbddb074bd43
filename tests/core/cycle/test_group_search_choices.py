"""The search for places of a gang whose pods take devices or volumes: first ones and others."""

from typing import Any, ClassVar

from asched.batch.groups.attempt import GroupOutcome, Result
from asched.batch.groups.search import search_places
from asched.batch.placement.problem import Infeasible, Unproven
from asched.core.framework.choices import Choices
from asched.core.framework.points import ReservePlugin
from asched.core.framework.status import SUCCESS, Status, unschedulable
from asched.core.state.audit import recount
from tests.builders import a_node
from tests.core.cycle.attempts import GroupScene, run
from tests.core.cycle.gang_plays import a_member


class Hooks(ReservePlugin):
    """Two hooks on a node: most take either, the lower one first; who is `picky` takes the lower
    one, and comes second.
    """

    name = "Hooks"
    taken: ClassVar[dict[str, int]] = {}  # uid to hook
    choices_of: ClassVar[Any] = None

    def _free(self) -> list[int]:
        return sorted({0, 1} - set(self.taken.values()))

    def reserve(self, pod: Any, node: str, data: Any) -> Status:
        if "picky" in (pod.pod.metadata.labels or ()):
            hook = 0 if self._free() == [0] else -1
        else:
            hook = self._free()[self.choices_of.number(pod.pod.uid, node, self.name)]
        self.taken[pod.pod.uid] = hook
        return SUCCESS if hook >= 0 else unschedulable("there is no hook")

    def unreserve(self, pod: Any, node: str) -> None:
        self.taken.pop(pod.pod.uid, None)

    def chosen(self, pod: Any) -> int:
        return self.taken[pod.pod.uid]

    def choices(self, pod: Any, node: str, data: Any) -> int:
        return 1 if "picky" in (pod.pod.metadata.labels or ()) else len(self._free())


def test_what_was_chosen_by_the_search_is_chosen_in_the_trial_and_not_any_more() -> None:
    node = a_node("n0").allocatable(cpu="4", pods="10")
    scene = GroupScene(node, minimum=2, plugins=(Hooks,))
    choices = Hooks.choices_of = scene.cluster.singleton(Choices)
    Hooks.taken.clear()
    group = scene.group(a_member("any"), a_member("only").labels(picky="yes"))

    found = run(search_places(scene.context, group))

    assert isinstance(found, GroupOutcome), found
    assert found.result is Result.SCHEDULED
    assert Hooks.taken == {"uid-any": 1, "uid-only": 0}
    assert choices.number("uid-any", "n0", "Hooks") == 0
    assert recount(scene.cluster) == []


NONE, LOST = Infeasible("none"), Unproven("somebody refused")
