"""After which effects others may have their turn, before the asker goes on."""

import pytest

from asched.core.framework.effects import (
    Bind,
    Effect,
    PatchPodStatus,
    Pause,
    PodRef,
    WaitFor,
    Whole,
    Wholes,
)
from asched.core.model import kinds

POD = PodRef(namespace="default", name="p", uid="u")


@pytest.mark.parametrize(
    ("effect", "lets_others"),
    [
        (Bind(pod=POD, node="n"), True),
        (WaitFor(ready=lambda: True, timeout_s=1.0), True),
        (PatchPodStatus(pod=POD), True),
        (PatchPodStatus(pod=POD, wants_answer=False), False),
        (Effect(), False),
        (Pause(), True),
        (Pause(is_alone=True), False),
    ],
    ids=["an answer", "a wait", "a patch", "a courtesy", "no answers", "a pause", "a pause alone"],
)
def test_others_have_their_turn_while_an_answer_is_waited_for(
    effect: Effect, *, lets_others: bool
) -> None:
    assert effect.lets_others == lets_others


def test_what_stands_for_objects_says_which() -> None:
    one, more = Whole(kinds.POD, "default/p", "u"), Wholes(kinds.NODE, ("n1", "n2"))
    assert (one.kind, one.key, one.uid) == (kinds.POD, "default/p", "u")
    assert Whole(kinds.POD, "default/p").uid == "", "any"
    assert (more.kind, more.keys) == (kinds.NODE, ("n1", "n2"))
    assert (repr(one), repr(more)) == ("Whole(Pod, 'default/p')", "Wholes(Node, ('n1', 'n2'))")
