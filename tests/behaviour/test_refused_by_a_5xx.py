"""The API server answers a write with 500, as for a webhook that is down: objects in, effects out.

The server's words are reported at once, what was reserved is given back, and the pod is tried again
after its backoff. What may have been carried out all the same is not given back.
"""

from typing import Any

import pytest

from asched.core.cluster.facts import (
    Answer,
    Done,
    ReadGone,
    ReadPending,
    ReadPlaced,
    Refused,
    Seen,
    Unknown,
)
from asched.core.framework.effects import (
    Bind,
    DeletePod,
    EmitEvent,
    MarkVictim,
    Patch,
    PatchPodStatus,
    ReadPod,
)
from asched.core.model.claim import ResourceClaim
from asched.core.model.decode import decode
from asched.core.model.kinds import (
    DEVICE_CLASS,
    PERSISTENT_VOLUME,
    PERSISTENT_VOLUME_CLAIM,
    POD,
    RESOURCE_CLAIM,
    RESOURCE_SLICE,
    STORAGE_CLASS,
)
from tests.builders import a_node, a_pod
from tests.device_builders import a_claim_object, a_class, a_slice
from tests.playbook import Play
from tests.volume_builders import HOST, a_claim, a_volume
from tests.volume_builders import a_class as a_storage_class
from tests.volume_builders import a_pod as a_pod_with_volume

WORDS = (
    'Internal error occurred: failed calling webhook "x.example.com": failed to call webhook: Post'
    ' "https://x.t.svc:443/?timeout=10s": dial tcp 10.0.0.1:443: connect: connection refused'
)


def refused(effect_id: int) -> Refused:
    return Refused(effect_id, 500, WORDS, "InternalError")


def small(name: str = "n1") -> Any:
    return a_node(name).allocatable(cpu="1", memory="8Gi", pods="32")


def a_bind_refused() -> Play:
    play = Play(small())
    play.see(a_pod("web").requests(cpu="1"))
    play.answer(refused(play.the(Bind).id))
    return play


def test_a_refused_binding_is_read_back_once_reported_and_tried_again_with_backoff() -> None:
    play = a_bind_refused()
    waits = []
    for _ in range(4):
        play.answer(ReadPending(play.the(ReadPod).id))
        expected = f'running Bind plugin "DefaultBinder": {WORDS}'
        assert play.notes() == [f"FailedScheduling: {expected}"]
        patch = play.the(PatchPodStatus)
        assert patch.condition is None or patch.condition["message"] == expected
        failed_s = play.now_s
        while not play.of(Bind):
            play.turn(after_s=0.5)
            assert play.now_s < failed_s + 30.0, "the pod is never tried again"
        waits.append(play.now_s - failed_s)
        play.answer(refused(play.the(Bind).id))
    assert waits == sorted(waits)
    assert waits[0] >= 0.5
    assert waits[-1] > 4.0


def test_its_place_is_free_once_the_pod_was_read_back() -> None:
    play = a_bind_refused()
    read = play.the(ReadPod)
    play.see(a_pod("next").requests(cpu="1").priority(10))
    assert not play.of(Bind), "the place is reserved until the pod was read back"
    play.answer(ReadPending(read.id))
    assert play.the(Bind).pod.name == "next"


@pytest.mark.parametrize(
    ("read", "event"),
    [
        (lambda i: ReadPlaced(i, "n1"), "Scheduled: Successfully assigned default/web to n1"),
        (ReadGone, ""),
        (lambda i: Unknown(i, "no answer"), f"FailedScheduling: {WORDS}"),
    ],
)
def test_what_is_read_back_counts(read: Any, event: str) -> None:
    play = a_bind_refused()
    play.answer(read(play.the(ReadPod).id))
    said = " ".join(play.notes())
    assert all(part in said for part in event.split(": ", 1))
    assert not play.of(ReadPod), "it is read once"


def test_a_pod_that_another_scheduler_placed_gets_no_condition() -> None:
    play = a_bind_refused()
    play.answer(ReadPlaced(play.the(ReadPod).id, "n9"))
    assert not play.of(PatchPodStatus)


def test_a_lost_binding_keeps_its_place() -> None:
    """The same binding without an answer: no event, and no other pod gets the place."""
    play = Play(small())
    play.see(a_pod("web").requests(cpu="1"))
    play.answer(Unknown(play.the(Bind).id, "etcdserver: request timed out"))
    assert play.of(ReadPod)
    assert not play.of(EmitEvent)
    play.see(a_pod("next").requests(cpu="1"))
    assert not play.of(Bind)


# --- claims ----------------------------------------------------------------------------------


