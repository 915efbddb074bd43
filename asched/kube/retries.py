"""The next step after an attempt: an answer, or another attempt and its time.

| what happened         | Bind    | ReadPod | Delete     | Patch   | Create  | status  | event    |
|-----------------------|---------|---------|------------|---------|---------|---------|----------|
| nothing was sent      | again   | again   | again      | again   | again   | again   | later    |
| broke off when sent   | Unknown | again   | again      | again * | Unknown | again   | later    |
| 429 ***               | all: again after Retry-After; the lane and those below it pause       ||||
| timeouts, bare 5xx    | Unknown | again   | again      | again * | Unknown | again   | given up |
| other 5xx             | Refused | again   | Refused    | Refused | Refused | again   | given up |
| 409                   | Refused | -       | Refused    | Refused | Refused | again   | given up |
| other 4xx             | Refused | Unknown | Refused ** | Refused | Refused | Refused | given up |

"Timeouts" are all answers that do not prove that nothing was carried out
(`errors.ApiStatus.says_not_done`); a bare 5xx has no Status of the API server.
*  a patch with a resourceVersion is Unknown instead: a repetition could only conflict with itself.
**  404 after an attempt that may have worked is Done.
*** Refused for an eviction that a disruption budget does not allow.
"Again" ends after RETRY_S_MAX with Unknown if any attempt may have succeeded, else Refused. Status
patches end after STATUS_ATTEMPTS, events after EVENT_ATTEMPTS (both upstream's figures).
"""

from random import Random
from typing import Final

import msgspec

from asched.core.cluster.facts import Answer, Done, Refused, Unknown
from asched.core.framework.effects import (
    Bind,
    Create,
    Delete,
    DeletePod,
    Effect,
    EmitEvent,
    Evict,
    Patch,
    PatchGroupStatus,
    PatchPodStatus,
    ReadPod,
)
from asched.kube.errors import TransportError, retry_after_s, says_not_done
from asched.kube.lanes import QueuedWrite
from asched.kube.transport import Reply
from asched.kube.writes import answer_for

#: All attempts of one effect together, measured from its submission.
RETRY_S_MAX: Final = 60.0
#: Waits between attempts: 0.1 s doubling to 5 s. A guess; a restarting server is back within
#: seconds.
RETRY_INITIAL_S: Final = 0.1
RETRY_WAIT_S_MAX: Final = 5.0
#: Status patches: client-go's retry in the scheduler's util.PatchPodStatus.
STATUS_ATTEMPTS: Final = 4
STATUS_INITIAL_S: Final = 0.01
STATUS_FACTOR: Final = 5.0
STATUS_JITTER: Final = 0.1
#: Events: client-go's event broadcaster.
EVENT_ATTEMPTS: Final = 12
EVENT_WAIT_S: Final = 10.0
#: Without Retry-After; what kube-apiserver itself sends.
OVERLOAD_WAIT_S: Final = 1.0
#: The cause in the details of the refusal of an eviction.
BUDGET_CAUSE: Final = b"DisruptionBudget"
#: A longer Retry-After is cut to this.
PAUSE_S_MAX: Final = 30.0


_STATUSES: Final = PatchPodStatus | PatchGroupStatus


class Again(msgspec.Struct, frozen=True):
    """Retry after a wait. `pause`: the lane, and those below it, wait as well."""

    wait_s: float
    pause: bool = False


Outcome = Reply | TransportError


