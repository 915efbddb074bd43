"""PreBind of DynamicResources as a dialogue: what is asked, and what follows an answer."""

from collections.abc import Generator
from typing import Any

from asched.core.cluster.facts import Answer, Done, Refused, TimedOut, Unknown
from asched.core.framework.effects import Create, Effect, EmitEvent, Patch, WaitFor
from asched.core.framework.meter import PluginObserver, PluginReports
from asched.core.framework.status import Code, Status
from asched.core.model.kinds import DEVICE_CLASS, RESOURCE_CLAIM, RESOURCE_SLICE
from asched.core.model.pod import Pod
from asched.core.plugins.devices.binding import ATTEMPTS_MAX
from tests.device_builders import (
    GPU,
    DraWorld,
    a_claim_object,
    a_claiming_pod,
    a_class,
    a_device,
    a_device_node,
    a_slice,
    allocated,
)

FINALIZER = "resource.kubernetes.io/delete-protection"
POD_REF = {"resource": "pods", "name": "p", "uid": "uid-p"}


class Dialogue:
    """One pod reserved on n1, and its PreBind, one effect at a time."""

    def __init__(self, world: DraWorld, pod: Pod) -> None:
        self.world = world
        self.info = world.info(pod)
        attempt = world.attempt(pod)
        assert isinstance(attempt, dict)
        assert attempt["n1"] == ""
        assert world.plugin.reserve(self.info, "n1", None).is_success
        self.steps: Generator[Effect, Answer, Status] = world.plugin.pre_bind(self.info, "n1")
        self.status: Status | None = None
        self.effect: Any = None
        self._advance(None)

    def _advance(self, answer: Any) -> None:
        try:
            self.effect = next(self.steps) if answer is None else self.steps.send(answer)
        except StopIteration as done:
            self.effect, self.status = None, done.value

    def done(self, obj: dict[str, Any] | None = None) -> None:
        self._advance(Done(0, obj))

    def refused(self, code: int, message: str = "no") -> None:
        self._advance(Refused(0, code, message))

    def lost(self) -> None:
        self._advance(Unknown(0, "no answer"))

    def timed_out(self) -> None:
        self._advance(TimedOut(0))


def with_finalizer(version: str = "2") -> dict[str, Any]:
    return {"metadata": {"finalizers": [FINALIZER], "resourceVersion": version}}


def bound(version: str = "3", **status: Any) -> dict[str, Any]:
    """The claim as the API answers once everything is written."""
    return {**with_finalizer(version), **allocated(**status), "reservedFor": [POD_REF]}


def test_the_time_of_the_allocation_is_told_where_it_is_known() -> None:
    world = DraWorld(a_claim_object("c", metadata={"finalizers": [FINALIZER]}))
    world.cluster.wall_clock_s = 1_767_225_600.0
    talk = Dialogue(world, a_claiming_pod("c"))
    written = talk.effect.body["status"]["allocation"]["allocationTimestamp"]
    assert written == "2026-01-01T00:00:00Z"


def test_an_allocated_claim_is_reserved_only() -> None:
    other = {"resource": "pods", "name": "q", "uid": "uid-q"}
    world = DraWorld(a_claim_object("c", **allocated(reservedFor=[other])))
    talk = Dialogue(world, a_claiming_pod("c"))
    assert talk.effect.body["status"] == {"reservedFor": [other, POD_REF]}


def test_a_claim_reserved_for_the_pod_needs_no_write() -> None:
    world = DraWorld(a_claim_object("c", **allocated(reservedFor=[POD_REF])))
    talk = Dialogue(world, a_claiming_pod("c"))
    assert talk.effect is None
    assert talk.status is not None
    assert talk.status.is_success


def test_a_conflict_is_tried_again_with_the_newer_version() -> None:
    world = DraWorld(a_claim_object("c"))
    talk = Dialogue(world, a_claiming_pod("c"))
    talk.refused(409)
    assert isinstance(talk.effect, WaitFor)
    assert not talk.effect.ready()
    world.see_claim(a_claim_object("c", **with_finalizer("7")))
    assert talk.effect.ready()
    talk.done()
    assert talk.effect.subresource == "status"
    assert talk.effect.body["metadata"]["resourceVersion"] == "7"


def test_an_unknown_outcome_is_settled_by_the_newer_version() -> None:
    """1. The write gets no answer. 2. It had been carried out: the watch says so."""
    world = DraWorld(a_claim_object("c", **with_finalizer()))
    talk = Dialogue(world, a_claiming_pod("c"))
    talk.lost()
    world.see_claim(a_claim_object("c", **bound()))
    talk.done()
    assert talk.status is not None
    assert talk.status.is_success


