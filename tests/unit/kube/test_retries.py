"""What comes after one attempt, as a table."""

import json
import random

import pytest

from asched.core.cluster.facts import Done, Refused, Unknown
from asched.core.framework.effects import (
    Bind,
    Create,
    Delete,
    DeletePod,
    EmitEvent,
    Evict,
    Patch,
    PatchPodStatus,
    PodRef,
    ReadPod,
)
from asched.core.model.kinds import NODE
from asched.core.model.meta import ObjectReference
from asched.kube import retries
from asched.kube.errors import ConnectFailed, ConnectionLost, DeadlineExceeded
from asched.kube.lanes import QueuedWrite
from asched.kube.retries import Again, next_step
from asched.kube.transport import Reply
from tests.unit.kube.scripted import status

POD = PodRef(namespace="t", name="a", uid="u")
BIND = Bind(id=1, pod=POD, node="n")
READ = ReadPod(id=1, pod=POD)
EVICT = DeletePod(id=1, pod=POD)
REMOVE = Delete(id=1, kind=NODE, namespace="", name="n")
PATCH = Patch(id=1, kind=NODE, namespace="", name="n", body={"metadata": {"labels": {}}})
GUARDED = Patch(
    id=1, kind=NODE, namespace="", name="n", body={"metadata": {"resourceVersion": "5"}}
)
CREATE = Create(id=1, kind=NODE, namespace="", body={})
STATUS = PatchPodStatus(id=1, pod=POD, condition={"type": "PodScheduled"})
EVENT = EmitEvent(
    regarding=ObjectReference(name="a"),
    type="Normal",
    reason="r",
    action="a",
    note="n",
    reporting_controller="c",
)
NOT_SENT = ConnectFailed("refused")
LOST = ConnectionLost("reset")
LATE = DeadlineExceeded("late")


def answer(code, *headers, reason="R"):
    head = b"".join(b"\r\n" + header for header in headers)
    return Reply(code, json.dumps(status(code, reason, "m")).encode(), head)


def step(effect, outcome, *, attempts=1, elapsed_s=0.0, maybe_done=False):
    job = QueuedWrite(effect.lane, effect, 100.0, (effect.id,), attempt_count=attempts)
    job.maybe_done = maybe_done
    return next_step(job, outcome, 100.0 + elapsed_s, random.Random(1))


def test_the_refusal_of_a_disruption_budget_is_an_answer():
    details = {"causes": [{"reason": "DisruptionBudget", "message": "needs 2 healthy pods"}]}
    body = {**status(429, "TooManyRequests", "m"), "details": details}
    refusal = Reply(429, json.dumps(body).encode())
    eviction = Evict(id=1, pod=POD)
    assert step(eviction, refusal) == Refused(1, 429, "m", "TooManyRequests")
    assert step(eviction, answer(429, b"Retry-After: 7")) == Again(7.0, pause=True)


@pytest.mark.parametrize("effect", [BIND, READ, EVICT, REMOVE, PATCH, GUARDED, CREATE, STATUS])
def test_what_was_not_sent_is_tried_again(effect):
    assert isinstance(step(effect, NOT_SENT), Again)


@pytest.mark.parametrize(
    "outcome", [LOST, LATE, answer(500, reason=""), Reply(503, b"busy"), answer(504)]
)
@pytest.mark.parametrize(
    ("effect", "expected"),
    [
        (BIND, Unknown),
        (CREATE, Unknown),
        (GUARDED, Unknown),
        (READ, Again),
        (EVICT, Again),
        (REMOVE, Again),
        (PATCH, Again),
        (STATUS, Again),
    ],
)
def test_what_may_have_happened_is_repeated_only_where_that_does_no_harm(effect, outcome, expected):
    assert isinstance(step(effect, outcome), expected)


@pytest.mark.parametrize("code", [400, 401, 403, 404, 409, 422])
@pytest.mark.parametrize("effect", [BIND, EVICT, PATCH, GUARDED, CREATE])
def test_a_clear_no_is_a_refusal(effect, code):
    assert step(effect, answer(code)) == Refused(1, code, "m", "R")


@pytest.mark.parametrize("effect", [BIND, READ, EVICT, PATCH, CREATE, STATUS, EVENT])
def test_overload_waits_as_told_and_pauses_the_lane(effect):
    assert step(effect, answer(429, b"Retry-After: 7")) == Again(7.0, pause=True)
    assert step(effect, Reply(429, b"busy")) == Again(retries.OVERLOAD_WAIT_S, pause=True)


def test_a_wait_without_measure_is_cut():
    assert step(BIND, answer(429, b"Retry-After: 9999")) == Again(retries.PAUSE_S_MAX, pause=True)


def test_overload_without_end_is_a_refusal():
    late = step(BIND, answer(429, b"Retry-After: 7"), elapsed_s=retries.RETRY_S_MAX)
    assert late == Refused(1, 429, "m", "R")


@pytest.mark.parametrize(
    ("effect", "outcome", "maybe_done", "expected"),
    [
        (BIND, NOT_SENT, False, Refused),
        (READ, NOT_SENT, False, Unknown),
        (READ, LOST, False, Unknown),
        (EVICT, NOT_SENT, False, Refused),
        (EVICT, NOT_SENT, True, Unknown),
        (EVICT, LOST, False, Unknown),
        (PATCH, answer(500, reason=""), False, Unknown),
    ],
)
def test_the_end_of_all_attempts_is_honest(effect, outcome, maybe_done, expected):
    late = step(effect, outcome, attempts=9, elapsed_s=retries.RETRY_S_MAX, maybe_done=maybe_done)
    assert isinstance(late, expected)


def test_a_deleted_object_that_has_gone_after_a_lost_answer_was_deleted_by_us():
    assert step(EVICT, answer(404), maybe_done=True) == Done(1)
    assert step(REMOVE, answer(404), maybe_done=True) == Done(1)
    assert step(PATCH, answer(404), maybe_done=True) == Refused(1, 404, "m", "R")


@pytest.mark.parametrize("outcome", [answer(500), answer(503), answer(409), NOT_SENT])
def test_a_status_patch_is_tried_four_times_with_growing_waits(outcome):
    waits = [step(STATUS, outcome, attempts=n).wait_s for n in (1, 2, 3)]
    for wait, low in zip(waits, (0.01, 0.05, 0.25), strict=True):
        assert low <= wait <= low * 1.1
    assert isinstance(step(STATUS, outcome, attempts=4), Refused | Unknown)


def test_a_status_patch_of_a_deleted_pod_is_refused_at_once():
    assert step(STATUS, answer(404)) == Refused(1, 404, "m", "R")


def test_an_event_waits_for_a_server_that_is_away_but_obeys_a_no():
    again = step(EVENT, NOT_SENT)
    assert again.pause
    assert 10.0 <= again.wait_s <= 12.0
    assert isinstance(step(EVENT, LOST, attempts=11), Again)
    assert not isinstance(step(EVENT, LOST, attempts=12), Again)
    for code in (400, 403, 404, 409, 500, 503):
        assert not isinstance(step(EVENT, answer(code)), Again)
