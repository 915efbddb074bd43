"""ProvisioningRequests: requests, pods that consume them, and the room reserved for them."""

from typing import Any

import orjson

from asched.core.cluster.audit import recount
from asched.core.cluster.facts import Answer, Bound, Done, Fact, Refused, Seen
from asched.core.framework.effects import Bind, Effect, Patch
from asched.core.model.decode import decode
from asched.core.model.kinds import POD, POD_TEMPLATE, PROVISIONING_REQUEST
from asched.core.model.provisioning import PodTemplate, ProvisioningRequest
from tests.builders import NodeBuilder, PodBuilder, a_node, a_pod
from tests.plays.playbook import Play

CLASS = "check-and-hold.asched.dev"
CONSUMES = "autoscaling.x-k8s.io/consume-provisioning-request"
HOLD_S = 600


def a_play(*nodes: NodeBuilder, args: dict[str, Any] | None = None) -> "RequestPlay":
    plugins = {"multiPoint": {"enabled": [{"name": "CheckAndHold"}]}}
    config = [{"name": "CheckAndHold", "args": {"maxNamespacePercentage": 100, **(args or {})}}]
    own = {"schedulerName": "default-scheduler", "plugins": plugins, "pluginConfig": config}
    return RequestPlay(*nodes, profiles=[own])


class RequestPlay(Play):
    """Keeps requests as an API server would: a write is refused if its version is old."""

    def __init__(self, *nodes: NodeBuilder, **config: Any) -> None:
        self.stored: dict[str, dict[str, Any]] = {}
        self.version = 1
        self.open: dict[int, Effect] = {}
        super().__init__(*nodes, **config)

    def turn(self, *facts: Fact, after_s: float = 0.0) -> list[Effect]:
        """What wants an answer stays `open` until it has one."""
        for fact in facts:
            if isinstance(fact, Answer):
                self.open.pop(fact.effect_id, None)
        for effect in super().turn(*facts, after_s=after_s):
            if effect.answers and effect.wants_answer:
                self.open[effect.id] = effect
        return self.effects

    def patches(self) -> list[Patch]:
        return [effect for effect in self.open.values() if isinstance(effect, Patch)]

    def binds(self) -> list[Bind]:
        return [effect for effect in self.open.values() if isinstance(effect, Bind)]

    def template(
        self, name: str = "worker", cpu: str = "1", namespace: str = "default", **spec: Any
    ) -> None:
        container = {"name": "main", "image": "app", "resources": {"requests": {"cpu": cpu}}}
        made = {
            "metadata": {"name": name, "namespace": namespace, "uid": f"{namespace}-{name}"},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {"schedulerName": "default-scheduler", "containers": [container], **spec},
            },
        }
        self.turn(Seen(POD_TEMPLATE, decode(PodTemplate, made)))

    def ask(
        self,
        name: str = "job",
        sets: dict[str, int] | None = None,
        namespace: str = "default",
        **more: Any,
    ) -> None:
        pod_sets = [
            {"podTemplateRef": {"name": template}, "count": count}
            for template, count in (sets or {"worker": 2}).items()
        ]
        spec = {"provisioningClassName": CLASS, "podSets": pod_sets, **more}
        metadata = {"name": name, "namespace": namespace, "uid": f"uid-{name}", "generation": 1}
        self.stored[name] = {"metadata": metadata, "spec": spec, "status": {}}
        self.show(name)

    def show(self, name: str) -> None:
        """The watch tells of the request as it is stored."""
        self.version += 1
        self.stored[name]["metadata"]["resourceVersion"] = str(self.version)
        self.turn(Seen(PROVISIONING_REQUEST, self.record(name)))

    def record(self, name: str) -> ProvisioningRequest:
        return decode(ProvisioningRequest, orjson.loads(orjson.dumps(self.stored[name])))

    def perform(self, patch: Patch) -> None:
        """Carry a write out."""
        stored, status = self.stored[patch.name], patch.body["status"]
        assert patch.body["metadata"]["uid"] == stored["metadata"]["uid"]
        if patch.body["metadata"]["resourceVersion"] != stored["metadata"]["resourceVersion"]:
            self.turn(Refused(patch.id, 409, "the object has been modified"))
            return
        stored["status"]["conditions"] = list(status["conditions"])
        details = stored["status"].get("provisioningClassDetails", {})
        details |= status.get("provisioningClassDetails", {})
        details = {k: v for k, v in details.items() if v is not None}
        stored["status"]["provisioningClassDetails"] = details
        self.turn(Done(patch.id))
        self.show(patch.name)

    def settle(self, name: str = "job") -> dict[str, tuple[str, str]]:
        """Carry out all writes; what the request says then: type to (status, reason)."""
        for _ in range(20):
            patches = self.patches()
            if not patches:
                break
            for patch in patches:
                self.perform(patch)
        return self.said(name) if name in self.stored else {}

    def said(self, name: str = "job") -> dict[str, tuple[str, str]]:
        conditions = self.stored[name]["status"].get("conditions", ())
        return {c["type"]: (c["status"], c["reason"]) for c in conditions}

    def message(self, type_: str, name: str = "job") -> str:
        conditions = self.stored[name]["status"]["conditions"]
        return next(c["message"] for c in conditions if c["type"] == type_)

    def details(self, name: str = "job") -> dict[str, str]:
        return self.stored[name]["status"].get("provisioningClassDetails", {})

    def held(self) -> dict[str, int]:
        """Slots that count, by node."""
        found: dict[str, int] = {}
        for hold in self.parts.cluster.holds:
            for place in () if hold.is_lifted else hold.places:
                found[place.node_name] = found.get(place.node_name, 0) + 1
        return found

    def bindings(self) -> dict[str, str]:
        """Answer all bindings, and show them: pod to node."""
        found = {}
        while binds := self.binds():
            for bind in binds:
                found[bind.pod.name] = bind.node
                pod = self.parts.cluster.pods_seen[bind.pod.key].on(bind.node)
                self.turn(Bound(bind.id), Seen(POD, pod))
        return found

    def audited(self) -> None:
        assert recount(self.parts.cluster) == []


def room(name: str, cpu: int) -> NodeBuilder:
    return a_node(name).allocatable(cpu=str(cpu), memory="64Gi", pods="100")


def consumer(name: str, cpu: str = "1", request: str = "job", key: str = CONSUMES) -> PodBuilder:
    pod = a_pod(name).requests(cpu=cpu)
    return pod.metadata(annotations={key: request})


def again(play: RequestPlay, *nodes: Any) -> RequestPlay:
    """A process that begins after the one of `play`."""
    other = a_play(*nodes)
    other.now_s, other.stored, other.version = play.now_s, play.stored, play.version
    return other


def held_play(*nodes: NodeBuilder, count: int = 2) -> RequestPlay:
    play = a_play(*(nodes or (room("n1", 2), room("n2", 1))))
    play.template()
    play.ask(sets={"worker": count})
    said = play.settle()
    assert said["Provisioned"] == ("True", "CapacityIsFound"), said
    return play
