"""GroupScaleUp: requests and templates as an API server stores them, and the gangs that wait."""

from typing import Any

from msgspec.structs import replace

from asched.core.cluster.audit import recount
from asched.core.cluster.facts import Answer, Bound, Done, Fact, Gone, Refused, Seen, Unknown
from asched.core.framework.effects import Bind, Create, Delete, Effect, PatchPodStatus
from asched.core.model.decode import decode
from asched.core.model.kinds import COSCHEDULING_GROUP, POD, PROVISIONING_REQUEST
from asched.core.model.pod import PodCondition
from asched.core.model.provisioning import ProvisioningRequest
from asched.core.model.timestamp import rfc3339
from tests.builders import NodeBuilder, PodBuilder
from tests.plays.label_gangs import a_group, a_member
from tests.plays.playbook import Play

CLASS = "best-effort-atomic-scale-up.autoscaling.x-k8s.io"
REQUESTED, HELPS = "NewNodesDoNotHelp", "Unschedulable"
USUAL = {"name": "usual", "labels": {"pool": "usual"}, "allocatable": {"cpu": "4"}}
LIMIT_S, BACKOFF_S = 100, 1000


def profile(shapes: tuple[dict[str, Any], ...] = (USUAL,), **args: Any) -> dict[str, Any]:
    enabled = [{"name": "Coscheduling"}, {"name": "GroupScaleUp"}]
    times = {"timeLimitSeconds": LIMIT_S, "backoffSeconds": BACKOFF_S}
    own = {"nodeShapes": list(shapes), **times, **args}
    disabled = [{"name": "PrioritySort"}]
    return {
        "schedulerName": "default-scheduler",
        "plugins": {"multiPoint": {"enabled": enabled, "disabled": disabled}},
        "pluginConfig": [{"name": "GroupScaleUp", "args": own}],
    }


class ScaleUpPlay(Play):
    """Stores requests and templates as an API server would; conditions by pod, as last written."""

    def __init__(self, *nodes: NodeBuilder, **args: Any) -> None:
        self.requests: dict[str, ProvisioningRequest] = {}
        self.templates: dict[str, dict[str, Any]] = {}
        self.made: list[str] = []
        self.open: dict[int, Effect] = {}
        self.conditions: dict[str, dict[str, Any]] = {}
        #: what the server says to the next writes; None: it carries them out
        self.answers: list[tuple[type[Answer], int] | None] = []
        super().__init__(*nodes, profiles=[profile(**args)])

    def turn(self, *facts: Fact, after_s: float = 0.0) -> list[Effect]:
        for effect in super().turn(*facts, after_s=after_s):
            if isinstance(effect, Create | Delete | Bind):
                self.open[effect.id] = effect
            if isinstance(effect, PatchPodStatus) and effect.condition:
                known = self.conditions.setdefault(effect.pod.name, {})
                known |= effect.condition
        return self.effects

    def settle(self, seconds: float = 2.0) -> "ScaleUpPlay":
        """Let time pass; writes are answered at once."""
        for _ in range(round(seconds)):
            for _ in range(30):
                self.turn(after_s=0.01)
            while self.open:
                self._answer(self.open.pop(next(iter(self.open))))
            self.turn(after_s=0.7)
        return self

    def _answer(self, effect: Effect) -> None:
        if isinstance(effect, Bind):
            pod = self.parts.cluster.pods_seen[effect.pod.key].on(effect.node)
            at = rfc3339(self.parts.cluster.wall_clock_s)
            placed = PodCondition("PodScheduled", "True", last_transition_time=at)
            status = replace(pod.status, conditions=(placed,))
            self.turn(Bound(effect.id), Seen(POD, replace(pod, status=status)))
            return
        answer = self.answers.pop(0) if self.answers else None
        if answer is not None:
            kind, code = answer
            made = Refused(effect.id, code, "no") if kind is Refused else Unknown(effect.id, "lost")
            self.turn(made)
        elif isinstance(effect, Create):
            self._create(effect)
        elif isinstance(effect, Delete):
            self._delete(effect)

    def _create(self, effect: Create) -> None:
        body, name = effect.body, effect.body["metadata"]["name"]
        if name in self.requests or name in self.templates:
            self.turn(Refused(effect.id, 409, "already exists", "AlreadyExists"))
            return
        self.turn(Done(effect.id))
        if body["kind"] == "PodTemplate":
            self.templates[name] = dict(body)
            return
        made = {"uid": f"uid-{name}", "creationTimestamp": rfc3339(self.now_s)}
        record = decode(ProvisioningRequest, {**body, "metadata": {**body["metadata"], **made}})
        self.made.append(name)
        self.show(record)

    def show(self, request: ProvisioningRequest) -> None:
        self.requests[request.metadata.name] = request
        self.turn(Seen(PROVISIONING_REQUEST, request))

    def _delete(self, effect: Delete) -> None:
        known = self.templates.pop(effect.name, None) or self.requests.pop(effect.name, None)
        self.turn(Done(effect.id) if known else Refused(effect.id, 404, "not found"))
        if isinstance(known, ProvisioningRequest):
            self.turn(Gone(PROVISIONING_REQUEST, known))

    def gang(self, *members: PodBuilder, name: str = "crew", namespace: str = "default") -> None:
        group = a_group(name, len(members))
        metadata = replace(group.metadata, namespace=namespace)
        self.turn(Seen(COSCHEDULING_GROUP, replace(group, metadata=metadata)))
        self.turn(*(Seen(POD, member.build()) for member in members))
        self.settle()

    def crew(self, count: int = 8, cpu: str = "1", name: str = "crew") -> None:
        self.gang(*(a_member(f"{name}-{n}", name, cpu) for n in range(count)), name=name)

    @property
    def request(self) -> ProvisioningRequest:
        (found,) = self.requests.values()
        return found

    @property
    def counts(self) -> list[int]:
        return [pod_set.count for pod_set in self.request.spec.pod_sets]

    @property
    def new_nodes(self) -> str:
        return (self.request.metadata.annotations or {})["asched.dev/new-nodes"]

    @property
    def reasons(self) -> set[str]:
        return {condition["reason"] for condition in self.conditions.values()}

    @property
    def is_clean(self) -> bool:
        self.audited()
        return not (self.requests or self.templates)

    def audited(self) -> None:
        assert recount(self.parts.cluster) == []

    def say(self, type_: str, status: str = "True") -> None:
        conditions = [{"type": type_, "status": status}]
        request = self.request
        changed = {"metadata": {"name": "x"}, "status": {"conditions": conditions}}
        self.show(replace(request, status=decode(ProvisioningRequest, changed).status))
