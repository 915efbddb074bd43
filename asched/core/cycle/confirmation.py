"""Follow one binding request to its end, also when its answer is lost or the pod has changed.

    SENT      the request is on its way            Bound: ACCEPTED, the watch will show it
                                                   refused: RELEASED
                                                   refused, the pod has another version: OUTDATED
                                                   no answer: LOST
    LOST      the pod is read                      it is on this node: ACCEPTED
                                                   it is gone or on another node: RELEASED
                                                   it has no node: RESENT; HELD if it does not fit
                                                   on its node any more, or was sent often enough
    RESENT    sent once more to the same node      as SENT; but HELD if it is refused while an
                                                   earlier request may still be carried out
    OUTDATED  the pod is read                      as LOST, sent with the newest version; RELEASED
                                                   if it does not fit or was refused too often
    HELD      for LANDS_WITHIN_S, then it is read  it is on this node: ACCEPTED; else RELEASED

A pod that is read without an answer is read again after a pause. A binding that the dispatcher did
not send, because a write of our own gave the pod a newer version, is RESENT at once.

A server error (5xx) which says for certain that nothing was carried out, as of a webhook that is
down, is a refusal. The pod is still read once before its place is given back.

A lost answer is no failure: the request may have been carried out, or may still be. So the pod is
read, and a pod without a node is bound once more to the same node: whichever of the two requests
arrives first, the second changes nothing. Before that the node is checked again: it may have become
unhealthy, or another scheduler may have taken the room. If the pod does not fit there any more, or
requests stay without answers, the place is held until no sent request can be carried out any more.
Given back earlier, the place could be filled twice.

A binding carries the version of the pod that it was decided for, and the server refuses it (409)
for any other version. It does so before it checks the pod's node, so a repeated binding of a pod
that is bound gets the same answer. Hence the pod is read, and bound with its newest version once
the watch has shown that. A request with an older version than one that was read can never be
carried out, so nothing needs to be held for it.

Bounds  SENDS_MAX requests without an answer; CONFLICTS_MAX refusals because of the version; the
        pause between reads doubles from READ_AGAIN_S to READ_AGAIN_S_MAX, without a last read,
        because a place given back on a guess could be filled twice; a place is held for
        `effects.LANDS_WITHIN_S` after the last request without an answer.
"""

from collections.abc import Callable, Generator
from enum import Enum
from typing import Final

from msgspec.structs import replace

from asched.core.cluster.cluster import Cluster
from asched.core.cluster.facts import (
    Answer,
    Bound,
    Fact,
    ReadGone,
    ReadPending,
    ReadPlaced,
    Refused,
    Unknown,
)
from asched.core.framework.effects import LANDS_WITHIN_S, Bind, Effect, PodRef, ReadPod, WaitFor
from asched.core.model.kinds import POD
from asched.core.model.meta import runs_backwards

Settling = Generator[Effect, Answer, Bound | Refused]
#: Returns the pod with its newest version, or None if the binding may not be sent once more: the
#: pod does not fit on its node now. `is_lost`: an earlier request was not answered.
Newest = Callable[[bool], PodRef | None]

#: First pause before an unknown binding is read back again, and the longest. Guesses: a server that
#: answers again does so within seconds.
READ_AGAIN_S: Final = 0.2
READ_AGAIN_S_MAX: Final = 5.0
#: How often one binding is sent. A guess: further requests would add load to a failing server.
SENDS_MAX: Final = 3
#: How often a binding is refused because its pod has changed, before the pod is tried anew: its
#: owner may change it all the time, and its place must not be held for that.
CONFLICTS_MAX: Final = 10

CONFLICT: Final = 409
SERVER_ERROR: Final = 500
NOT_FOUND: Final = 404


class BindingPhase(Enum):
    SENT = "sent"
    LOST = "lost"
    RESENT = "sent once more"
    HELD = "held"
    OUTDATED = "refused, the pod has changed"
    ACCEPTED = "accepted"
    RELEASED = "released"


