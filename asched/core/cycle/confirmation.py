"""One binding request to its end: yes, no, and what to do while nobody knows.

    SENT ──Bound──> ACCEPTED ──the watch shows it──> CONFIRMED
      ├──Refused──> RELEASED
      └──Unknown──> LOST ──read: placed here──> ACCEPTED
              ┌──────^├────read: gone, or placed elsewhere──> RELEASED
              │       ├────Unknown again──> LOST, after a pause
           Unknown    └────read: pending──> RESENT, to the same node, if it takes the pod as
              │                               │ │        things stand now
              └────────────────────────────── │ ├──Bound──> ACCEPTED
                                              │ └──Refused: gone, or placed elsewhere──> RELEASED
       otherwise refused, unfit by now, or sent often enough──> HELD
    HELD ──LANDS_WITHIN_S later, read: pending, gone, or placed elsewhere──> RELEASED
      ├───────────────────────── read: placed here──> ACCEPTED
      └───────────────────────── Unknown──> HELD, after a pause

An error of the server's own (5xx) that says for certain that nothing was carried out, as of a
webhook that is down, is a refusal like any other. The pod is read back once all the same, before
its place is given back.

An answer that got lost is no failure: the request may have been carried out, or may still be. So
the pod is read back, and one that has no node yet is bound once more, to the same node: whichever
of the two requests arrives first, the other one changes nothing. That is a decision made anew: the
node may have become ill since, or a stranger may have taken the room. If it does not take the pod
any more, or sending settled nothing, the place is held until no request that was sent can be
carried out any more; given back earlier, it would be filled twice once one of them is.

Bounds  SENDS_MAX requests; the pause between reads doubles from READ_AGAIN_S to READ_AGAIN_S_MAX,
        and there is no last read, because a place given back on a guess could be filled twice;
        a place is held for `effects.LANDS_WITHIN_S` after the last request without an answer.
"""

from collections.abc import Callable, Generator
from enum import Enum
from typing import Final

from msgspec.structs import replace

from asched.core.framework.effects import LANDS_WITHIN_S, Bind, Effect, ReadPod, WaitFor
from asched.core.model.kinds import POD
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
#: How often one binding is sent. A guess: a server that loses three answers is better left alone.
SENDS_MAX: Final = 3

CONFLICT: Final = 409
SERVER_ERROR: Final = 500
NOT_FOUND: Final = 404


class BindingPhase(Enum):
    SENT = "sent"
    LOST = "lost"
    RESENT = "sent once more"
    HELD = "held"
    ACCEPTED = "accepted"
    RELEASED = "released"


#: (where a binding stands, what arrived) -> where it stands now. A missing pair is our bug.
STEPS: Final[dict[tuple[BindingPhase, type[Fact]], BindingPhase]] = {
    (BindingPhase.SENT, Bound): BindingPhase.ACCEPTED,
    (BindingPhase.SENT, Refused): BindingPhase.RELEASED,
    (BindingPhase.SENT, Unknown): BindingPhase.LOST,
    (BindingPhase.LOST, ReadPlaced): BindingPhase.ACCEPTED,  # if it is our node; `_elsewhere` looks
    (BindingPhase.LOST, ReadPending): BindingPhase.RESENT,
    (BindingPhase.LOST, ReadGone): BindingPhase.RELEASED,
    (BindingPhase.LOST, Unknown): BindingPhase.LOST,
    (BindingPhase.RESENT, Bound): BindingPhase.ACCEPTED,
    (BindingPhase.RESENT, Refused): BindingPhase.HELD,  # unless it speaks for the first one, too
    (BindingPhase.RESENT, Unknown): BindingPhase.LOST,
    (BindingPhase.HELD, ReadPlaced): BindingPhase.ACCEPTED,
    (BindingPhase.HELD, ReadPending): BindingPhase.RELEASED,
    (BindingPhase.HELD, ReadGone): BindingPhase.RELEASED,
    (BindingPhase.HELD, Unknown): BindingPhase.HELD,
}

Settling = Generator[Effect, Answer, Bound | Refused]


def settle(
    bind: Bind,
    cluster: Cluster,
    tell_lost: Callable[[str], None],
    still_fits: Callable[[], bool],
) -> Settling:
    """Send a binding and find out what became of it. Never ends in Unknown. `still_fits`: whether
    the node takes the pod as things stand, asked whenever it is to be sent once more.
    """
    answer = yield bind
    return (yield from follow(bind, cluster, tell_lost, answer, still_fits))


def settle_lost(
    bind: Bind, cluster: Cluster, tell_lost: Callable[[str], None], message: str
) -> Settling:
    """Find out what became of a binding that somebody else has sent, who is not heard of."""
    return (yield from follow(bind, cluster, tell_lost, Unknown(0, message), lambda: False))


def follow(
    bind: Bind,
    cluster: Cluster,
    tell_lost: Callable[[str], None],
    answer: Answer,
    still_fits: Callable[[], bool],
) -> Settling:
    """The same of one that was sent and answered."""
    if isinstance(answer, Refused) and answer.code >= SERVER_ERROR:
        read = yield ReadPod(pod=bind.pod)
        return _elsewhere(bind, read) or (
            Bound(read.effect_id)
            if isinstance(read, ReadPlaced)
            else _refusal(bind, read if isinstance(read, ReadGone) else answer, cluster)
        )
    now, pause_s, sends = BindingPhase.SENT, READ_AGAIN_S, 1
    while True:
        was, now = now, STEPS[now, type(answer)]
        if was is BindingPhase.RESENT and isinstance(answer, Refused):
            said = _refusal(bind, answer, cluster)
            if isinstance(said, Bound) or _is_final(said):
                return said
        if now is BindingPhase.ACCEPTED:
            return _elsewhere(bind, answer) or Bound(answer.effect_id)
        if now is BindingPhase.RELEASED:
            return _refusal(bind, answer, cluster)
        if isinstance(answer, Unknown):
            tell_lost(answer.message)
        if now is was or (now is BindingPhase.RESENT and 1 < sends < SENDS_MAX):
            yield _patience(bind, cluster, pause_s)
            pause_s = min(2 * pause_s, READ_AGAIN_S_MAX)
        if now is BindingPhase.RESENT and (sends == SENDS_MAX or not still_fits()):
            now = BindingPhase.HELD
        if now is BindingPhase.HELD and was is not BindingPhase.HELD:
            yield _patience(bind, cluster, LANDS_WITHIN_S)
        placed = _placed_by_watch(bind, cluster)
        if placed is not None:
            return placed
        if now is BindingPhase.RESENT:
            sends += 1
            answer = yield replace(bind)
        else:
            answer = yield ReadPod(pod=bind.pod)


def _patience(bind: Bind, cluster: Cluster, timeout_s: float) -> WaitFor:
    """A pause that ends early once the watch shows the pod's node."""
    return WaitFor(
        ready=lambda: _placed_by_watch(bind, cluster) is not None,
        timeout_s=timeout_s,
        on=((POD.resource, bind.pod.key),),
    )


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


def _is_final(refused: Refused) -> bool:
    """Whether a refusal holds for every request to bind this pod, also for one on its way."""
    return refused.code == NOT_FOUND or names_node(refused)


def names_node(refused: Refused) -> bool:
    """Whether the API says that the pod has a node."""
    return refused.code == CONFLICT and "already assigned to node" in refused.message


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
