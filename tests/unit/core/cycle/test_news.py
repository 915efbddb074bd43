"""What the API has answered with is heard of by those who wait, however late the watch is."""

from typing import Any

import msgspec

from asched.core.cluster.facts import Bound, Done, Fact, Seen, Unknown
from asched.core.framework.effects import Bind, Patch
from asched.core.model.claim import ResourceClaim
from asched.core.model.decode import decode
from asched.core.model.kinds import DEVICE_CLASS, POD, RESOURCE_CLAIM, RESOURCE_SLICE
from asched.core.model.pod import Pod
from tests.builders import a_node
from tests.device_builders import a_claim_object, a_claiming_pod, a_class, a_slice
from tests.playbook import Play


class Api:
    """Carries out what is asked and answers at once; its watch tells nothing."""

    def __init__(self, play: Play, claim: dict[str, Any]) -> None:
        self.play = play
        self.claim = claim
        self.bound: list[str] = []
        self.sees(RESOURCE_CLAIM, decode(ResourceClaim, claim))

    def sees(self, *one: Any) -> None:
        self.play.turn(Seen(*one))

    def runs(self, turns: int = 20) -> None:
        for _ in range(turns):
            answers = [self._answer(e) for e in self.play.effects if e.answers and e.wants_answer]
            self.play.turn(*answers)

    def _answer(self, effect: Any) -> Fact:
        if isinstance(effect, Bind):
            self.bound.append(effect.pod.name)
            return Bound(effect.id)
        if not isinstance(effect, Patch):
            return Unknown(effect.id, "nobody is there")
        body = msgspec.to_builtins(effect.body)
        version = str(int(self.claim["metadata"]["resourceVersion"]) + 1)
        self.claim["metadata"] |= {**body.pop("metadata", {}), "resourceVersion": version}
        self.claim["status"] |= body.pop("status", {})
        return Done(effect.id, msgspec.to_builtins(self.claim))


def mine(pod: Pod) -> Pod:
    spec = msgspec.structs.replace(pod.spec, scheduler_name="default-scheduler")
    return msgspec.structs.replace(pod, spec=spec)


def test_who_shares_a_claim_follows_as_soon_as_it_is_allocated() -> None:
    """kube-scheduler's AssumeCache tells its handlers after the call as well."""
    api = Api(Play(a_node("n1")), a_claim_object("c"))
    api.sees(DEVICE_CLASS, a_class())
    for name in ("p", "q"):
        api.sees(POD, mine(a_claiming_pod("c", name=name)))
    api.runs()
    assert api.bound == [], "there are no devices"

    api.sees(RESOURCE_SLICE, a_slice("a"))
    api.runs()
    assert api.bound == ["p", "q"]
    consumers = [one["name"] for one in api.claim["status"]["reservedFor"]]
    assert consumers == ["p", "q"]


def test_news_is_told_once_and_only_if_it_is_any() -> None:
    play = Play(a_node("n1"))
    cluster = play.parts.cluster
    old, new = (
        decode(ResourceClaim, a_claim_object("c", metadata={"resourceVersion": version}))
        for version in ("3", "4")
    )
    play.turn(Seen(RESOURCE_CLAIM, old))
    cluster.answered(RESOURCE_CLAIM, new)
    assert cluster.answered_changes == [(RESOURCE_CLAIM, old, new)]
    assert play.machine.next_deadline_s() == 0.0
    play.turn()
    assert cluster.answered_changes == []
    cluster.answered(RESOURCE_CLAIM, new)
    cluster.answered(RESOURCE_CLAIM, old)
    assert cluster.get(RESOURCE_CLAIM, "d/c").metadata.resource_version == "3"
    play.turn(Seen(RESOURCE_CLAIM, new))
    cluster.answered(RESOURCE_CLAIM, old)
    assert cluster.get(RESOURCE_CLAIM, "d/c") is new, "the watch was quicker"
