"""A cluster for the replay of extender scenarios: objects as JSON, a machine, and a virtual clock.

The world does what an API server does with the scheduler's writes and tells the machine of it
through the real codec; questions to extenders go through the real HTTP client. Only time is not
real: when nothing is left to do, it jumps to the machine's next deadline.
"""

import copy
import json
from typing import Any

from asched.core.cluster.facts import (
    Bound,
    Done,
    Fact,
    Gone,
    ReadGone,
    ReadPending,
    ReadPlaced,
    Refused,
    Seen,
)
from asched.core.config.v1 import SchedulerConfiguration
from asched.core.framework.effects import (
    AskExtender,
    Bind,
    DeletePod,
    Effect,
    EmitEvent,
    PatchPodStatus,
    ReadPod,
)
from asched.core.model.kinds import NODE, POD, Kind
from asched.host.assemble import Parts, build_machine, build_runners
from asched.host.extenders import Consultants
from asched.kube.codec import DELETED, KindCodec
from asched.kube.writes import patch_pod_status

Json = dict[str, Any]

#: No recorded scenario took longer.
HORIZON_S = 60.0
TURNS_MAX = 400


class World:
    """`events` are (reason, note, object), `writes` (verb, end of the path), in order of time."""

    def __init__(self, configuration: SchedulerConfiguration) -> None:
        self.parts = Parts.fresh()
        self.consultants = Consultants(configuration.extenders, self.parts.cluster)
        runners = build_runners(configuration, self.parts)
        self.machine = build_machine(configuration, self.parts, runners, monotonic_s=lambda: 0.0)
        self.pods: dict[str, Json] = {}
        self.events: list[tuple[str, str, str]] = []
        self.writes: list[tuple[str, str]] = []
        self.now_s = 1000.0
        self._facts: list[Fact] = []
        self._version = 1
        self._codecs = {
            kind: KindCodec(kind, lambda *_: None, self.consultants.raw_objects)
            for kind in (NODE, POD)
        }

    async def close(self) -> None:
        await self.consultants.close()

    # --- objects ---------------------------------------------------------------------------------

    def add_node(self, node: Json) -> None:
        self._tell(NODE, "ADDED", node)

    def add_pod(self, pod: Json) -> None:
        self.pods[pod["metadata"]["name"]] = pod
        self._tell(POD, "ADDED", pod)

    def place(self, name: str, node: str) -> None:
        """As a binding does, whoever asked for it."""
        pod = self.pods[name]
        pod["spec"]["nodeName"] = node
        pod["status"].pop("nominatedNodeName", None)
        self._condition(pod, {"type": "PodScheduled", "status": "True"})
        self._changed(pod)

    def _changed(self, pod: Json) -> None:
        self._version += 1
        pod["metadata"]["resourceVersion"] = str(self._version)
        self._tell(POD, "MODIFIED", pod)

    def _tell(self, kind: Kind, type_: str, obj: Json) -> None:
        """Through the codec, with what only the wire has."""
        sent = {"kind": kind.name, "apiVersion": "v1", **copy.deepcopy(obj)}
        sent["metadata"]["managedFields"] = [{"manager": "somebody"}]
        line = json.dumps({"type": type_, "object": sent}).encode()
        for sight in self._codecs[kind].events([line]):
            assert sight.obj is not None
            fact = Gone(kind, sight.obj) if type_ == DELETED else Seen(kind, sight.obj)
            self.consultants.raw_objects.observe(fact)
            self._facts.append(fact)

    # --- time ------------------------------------------------------------------------------------

    async def run(self, is_enough: Any) -> None:
        """Until nothing can happen at once and the recording's end has been reached."""
        start_s = self.now_s
        for _ in range(TURNS_MAX):
            facts, self._facts = self._facts, []
            for effect in self.machine.handle(facts, self.now_s):
                await self._perform(effect)
            if self._facts:
                continue
            deadline_s = self.machine.next_deadline_s()
            if is_enough() or deadline_s is None or deadline_s > start_s + HORIZON_S:
                return
            self.now_s = max(self.now_s, deadline_s)

    # --- effects ---------------------------------------------------------------------------------

    async def _perform(self, effect: Effect) -> None:
        match effect:
            case EmitEvent():
                self.events.append((effect.reason, effect.note, effect.regarding.name))
            case AskExtender():
                self._facts.append(await self.consultants.client.ask(effect))
            case Bind():
                self.writes.append(("create", f"{effect.pod.name}/binding"))
                self.place(effect.pod.name, effect.node)
                self._facts.append(Bound(effect.id))
            case PatchPodStatus():
                self._patch(effect)
            case DeletePod():
                self.writes.append(("delete", f"pods/{effect.pod.name}"))
                pod = self.pods.pop(effect.pod.name)
                self._tell(POD, DELETED, pod)
                self._facts.append(Done(effect.id))
            case ReadPod():
                self._facts.append(self._read(effect))
            case _:
                raise AssertionError(f"nobody expected {effect}")

    def _read(self, effect: ReadPod) -> Fact:
        pod = self.pods.get(effect.pod.name)
        if pod is None:
            return ReadGone(effect.id)
        node = pod["spec"].get("nodeName")
        return ReadPlaced(effect.id, node) if node else ReadPending(effect.id)

    def _patch(self, effect: PatchPodStatus) -> None:
        self.writes.append(("patch", f"{effect.pod.name}/status"))
        pod = self.pods.get(effect.pod.name)
        if pod is None:
            if effect.wants_answer:
                self._facts.append(Refused(effect.id, 404, "not found"))
            return
        body = json.loads(patch_pod_status(effect).body or b"{}")["status"]
        for condition in body.get("conditions", ()):
            self._condition(pod, condition)
        if "nominatedNodeName" in body:
            pod["status"].pop("nominatedNodeName", None)
            if body["nominatedNodeName"]:
                pod["status"]["nominatedNodeName"] = body["nominatedNodeName"]
        self._changed(pod)
        if effect.wants_answer:
            self._facts.append(Done(effect.id))

    def _condition(self, pod: Json, condition: Json) -> None:
        conditions = pod["status"].setdefault("conditions", [])
        for known in conditions:
            if known["type"] == condition["type"]:
                known.update({k: v for k, v in condition.items() if v is not None})
                return
        conditions.append(dict(condition))
