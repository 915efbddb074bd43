"""One binding request to its end: yes, no, and what to do while nobody knows.

    SENT ──Bound──> ACCEPTED ──the watch shows it──> CONFIRMED
      ├──Refused──> RELEASED
      └──Unknown──> LOST ──read: placed here──> ACCEPTED
                     ├────read: pending, gone, or placed elsewhere──> RELEASED
                     └────Unknown again──> LOST, after a pause

An answer that got lost is no failure: the request may have been carried out. So the pod is read
back before its place is given to somebody else. Releasing after that read is safe even if the
request is still on its way, because the API server refuses a second binding of a pod, and the watch
tells of the first.

Bounds  the pause between reads doubles from READ_AGAIN_S to READ_AGAIN_S_MAX; there is no last
read,
        because a place given back on a guess could be filled twice.
"""

from collections.abc import Callable, Generator
from enum import Enum
from typing import Final

from asched.core.framework.effects import Bind, Effect, ReadPod, WaitFor
from asched.core.state.cluster import Cluster
from asched.core.state.facts import (
    Answer,
    Bound,
    Fact,
    ReadGone,
    ReadPending,
    ReadPlaced,
    Refused,
    Unknown,
)

#: First pause before an unknown binding is read back again, and the longest. Guesses: a server that
#: answers again does so within seconds.
READ_AGAIN_S: Final = 0.2
READ_AGAIN_S_MAX: Final = 5.0

CONFLICT: Final = 409


class Phase(Enum):
    SENT = "sent"
    LOST = "lost"
    ACCEPTED = "accepted"
    RELEASED = "released"


#: (where a binding stands, what arrived) -> where it stands now. A missing pair is our bug.
STEPS: Final[dict[tuple[Phase, type[Fact]], Phase]] = {
    (Phase.SENT, Bound): Phase.ACCEPTED,
    (Phase.SENT, Refused): Phase.RELEASED,
    (Phase.SENT, Unknown): Phase.LOST,
    (Phase.LOST, ReadPlaced): Phase.ACCEPTED,  # if it is our node; `_elsewhere` looks
    (Phase.LOST, ReadPending): Phase.RELEASED,
    (Phase.LOST, ReadGone): Phase.RELEASED,
    (Phase.LOST, Unknown): Phase.LOST,
}


def settle(
    bind: Bind, cluster: Cluster, tell_lost: Callable[[str], None]
) -> Generator[Effect, Answer, Bound | Refused]:
    """Send a binding and find out what became of it. Never ends in Unknown."""
    phase = Phase.SENT
    answer = yield bind
    pause_s = READ_AGAIN_S
    while True:
        phase = STEPS[phase, type(answer)]
        if phase is Phase.ACCEPTED:
            elsewhere = _elsewhere(bind, answer)
            return elsewhere or Bound(answer.effect_id)
        if phase is Phase.RELEASED:
            return _refusal(bind, answer, cluster)
        assert isinstance(answer, Unknown)
        tell_lost(answer.message)
        placed = _placed_by_watch(bind, cluster)
        if placed is not None:
            return placed
        answer = yield ReadPod(pod=bind.pod)
        if isinstance(answer, Unknown):
            yield WaitFor(
                ready=lambda: _placed_by_watch(bind, cluster) is not None, timeout_s=pause_s
            )
            pause_s = min(2 * pause_s, READ_AGAIN_S_MAX)


def _placed_by_watch(bind: Bind, cluster: Cluster) -> Bound | Refused | None:
    """The watch may overtake the answer: where it shows the pod now, if anywhere."""
    pod = cluster.pods_seen.get(bind.pod.key)
    if pod is None or pod.uid != bind.pod.uid or not pod.spec.node_name:
        return None
    if pod.spec.node_name == bind.node:
        return Bound(0)
    return _won_by(bind, pod.spec.node_name)


def _elsewhere(bind: Bind, answer: Answer) -> Refused | None:
    if isinstance(answer, ReadPlaced) and answer.node != bind.node:
        return _won_by(bind, answer.node)
    return None


def _won_by(bind: Bind, node: str) -> Refused:
    text = f'pod {bind.pod.name} is already assigned to node "{node}"'
    return Refused(0, CONFLICT, text, "Conflict")


def _refusal(bind: Bind, answer: Answer, cluster: Cluster) -> Bound | Refused:
    """What a refusal means. `already assigned` to our own node is a success whose answer got
    lost.
    """
    if isinstance(answer, ReadPending):
        return Refused(0, 0, "the binding was lost on its way: the pod has no node")
    if isinstance(answer, ReadGone):
        return Refused(0, 404, f'pods "{bind.pod.name}" not found', "NotFound")
    assert isinstance(answer, Refused)
    if answer.code == CONFLICT and f'already assigned to node "{bind.node}"' in answer.message:
        return Bound(answer.effect_id)
    return _placed_by_watch(bind, cluster) or answer