class Claims(Play):
    """One device on n1, the claim c, and a pod that has it allocated by now."""

    def __init__(self) -> None:
        super().__init__(small(), small("n2"))
        self.stored = a_claim_object("c")
        self.turn(Seen(DEVICE_CLASS, a_class()), Seen(RESOURCE_SLICE, a_slice("a")))
        self.turn(*(self.claim(name) for name in ("c", "other")))
        self.turn(self.pod("web", "c"))
        first = self.the(Patch)  # the finalizer
        self.stored["metadata"] |= {"resourceVersion": "2", **first.body["metadata"]}
        self.stored["metadata"]["resourceVersion"] = "2"
        self.turn(Done(first.id, self.stored), Seen(RESOURCE_CLAIM, self.decoded()))

    def decoded(self) -> ResourceClaim:
        return decode(ResourceClaim, self.stored)

    def claim(self, name: str) -> Seen:
        return Seen(RESOURCE_CLAIM, decode(ResourceClaim, a_claim_object(name)))

    def pod(self, name: str, claim: str) -> Seen:
        pod = a_pod(name, "d").requests(cpu="1")
        pod.spec(resourceClaims=[{"name": claim, "resourceClaimName": claim}])
        return Seen(POD, pod.build())

    def status_patch(self) -> Patch:
        patch = self.the(Patch)
        assert (patch.name, patch.subresource) == ("c", "status")
        assert "allocation" in patch.body["status"]
        return patch


def test_a_refused_claim_is_reported_and_its_device_is_free() -> None:
    play = Claims()
    play.answer(refused(play.status_patch().id))
    (note,) = play.notes()
    assert note.endswith(f"add allocation and reservation to claim d/c: {WORDS}")
    assert play.condition()["message"] in note
    play.turn(play.pod("next", "other"))
    assert any(patch.name == "other" for patch in play.of(Patch))


def test_a_lost_claim_keeps_its_device() -> None:
    play = Claims()
    play.answer(Unknown(play.status_patch().id, "etcdserver: request timed out"))
    play.turn(play.pod("next", "other"))
    assert not play.of(Patch)
    assert not [note for note in play.notes() if "web" in note]


def test_a_refusal_does_not_speak_for_the_lost_write_before_it() -> None:
    """... for a minute: by then the first write cannot be carried out any more."""
    play = Claims()
    play.answer(Unknown(play.status_patch().id, "no answer"))
    lost_s = play.now_s
    play.turn(play.pod("next", "other"))
    writes = 0
    while not any("add allocation" in note for note in play.notes()):
        play.turn(after_s=1.0)
        assert play.now_s - lost_s < 90.0, "it ends"
        for patch in play.of(Patch):
            assert patch.name == "c", "the device is not free yet"
            play.answer(refused(patch.id))
            writes += 1
    assert play.now_s - lost_s >= 60.0
    assert writes > 5


# --- volumes ---------------------------------------------------------------------------------


@pytest.mark.parametrize("answer", [refused, lambda i: Unknown(i, WORDS)])
def test_a_volume_that_cannot_be_written_is_reported_at_once(answer: Any) -> None:
    play = Play(a_node("n1").labels({HOST: "n1"}))
    play.turn(
        Seen(STORAGE_CLASS, a_storage_class("local")),
        Seen(PERSISTENT_VOLUME, a_volume("pv", cls="local", reach={HOST: ["n1"]}, version="5")),
        Seen(PERSISTENT_VOLUME_CLAIM, a_claim("c", cls="local", version="6")),
        Seen(POD, a_pod_with_volume("a", "c")),
    )
    said: Answer = answer(play.the(Patch).id)
    play.answer(said)
    (note,) = play.notes()
    assert note == f'FailedScheduling: running PreBind plugin "VolumeBinding": {WORDS}'
    failed_s = play.now_s
    while not play.of(Patch):
        play.turn(after_s=0.5)
        assert play.now_s < failed_s + 30.0


# --- evictions -------------------------------------------------------------------------------


@pytest.mark.parametrize("refuses", [MarkVictim, DeletePod])
def test_a_refused_eviction_is_logged_and_tried_again_with_backoff(refuses: Any) -> None:
    play = Play(small())
    errors: list[tuple[str, str]] = []
    play.machine.context.observer.preemption_failed = lambda *said: errors.append(said)  # type: ignore[method-assign]
    play.see(a_pod("low").requests(cpu="1").priority(0).on("n1"))
    play.see(a_pod("web").requests(cpu="1").priority(100))
    waits = []
    for _ in range(3):
        mark = play.the(MarkVictim)
        if refuses is DeletePod:
            play.answer(Done(mark.id))
        play.answer(refused(play.the(refuses).id))
        assert errors.pop() == ("default/web", f"preempting default/low: {WORDS}")
        failed_s = play.now_s
        while not play.of(MarkVictim):
            play.turn(after_s=0.5)
            assert play.now_s < failed_s + 30.0, "the pod is never tried again"
        waits.append(play.now_s - failed_s)
    assert waits == sorted(waits)
    assert waits[0] >= 0.5


def test_a_refused_pod_status_changes_nothing() -> None:
    """The condition of a pod that fits nowhere is sent and forgotten, as in kube-scheduler."""
    play = Play(small())
    play.see(a_pod("huge").requests(cpu="9"))
    patch = play.the(PatchPodStatus)
    assert not patch.wants_answer