def next_step(job: QueuedWrite, outcome: Outcome, now_s: float, rng: Random) -> Answer | Again:
    """The step after an attempt of `job`; sets `job.maybe_done`."""
    effect = job.effect
    if isinstance(outcome, Reply):
        wait_s = None if _is_of_budget(effect, outcome) else overload_wait_s(outcome)
        if wait_s is not None:
            return _again(job, Again(wait_s, pause=True), outcome, now_s)
        if not _is_tried_again(effect, outcome):
            answer = answer_for(effect, outcome)
            if job.maybe_done and outcome.status == 404 and _is_delete(effect):
                return Done(answer.effect_id)
            if job.maybe_done and outcome.status >= 500:  # for this attempt only
                return _final_answer(job, outcome, maybe_done=True)
            return answer
    if isinstance(effect, EmitEvent):
        return _next_for_event(job, outcome, rng)
    if isinstance(outcome, Reply) or outcome.sent:
        if outcome_may_stand(effect):
            return _final_answer(job, outcome, maybe_done=True)
        is_refused = isinstance(outcome, Reply) and says_not_done(outcome.status, outcome.body)
        job.maybe_done = job.maybe_done or not is_refused
    if isinstance(effect, _STATUSES):
        if job.attempt_count >= STATUS_ATTEMPTS:
            return _final_answer(job, outcome, maybe_done=job.maybe_done)
        wait_s = STATUS_INITIAL_S * STATUS_FACTOR ** (job.attempt_count - 1)
        return Again(wait_s * (1 + STATUS_JITTER * rng.random()))
    wait_s = min(RETRY_INITIAL_S * 2 ** (job.attempt_count - 1), RETRY_WAIT_S_MAX)
    return _again(job, Again(wait_s * (1 + rng.random())), outcome, now_s)


def overload_wait_s(outcome: Outcome) -> float | None:
    """The wait that a 429 requests, at most PAUSE_S_MAX; None for other outcomes."""
    if not isinstance(outcome, Reply) or outcome.status != 429:
        return None
    wait_s = retry_after_s(outcome.header("Retry-After"))
    return min(OVERLOAD_WAIT_S if wait_s is None else wait_s, PAUSE_S_MAX)


def _is_of_budget(effect: Effect, reply: Reply) -> bool:
    """Whether a disruption budget refuses an eviction, which is no overload of the server."""
    return isinstance(effect, Evict) and reply.status == 429 and BUDGET_CAUSE in reply.body


def outcome_may_stand(effect: Effect) -> bool:
    """Whether a repetition could do harm if this was already carried out."""
    if isinstance(effect, Patch):
        return "resourceVersion" in effect.body.get("metadata", {})
    return isinstance(effect, Bind | Create)


def _next_for_event(job: QueuedWrite, outcome: Outcome, rng: Random) -> Answer | Again:
    if isinstance(outcome, Reply) or job.attempt_count >= EVENT_ATTEMPTS:
        return _final_answer(job, outcome, maybe_done=True)
    return Again(EVENT_WAIT_S * (1 + 0.2 * rng.random()), pause=True)


def _is_tried_again(effect: Effect, reply: Reply) -> bool:
    """Whether an answer leads to another attempt, or to `Unknown`."""
    if isinstance(effect, _STATUSES) and reply.status == 409:
        return True
    if isinstance(effect, ReadPod | EmitEvent | _STATUSES) and reply.status >= 500:
        return True
    return reply.status >= 400 and not says_not_done(reply.status, reply.body)


def _is_delete(effect: Effect) -> bool:
    return isinstance(effect, DeletePod | Delete | Evict)


def _again(job: QueuedWrite, again: Again, outcome: Outcome, now_s: float) -> Answer | Again:
    if now_s + again.wait_s - job.queued_s <= RETRY_S_MAX:
        return again
    return _final_answer(job, outcome, maybe_done=job.maybe_done)


def _final_answer(job: QueuedWrite, outcome: Outcome, *, maybe_done: bool) -> Answer:
    """The answer when there will be no further attempt."""
    effect = job.effect
    if isinstance(effect, ReadPod) or maybe_done:
        if isinstance(outcome, Reply):
            answer = answer_for(effect, outcome)
            message = getattr(answer, "message", f"HTTP status {outcome.status}")
        else:
            message = str(outcome)
        return Unknown(effect.id, message)
    if isinstance(outcome, Reply):
        return answer_for(effect, outcome)
    return Refused(effect.id, 0, str(outcome))