def test_devices_stay_taken_as_long_as_nobody_knows_what_became_of_the_write() -> None:
    """1. The answer is lost and the watch is silent. 2. The same write is sent again: it can only
    succeed if the first one was not carried out. 3. It meets a newer version. 4. The watch shows
    that this was our own write.
    """
    world = DraWorld(a_claim_object("c", **with_finalizer()))
    talk = Dialogue(world, a_claiming_pod("c"))
    for _ in range(2 * ATTEMPTS_MAX):
        talk.lost()
        assert talk.effect.in_doubt, "nobody may end this wait and give the devices back"
        talk.timed_out()
        assert isinstance(talk.effect, Patch)
        assert talk.effect.body["metadata"]["resourceVersion"] == "2"
    talk.refused(409)
    talk.timed_out()
    assert isinstance(talk.effect, Patch), "a conflict alone does not tell who was faster"
    talk.refused(409)
    world.see_claim(a_claim_object("c", **bound()))
    talk.done()
    assert talk.status is not None
    assert talk.status.is_success


def test_a_claim_allocated_elsewhere_in_the_meantime_is_an_error() -> None:
    world = DraWorld(a_claim_object("c", **with_finalizer()))
    talk = Dialogue(world, a_claiming_pod("c"))
    talk.refused(409)
    world.see_claim(a_claim_object("c", **{**with_finalizer("5"), **allocated("b")}))
    talk.done()
    assert talk.status is not None
    assert talk.status.code is Code.ERROR
    assert talk.status.message == "claim d/c got allocated elsewhere in the meantime"


def test_a_refusal_is_passed_on() -> None:
    talk = Dialogue(DraWorld(a_claim_object("c", **with_finalizer())), a_claiming_pod("c"))
    talk.refused(403, "forbidden")
    assert talk.status is not None
    expected = "add allocation and reservation to claim d/c: forbidden"
    assert talk.status.message == expected


def test_a_claim_that_never_changes_after_a_conflict_is_given_up() -> None:
    talk = Dialogue(DraWorld(a_claim_object("c")), a_claiming_pod("c"))
    talk.refused(409, "conflict")
    talk.timed_out()
    assert talk.status is not None
    assert talk.status.message == "get updated claim d/c after conflict: conflict"


def test_attempts_are_bounded() -> None:
    world = DraWorld(a_claim_object("c", **with_finalizer()))
    talk = Dialogue(world, a_claiming_pod("c"))
    for attempt in range(ATTEMPTS_MAX):
        talk.refused(409)
        world.see_claim(a_claim_object("c", **with_finalizer(str(10 + attempt))))
        talk.done()
    assert talk.status is not None
    assert talk.status.message == "add allocation and reservation to claim d/c: no"


# --- extended resources --------------------------------------------------------------------------


def extended() -> Dialogue:
    world = DraWorld(nodes=(a_device_node("n1"), a_device_node("n2")))
    world.see(DEVICE_CLASS, a_class("gpu", extendedResourceName=GPU))
    return Dialogue(world, a_claiming_pod(gpu="1"))


def test_a_claim_for_extended_resources_is_created_written_and_told() -> None:
    talk = extended()
    assert isinstance(talk.effect, Create)
    metadata = talk.effect.body["metadata"]
    assert metadata["generateName"] == "p-extended-resources-"
    assert metadata["annotations"] == {"resource.kubernetes.io/extended-resource-claim": "true"}
    assert metadata["ownerReferences"][0]["uid"] == "uid-p"
    (request,) = talk.effect.body["spec"]["devices"]["requests"]
    assert request["exactly"] == {
        "deviceClassName": "gpu",
        "allocationMode": "ExactCount",
        "count": 1,
    }
    talk.done(a_claim_object("p-extended-resources-x", **with_finalizer()))
    assert talk.effect.name == "p-extended-resources-x"
    assert talk.effect.subresource == "status"
    talk.done(a_claim_object("p-extended-resources-x", **bound()))
    assert talk.effect.body["status"] == {
        "extendedResourceClaimStatus": {
            "resourceClaimName": "p-extended-resources-x",
            "requestMappings": [
                {"containerName": "a", "resourceName": GPU, "requestName": "container-0-request-0"}
            ],
        }
    }
    talk.done()
    assert talk.status is not None
    assert talk.status.is_success


def test_a_claim_that_could_not_be_written_is_an_error() -> None:
    talk = extended()
    talk.done(a_claim_object("x", **with_finalizer()))
    talk.refused(403)
    assert talk.status is not None
    assert talk.status.code is Code.ERROR


def test_a_created_claim_that_the_watch_has_not_shown_yet_is_not_gone() -> None:
    talk = extended()
    talk.done(a_claim_object("x", **with_finalizer()))
    talk.lost()
    assert isinstance(talk.effect, WaitFor)
    assert not talk.effect.ready()
    talk.timed_out()
    assert isinstance(talk.effect, Patch), "the same again: nobody knows whether it was written"


