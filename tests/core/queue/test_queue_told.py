"""What the queue counts, hands on and remembers, beside where each pod stands."""

from asched.core.framework.points import Registration
from asched.core.queue.looking import DryRunVerdict
from asched.core.queue.round import unknown_room
from tests.core.queue.waiting import (
    NODE_ADDED,
    Scene,
    a_pod,
)

HEARS = {"Fit": [Registration(NODE_ADDED)]}


# --- what is counted ------------------------------------------------------------------------------


def test_who_becomes_another_while_it_is_due_backs_off_as_after_any_update() -> None:
    class Full:
        def __call__(self, _queued: object) -> DryRunVerdict:
            return DryRunVerdict(frozenset({"Fit"}), is_of_class=True)

        def may_help(self, _queued: object, _left: str) -> bool:
            return True

        room_left = staticmethod(unknown_room)

    one = Scene(HEARS, class_key_of=lambda pod: str(pod.labels), look=Full())
    one.add(a_pod("a"))
    queued = one.reject("Fit", now_s=1.0)
    one.move(NODE_ADDED, now_s=1.1)
    one.update(a_pod("a", version=2, labels={"app": "web"}), 1.2)

    assert one.names() == {"backoff": ["a"]}
    assert one.witness.entered["backoff", "UnschedulablePodUpdate"] == 1
    assert queued.woken_by == "UnschedulablePodUpdate"


# --- what is remembered ---------------------------------------------------------------------------


# --- who hears ------------------------------------------------------------------------------------
