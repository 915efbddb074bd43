"""The search for places of a gang whose pods take devices or volumes: first ones and others."""

from collections.abc import Generator
from typing import Any, ClassVar

import pytest

from asched.core.cycle import group_search
from asched.core.cycle.group import Outcome, Result
from asched.core.cycle.group_search import MORE, search_places
from asched.core.framework.choices import Choices
from asched.core.framework.points import ReservePlugin
from asched.core.framework.status import SUCCESS, Status, unschedulable
from asched.core.gang.problem import Infeasible, Plan, Unknown
from asched.core.gang.search import MOVED, SPENT
from asched.core.state.audit import recount
from tests.builders import a_node
from tests.core.cycle.attempts import GroupScene, run
from tests.core.cycle.test_gang_plays import a_member


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

    assert isinstance(found, Outcome), found
    assert found.result is Result.SCHEDULED
    assert Hooks.taken == {"uid-any": 1, "uid-only": 0}
    assert choices.number("uid-any", "n0", "Hooks") == 0
    assert recount(scene.cluster) == []


class Scripted:
    """A board of classes about which something may be chosen."""

    def __init__(self, chooses: tuple[bool, ...], *, has_chosen: bool, has_more: bool) -> None:
        self.counts = (1,) * len(chooses)
        self.has_chosen, self.has_more, self._chooses = has_chosen, has_more, chooses
        self.is_relaxed = self.is_thorough = False
        self.asked: list[str] = []

    def chooses(self, c: int) -> bool:
        return self._chooses[c]

    def keep_half(self) -> None:
        self.asked.append("keep half")

    def keep_nothing(self) -> None:
        self.asked.append("keep nothing")

    def clear(self) -> Generator[Any, Any, None]:
        self.asked.append("clear")
        yield from ()


#: By whether the search is relaxed, and thorough.
MODES = {
    (False, False): "first choices",
    (True, False): "nothing chosen",
    (False, True): "all choices",
}
FOUND: Plan = [(0, 0, 1)]
NONE, LOST = Infeasible("none"), Unknown("somebody refused")
FIRST = ["keep half", "first choices"]
RELAXED = [*FIRST, "keep half", "nothing chosen", "clear"]
ALL = [*RELAXED, "keep nothing", "all choices"]


@pytest.mark.parametrize(
    ("chooses", "has_chosen", "has_more", "answers", "found", "asked"),
    [
        ((False, False), False, False, [LOST], LOST, ["first choices"]),
        ((False, True), True, False, [FOUND], FOUND, FIRST),
        ((True, False), False, False, [NONE], NONE, FIRST),  # no pod came as far as Reserve
        ((True,), False, False, [MOVED], MOVED, FIRST),
        ((True,), False, False, [SPENT, NONE], NONE, RELAXED),
        ((True,), True, False, [NONE, NONE], NONE, RELAXED),  # with nothing taken there is none
        ((True,), True, False, [LOST, FOUND, FOUND], FOUND, ALL),
        ((True,), True, True, [NONE, FOUND, FOUND], FOUND, ALL),
        ((True,), True, False, [NONE, SPENT, NONE], NONE, ALL),
        ((True,), True, True, [NONE, SPENT, NONE], MORE, ALL),
        ((True,), True, True, [NONE, FOUND, SPENT], SPENT, ALL),
    ],
)
def test_other_choices_are_tried_if_the_first_ones_may_be_in_the_way(
    chooses: tuple[bool, ...],
    has_chosen: bool,
    has_more: bool,
    answers: list[Any],
    found: Any,
    asked: list[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """First it is asked whether there are places at all if nobody takes what others might: a proof.
    Each search leaves half of what is left to those after it.
    """
    left = iter(answers)

    def search(board: Scripted) -> Generator[Any, Any, Any]:
        mode = (board.is_relaxed, board.is_thorough)
        board.asked.append(MODES[mode])
        yield from ()
        return next(left)

    monkeypatch.setattr(group_search, "search", search)
    board: Any = Scripted(chooses, has_chosen=has_chosen, has_more=has_more)
    assert run(group_search._searched(board)) == found
    assert (board.asked, board.is_relaxed) == (asked, False)