def test_a_claim_is_deleted_in_the_version_that_we_know_last() -> None:
    """Else the finalizer that we gave it would keep it."""
    talk = extended()
    assert isinstance(talk.effect, Create)
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "uid-p", "controller": True}
    marks = {
        "annotations": {"resource.kubernetes.io/extended-resource-claim": "true"},
        "ownerReferences": [owner],
    }
    protected = {"metadata": {**with_finalizer("2")["metadata"], **marks}}
    talk.done(a_claim_object("x", metadata={"resourceVersion": "1", **marks}))
    talk.done(a_claim_object("x", **protected))
    talk.refused(403)
    assert talk.status is not None

    undone = talk.world.plugin.unreserve(talk.info, "n1")

    assert undone is not None
    effect = next(undone)
    assert isinstance(effect, Patch)
    assert effect.body["metadata"] == {
        "uid": "uid-x",
        "resourceVersion": "2",
        "finalizers": None,
    }


# --- binding conditions --------------------------------------------------------------------------


BINDS = {"bindingConditions": ["ready"], "bindingFailureConditions": ["failed"]}


def told(condition: str, version: str) -> dict[str, Any]:
    """The claim with a condition of its device."""
    device = {"driver": "gpu.example.com", "pool": "n1", "device": "a"}
    conditions = [{"type": condition, "status": "True", "reason": "R", "message": 'say "no"'}]
    status = bound(version, result=BINDS)
    return a_claim_object("c", **status, devices=[{**device, "conditions": conditions}])


def waiting(*others: dict[str, Any]) -> Dialogue:
    """A pod that has written its claims and waits for the device of the claim c."""
    world = DraWorld(a_claim_object("c", **with_finalizer()), *others)
    world.see(RESOURCE_SLICE, a_slice(a_device("a", **BINDS), "b"))
    talk = Dialogue(world, a_claiming_pod("c", *(other["metadata"]["name"] for other in others)))
    talk.done(a_claim_object("c", **bound(result=BINDS)))
    assert isinstance(talk.effect, EmitEvent)
    assert talk.effect.reason == "BindingConditionsPending"
    assert talk.effect.note == "waiting for binding conditions for device on node n1"
    talk.done()
    assert isinstance(talk.effect, WaitFor)
    assert talk.effect.timeout_s == 600
    assert not talk.effect.ready()
    return talk


class Heard(PluginObserver):
    """Remembers what is reported of devices."""

    def __init__(self, talk: Dialogue) -> None:
        self.waits: list[tuple[str, str, str, float]] = []
        self.bindings: list[tuple[str, str, str]] = []
        talk.world.cluster.singleton(PluginReports).observer = self

    def device_awaited(self, profile: str, driver: str, status: str, waited_s: float) -> None:
        self.waits.append((profile, driver, status, waited_s))

    def device_bound(self, profile: str, driver: str, status: str) -> None:
        self.bindings.append((profile, driver, status))


def test_binding_goes_on_once_the_conditions_are_met() -> None:
    talk = waiting()
    heard = Heard(talk)
    talk.world.cluster.steady_s += 7.5
    talk.world.see_claim(told("ready", "4"))
    assert talk.effect.ready()
    talk.done()
    assert talk.status is not None
    assert talk.status.is_success
    assert heard.waits == [("asched", "gpu.example.com", "success", 7.5)]
    assert heard.bindings == [("asched", "gpu.example.com", "success")]


def test_a_claim_that_goes_while_it_is_waited_for_is_an_error() -> None:
    talk = waiting()
    heard = Heard(talk)
    talk.world.lose(RESOURCE_CLAIM, talk.world.cluster.get(RESOURCE_CLAIM, "d/c"))
    assert talk.effect.ready()
    talk.done()
    assert talk.status is not None
    assert talk.status.message == 'could not find ResourceClaim "d/c"'
    assert [status for *_, status in heard.bindings] == ["error"]


def test_a_failure_condition_ends_the_wait() -> None:
    talk = waiting()
    heard = Heard(talk)
    talk.world.see_claim(told("failed", "4"))
    assert talk.effect.ready()
    talk.done()
    assert talk.status is not None
    assert talk.status.message == 'device binding failed: claim=c, reason=R, message="say \\"no\\""'
    assert [status for *_, status in heard.bindings] == ["failure"]


def test_the_wait_has_an_end() -> None:
    talk = waiting()
    heard = Heard(talk)
    talk.timed_out()
    assert talk.status is not None
    assert talk.status.message == "device binding timeout: context deadline exceeded"
    assert [status for *_, status in heard.bindings] == ["timeout"]
