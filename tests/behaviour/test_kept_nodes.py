"""keepNodes of CheckAndHold: autoscalers do not remove nodes with held places."""

from typing import Any

import orjson
import pytest

from asched.core.cluster.facts import Bound, Done, Gone, Refused, Seen, Unknown
from asched.core.framework.effects import Patch
from asched.core.model.decode import decode
from asched.core.model.kinds import NODE, POD, PROVISIONING_REQUEST
from asched.core.model.node import Node
from tests.builders import room
from tests.playbook import RequestPlay, consumer, request_play

CA = "cluster-autoscaler.kubernetes.io/scale-down-disabled"
KARPENTER = "karpenter.sh/do-not-disrupt"
MARK = "asched.dev/kept-for-held-places"
BOTH = {CA: "true", KARPENTER: "true"}


class Nodes:
    """Stores nodes as an API server would, and answers the writes of its present process."""

    def __init__(self, *names: str, keeps: bool = True, **annotations: str) -> None:
        self.stored: dict[str, dict[str, Any]] = {}
        for name in names:
            made = orjson.loads(orjson.dumps(room(name, 2).json))
            made["metadata"] |= {"uid": f"uid-{name}", "resourceVersion": "1"}
            made["metadata"]["annotations"] = dict(annotations)
            self.stored[name] = made
        self.code = 0
        self.writes = 0
        #: of the next writes without an answer: whether the server carries them out
        self.unanswered: list[bool] = []
        self.begin(keeps=keeps)

    def begin(self, *, keeps: bool = True) -> None:
        """Start a process that knows the nodes."""
        self.play: RequestPlay = request_play(args={"keepNodes": keeps})
        self.play.turn(*(Seen(NODE, self.record(name)) for name in self.stored))

    def record(self, name: str) -> Node:
        return decode(Node, orjson.loads(orjson.dumps(self.stored[name])))

    def annotate(self, name: str, **annotations: str) -> None:
        self.stored[name]["metadata"]["annotations"] |= annotations
        self._changed(name)

    def _changed(self, name: str) -> None:
        metadata = self.stored[name]["metadata"]
        metadata["resourceVersion"] = str(int(metadata["resourceVersion"]) + 1)
        self.play.turn(Seen(NODE, self.record(name)))

    def settle(self, seconds: int = 5) -> None:
        """Let time pass; nodes are written, requests and bindings succeed."""
        for _ in range(seconds):
            self.play.turn(after_s=1.0)
            while patches := self.play.patches():
                for patch in patches:
                    self._answer(patch) if patch.kind is NODE else self.play.perform(patch)

    def _answer(self, patch: Patch) -> None:
        self.writes += 1
        metadata, given = self.stored[patch.name]["metadata"], patch.body["metadata"]
        if self.code or given["resourceVersion"] != metadata["resourceVersion"]:
            self.play.turn(Refused(patch.id, self.code or 409, "refused"))
            return
        is_lost = bool(self.unanswered)
        self.play.turn(Unknown(patch.id, "lost") if is_lost else Done(patch.id))
        if is_lost and not self.unanswered.pop():
            return
        merged = metadata["annotations"] | given["annotations"]
        metadata["annotations"] = {k: v for k, v in merged.items() if v is not None}
        self._changed(patch.name)

    def of(self, name: str) -> dict[str, str]:
        found: dict[str, str] = self.stored[name]["metadata"]["annotations"]
        return found

    def ask(self, count: int = 1) -> None:
        self.play.template()
        self.play.ask(sets={"worker": count})
        self.settle()

    def drop_request(self) -> None:
        self.play.turn(Gone(PROVISIONING_REQUEST, self.play.record("job")))
        self.settle()


def test_a_node_is_kept_while_a_place_is_held_there() -> None:
    nodes = Nodes("n1", "n2")
    nodes.ask()
    (held,) = nodes.play.held()
    (other,) = {"n1", "n2"} - {held}
    assert nodes.of(held) == BOTH | {MARK: f"{CA},{KARPENTER}"}
    assert nodes.of(other) == {}
    nodes.settle(180)
    assert nodes.writes == 1
    nodes.play.see(consumer("a"))
    (bind,) = nodes.play.binds()
    bound = nodes.play.parts.cluster.pods_seen[bind.pod.key].on(bind.node)
    nodes.play.turn(Bound(bind.id), Seen(POD, bound))
    nodes.settle()
    assert nodes.of(held) == {}, "its place is taken by a pod"


def test_an_annotation_of_another_client_stays() -> None:
    nodes = Nodes("n1")
    nodes.annotate("n1", **{CA: "false"})
    nodes.ask()
    assert nodes.of("n1") == {CA: "false", KARPENTER: "true", MARK: KARPENTER}
    nodes.annotate("n1", **{KARPENTER: "1h"})  # changed meanwhile
    nodes.drop_request()
    assert nodes.of("n1") == {CA: "false", KARPENTER: "1h"}


def test_a_process_removes_what_an_earlier_one_left() -> None:
    nodes = Nodes("n1", "n2")
    nodes.ask(2)
    assert any(MARK in nodes.of(name) for name in nodes.stored)
    nodes.begin()  # the request was deleted while no process ran
    nodes.settle(70)
    assert [nodes.of(name) for name in nodes.stored] == [{}, {}]


@pytest.mark.parametrize("code", [403, 409])
def test_a_refused_write_is_made_again(code: int) -> None:
    nodes = Nodes("n1")
    nodes.code = code
    nodes.ask()
    assert nodes.of("n1") == {}
    nodes.settle(60)
    assert nodes.writes < 80
    nodes.code = 0
    nodes.settle(70)
    assert nodes.of("n1") == BOTH | {MARK: f"{CA},{KARPENTER}"}


@pytest.mark.parametrize("is_carried_out", [False, True])
def test_a_write_without_an_answer_is_made_again_within_seconds(*, is_carried_out: bool) -> None:
    nodes = Nodes("n1")
    nodes.unanswered = [is_carried_out]
    nodes.ask()
    assert nodes.of("n1") == BOTH | {MARK: f"{CA},{KARPENTER}"}
    nodes.unanswered = [is_carried_out]
    nodes.drop_request()
    assert nodes.of("n1") == {}


def test_by_default_no_node_is_written() -> None:
    nodes = Nodes("n1", keeps=False)
    nodes.ask()
    assert nodes.play.held() == {"n1": 1}
    assert nodes.writes == 0
