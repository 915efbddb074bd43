"""Messages that programs compare are kube-scheduler's, word for word."""

from typing import Any

import pytest

from asched.core.cluster.facts import Done, Fact, Refused, Seen
from asched.core.framework.effects import Patch, WaitFor
from asched.core.framework.points import Late, PermitPlugin, PreBindPlugin
from asched.core.framework.status import SUCCESS, Code, Status
from asched.core.model.claim import ResourceClaim
from asched.core.model.decode import decode
from asched.core.model.kinds import DEVICE_CLASS, POD, RESOURCE_CLAIM, RESOURCE_SLICE
from asched.plugin import PodInfo
from tests.builders import a_node, a_pod
from tests.device_builders import a_claim_object, a_class, a_device, a_slice
from tests.playbook import Play


class AtPermit(PermitPlugin):
    """Lets the pod low wait."""

    name = "AtPermit"

    def registrations(self) -> tuple[()]:
        return ()

    def permit(self, pod: PodInfo, node: str) -> tuple[Status, float]:
        return (Status(Code.WAIT), 60.0) if pod.pod.metadata.name == "low" else (SUCCESS, 0.0)


class AtPreBind(PreBindPlugin):
    """Lets the pod low wait."""

    name = "AtPreBind"

    def registrations(self) -> tuple[()]:
        return ()

    def pre_bind_pre_flight(self, pod: PodInfo, node: str) -> Status:
        return SUCCESS

    def pre_bind(self, pod: PodInfo, node: str) -> Late:
        yield WaitFor(ready=lambda: False, timeout_s=60.0)
        return SUCCESS


@pytest.mark.parametrize(
    ("plugin", "words"),
    [
        (AtPermit, "waiting on permit for pod: preempted"),
        (AtPreBind, 'running PreBind plugin "AtPreBind": preempted by DefaultPreemption'),
    ],
)
def test_a_pod_that_is_preempted_on_its_way_to_its_node(plugin: Any, words: str) -> None:
    play = Play(a_node("n1").allocatable(cpu="1"), plugins=(plugin,))
    play.see(a_pod("low").requests(cpu="1").priority(0))
    play.see(a_pod("high").requests(cpu="1").priority(100))
    assert f"FailedScheduling: {words}" in play.notes()
    (condition,) = [
        e.condition for e in play.effects if getattr(e, "pod", None) and e.pod.name == "low"
    ]
    assert condition["message"] == words


class Claimed(Play):
    """The claim c, its device, which binds under a condition, and a pod for it."""

    def __init__(self) -> None:
        super().__init__(a_node("n1"))
        binds = {"bindingConditions": ["Ready"], "bindingFailureConditions": ["Failed"]}
        self.turn(
            Seen(DEVICE_CLASS, a_class()),
            Seen(RESOURCE_SLICE, a_slice(a_device("a", **binds))),
            self.stored(),
        )
        pod = a_pod("web", "d").spec(resourceClaims=[{"name": "c", "resourceClaimName": "c"}])
        self.turn(Seen(POD, pod.build()))

    def stored(self, version: int = 1, **more: Any) -> Fact:
        self.json = a_claim_object("c") | more
        self.json["metadata"]["resourceVersion"] = str(version)
        return Seen(RESOURCE_CLAIM, decode(ResourceClaim, self.json))

    def carry_out(self, version: int) -> Patch:
        """The API server carries the next write to the claim out; returns it."""
        patch = self.the(Patch)
        self.json["metadata"] |= patch.body["metadata"] | {"resourceVersion": str(version)}
        self.json["status"] |= patch.body.get("status", {})
        fact = Seen(RESOURCE_CLAIM, decode(ResourceClaim, self.json))
        self.turn(Done(patch.id, self.json), fact)
        return patch

    def failed_with(self, words: str) -> None:
        for patch in self.of(Patch):  # the reservation is taken back first
            self.answer(Done(patch.id))
        assert self.notes() == [
            f'FailedScheduling: running PreBind plugin "DynamicResources": {words}'
        ]


def test_a_finalizer_that_cannot_be_added() -> None:
    play = Claimed()
    play.answer(Refused(play.the(Patch).id, 403, "no", "Forbidden"))
    play.failed_with("add finalizer to claim d/c: no")


def test_a_claim_that_cannot_be_allocated() -> None:
    play = Claimed()
    play.carry_out(2)
    play.answer(Refused(play.the(Patch).id, 403, "no", "Forbidden"))
    play.failed_with("add allocation and reservation to claim d/c: no")


def test_a_claim_that_changes_all_the_time() -> None:
    play = Claimed()
    play.carry_out(2)
    for version in range(3, 8):
        play.json["metadata"]["resourceVersion"] = str(version)
        newer = Seen(RESOURCE_CLAIM, decode(ResourceClaim, play.json))
        play.turn(Refused(play.the(Patch).id, 409, "modified", "Conflict"), newer)
    play.failed_with("add allocation and reservation to claim d/c: modified")


@pytest.mark.parametrize(
    ("told", "words"),
    [
        (
            {"type": "Failed", "status": "True", "reason": "Broken", "message": 'no\n"card"'},
            'device binding failed: claim=c, reason=Broken, message="no\\n\\"card\\""',
        ),
        (None, "device binding timeout: context deadline exceeded"),
    ],
)
def test_a_device_that_does_not_bind(told: dict[str, Any] | None, words: str) -> None:
    play = Claimed()
    play.carry_out(2)
    play.carry_out(3)
    assert play.notes() == [
        "BindingConditionsPending: waiting for binding conditions for device on node n1"
    ]
    if told is None:
        play.turn(after_s=601.0)
    else:
        told |= {"lastTransitionTime": "2026-11-01T00:00:00Z"}
        result = play.json["status"]["allocation"]["devices"]["results"][0]
        device = {key: result[key] for key in ("driver", "pool", "device")}
        play.json["status"]["devices"] = [device | {"conditions": [told]}]
        play.json["metadata"]["resourceVersion"] = "4"
        play.turn(Seen(RESOURCE_CLAIM, decode(ResourceClaim, play.json)))
    play.failed_with(words)