#: (phase, type of the answer) -> next phase. A missing pair is a bug.
STEPS: Final[dict[tuple[BindingPhase, type[Fact]], BindingPhase]] = {
    (BindingPhase.SENT, Bound): BindingPhase.ACCEPTED,
    (BindingPhase.SENT, Refused): BindingPhase.RELEASED,
    (BindingPhase.SENT, Unknown): BindingPhase.LOST,
    (BindingPhase.SENT, ReadPending): BindingPhase.RESENT,
    (BindingPhase.LOST, ReadPlaced): BindingPhase.ACCEPTED,  # on this node; see `_elsewhere`
    (BindingPhase.LOST, ReadPending): BindingPhase.RESENT,
    (BindingPhase.LOST, ReadGone): BindingPhase.RELEASED,
    (BindingPhase.LOST, Unknown): BindingPhase.LOST,
    (BindingPhase.RESENT, Bound): BindingPhase.ACCEPTED,
    (BindingPhase.RESENT, Refused): BindingPhase.HELD,  # unless it holds for the first request, too
    (BindingPhase.RESENT, Unknown): BindingPhase.LOST,
    (BindingPhase.RESENT, ReadPending): BindingPhase.RESENT,
    (BindingPhase.OUTDATED, ReadPlaced): BindingPhase.ACCEPTED,
    (BindingPhase.OUTDATED, ReadPending): BindingPhase.RESENT,
    (BindingPhase.OUTDATED, ReadGone): BindingPhase.RELEASED,
    (BindingPhase.OUTDATED, Unknown): BindingPhase.OUTDATED,
    (BindingPhase.HELD, ReadPlaced): BindingPhase.ACCEPTED,
    (BindingPhase.HELD, ReadPending): BindingPhase.RELEASED,
    (BindingPhase.HELD, ReadGone): BindingPhase.RELEASED,
    (BindingPhase.HELD, Unknown): BindingPhase.HELD,
}


def settle(
    bind: Bind, cluster: Cluster, on_unknown: Callable[[str], None], newest: Newest
) -> Settling:
    """Send a binding and follow it to Bound or Refused."""
    answer = yield bind
    return (yield from follow(bind, cluster, on_unknown, answer, newest))


def follow(
    bind: Bind,
    cluster: Cluster,
    on_unknown: Callable[[str], None],
    answer: Answer,
    newest: Newest,
) -> Settling:
    """As `settle`, for a binding that was sent and answered."""
    if isinstance(answer, Refused) and answer.code >= SERVER_ERROR:
        read = yield ReadPod(pod=bind.pod)
        return _elsewhere(bind, read) or (
            Bound(read.effect_id)
            if isinstance(read, ReadPlaced)
            else _refusal(bind, read if isinstance(read, ReadGone) else answer, cluster)
        )
    now, pause_s, sends, conflicts = BindingPhase.SENT, READ_AGAIN_S, 1, 0
    lost: str | None = None  # the version in a request that may still be carried out
    changed: Refused | None = None  # the last refusal because of the version
    while True:
        was, now = now, _next(now, answer)
        was_tried = was in (BindingPhase.SENT, BindingPhase.RESENT)
        if was_tried and (now is BindingPhase.OUTDATED or isinstance(answer, ReadPending)):
            conflicts += 1
        if isinstance(answer, Refused):
            if now is BindingPhase.OUTDATED:
                changed = answer
            elif was is BindingPhase.RESENT:
                meaning = _refusal(bind, answer, cluster)
                if lost is None or isinstance(meaning, Bound) or _is_final(meaning):
                    return meaning
        if now is BindingPhase.ACCEPTED:
            return _elsewhere(bind, answer) or Bound(answer.effect_id)
        if now is BindingPhase.RELEASED:
            return _refusal(bind, answer, cluster)
        if isinstance(answer, Unknown):
            on_unknown(answer.message)
            if was_tried:
                lost = bind.pod.resource_version
        may_send = sends < SENDS_MAX + conflicts and conflicts <= CONFLICTS_MAX
        if now is was or (now is BindingPhase.RESENT and sends > 1 and may_send):
            yield _pause(bind, cluster, pause_s)
            pause_s = min(2 * pause_s, READ_AGAIN_S_MAX)
        if isinstance(answer, ReadPending):
            if lost is not None and runs_backwards(answer.version, lost):
                lost = None
            if not _has_shown(bind, cluster, answer.version):
                yield _until_shown(bind, cluster, answer.version)
        if now is BindingPhase.RESENT:
            again = newest(lost is not None) if may_send else None
            if again is not None:
                bind = replace(bind, pod=again)
            elif lost is not None:
                now = BindingPhase.HELD
            else:
                why = _unfit(bind)
                if not may_send:  # for want of answers, or because the pod always changed
                    why = changed if changed and conflicts > CONFLICTS_MAX else _lost()
                return _placed_by_watch(bind, cluster) or why
        if now is BindingPhase.HELD and was is not BindingPhase.HELD:
            yield _pause(bind, cluster, LANDS_WITHIN_S)
        placed = _placed_by_watch(bind, cluster)
        if placed is not None:
            return placed
        if now is BindingPhase.RESENT:
            sends += 1
            answer = yield replace(bind)
        else:
            answer = yield ReadPod(pod=bind.pod)


