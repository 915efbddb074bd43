"""After which effects others may have their turn, before the asker goes on."""

import pytest

from asched.core.framework.effects import Bind, Effect, PatchPodStatus, Pause, PodRef, WaitFor

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