def _next(now: BindingPhase, answer: Answer) -> BindingPhase:
    is_sent = now in (BindingPhase.SENT, BindingPhase.RESENT)
    if is_sent and isinstance(answer, Refused) and is_outdated(answer):
        return BindingPhase.OUTDATED
    return STEPS[now, type(answer)]


def is_outdated(refused: Refused) -> bool:
    """Whether a binding may have been refused because its pod has another version."""
    return refused.code == CONFLICT and not names_node(refused)


def _has_shown(bind: Bind, cluster: Cluster, version: str) -> bool:
    """Whether the watch has shown this version of the pod, a newer one, or its end."""
    pod = cluster.pods_seen.get(bind.pod.key)
    if pod is None or pod.uid != bind.pod.uid:
        return True
    return not runs_backwards(version, pod.metadata.resource_version)


def _until_shown(bind: Bind, cluster: Cluster, version: str) -> WaitFor:
    return WaitFor(
        ready=lambda: _has_shown(bind, cluster, version),
        timeout_s=READ_AGAIN_S_MAX,
        on=((POD.resource, bind.pod.key),),
    )


def _unfit(bind: Bind) -> Refused:
    return Refused(0, 0, f"pod {bind.pod.name} has changed and no longer fits on {bind.node}")


def _lost() -> Refused:
    return Refused(0, 0, "the binding was lost on its way: the pod has no node")


def _pause(bind: Bind, cluster: Cluster, timeout_s: float) -> WaitFor:
    """A pause that ends early once the watch shows the pod's node."""
    return WaitFor(
        ready=lambda: _placed_by_watch(bind, cluster) is not None,
        timeout_s=timeout_s,
        on=((POD.resource, bind.pod.key),),
    )


def _placed_by_watch(bind: Bind, cluster: Cluster) -> Bound | Refused | None:
    """The outcome that the watch shows, which may arrive before the answer; None if none yet."""
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
    """Whether a refusal holds for every request to bind this pod, also for requests under way."""
    return refused.code == NOT_FOUND or names_node(refused)


def names_node(refused: Refused) -> bool:
    """Whether the API says that the pod has a node."""
    return refused.code == CONFLICT and "already assigned to node" in refused.message


def _refusal(bind: Bind, answer: Answer, cluster: Cluster) -> Bound | Refused:
    """Interpret a refusal. `already assigned` to the same node is a success whose answer was
    lost.
    """
    if isinstance(answer, ReadPending):
        return _lost()
    if isinstance(answer, ReadGone):
        return Refused(0, 404, f'pods "{bind.pod.name}" not found', "NotFound")
    assert isinstance(answer, Refused)
    if answer.code == CONFLICT and f'already assigned to node "{bind.node}"' in answer.message:
        return Bound(answer.effect_id)
    return _placed_by_watch(bind, cluster) or answer
