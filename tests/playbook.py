"""Drives a machine by hand: facts in, effects out, time as a number.

`Play` is a machine with any configuration. Below it: gangs of Kubernetes (pods that name a PodGroup
in a field) and of the coscheduling plugin (by a label), and plays for Backfill, for
ProvisioningRequests and for GroupScaleUp.
"""

import asyncio
from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any, TypeVar

import orjson
from msgspec.structs import replace

from asched.batch.backfill.reservations import Reservation, Reservations
from asched.batch.extensions import EXTENSIONS
from asched.cli.explain import printed
from asched.core.cluster.audit import recount
from asched.core.cluster.facts import (
    Answer,
    Bound,
    Done,
    Fact,
    Gone,
    Refused,
    Seen,
    Unknown,
    WallClock,
)
from asched.core.config.defaults import configuration
from asched.core.config.gates import DEFAULT_GATES
from asched.core.cycle.extension import Extension
from asched.core.cycle.machine import Machine
from asched.core.cycle.observer import Observer
from asched.core.cycle.orders import KubeletRefused
from asched.core.framework.effects import (
    Bind,
    Create,
    Delete,
    Effect,
    EmitEvent,
    Patch,
    PatchPodStatus,
)
from asched.core.framework.points import Plugin
from asched.core.framework.profile import points_of
from asched.core.model.decode import decode
from asched.core.model.kinds import (
    COSCHEDULING_GROUP,
    NODE,
    POD,
    POD_GROUP,
    POD_TEMPLATE,
    PROVISIONING_REQUEST,
)
from asched.core.model.meta import ObjectMeta
from asched.core.model.pod import Pod, PodCondition
from asched.core.model.provisioning import PodTemplate, ProvisioningRequest
from asched.core.model.timestamp import rfc3339
from asched.core.model.workload import (
    CoschedulingGroup,
    GangPolicy,
    PodGroup,
    PodGroupPolicy,
    PodGroupSpec,
)
from asched.core.plugins import IN_TREE, IN_TREE_POINTS
from asched.host.assemble import Parts, build_machine, build_runners, reconfigured
from asched.host.user_plugins.catalogue import Catalogue
from asched.serve.inspection import Inspection
from asched.serve.view.gangs import one_gang
from tests.builders import NodeBuilder, PodBuilder, a_node, a_pod, room

E = TypeVar("E", bound=Effect)

GROUP_LABEL = "scheduling.x-k8s.io/pod-group"


def known_points(plugins: Mapping[str, type[Plugin]]) -> dict[str, frozenset[str]]:
    """The extension points of the in-tree plugins and of these, as the configuration needs them."""
    return {**IN_TREE_POINTS, **{name: points_of(cls) for name, cls in plugins.items()}}


class Strict(Observer):
    """Keeps what was contained: no test shall miss an exception of the scheduler's own."""

    def __init__(self) -> None:
        self.raised: list[BaseException] = []
        self.complaints: list[str] = []

    def complaint(self, message: str) -> None:
        self.complaints.append(message)

    def contained(self, part: str, about: str, error: BaseException) -> None:
        self.raised.append(error)


class Play:
    """One scheduler named default-scheduler. `effects` are those of the last turn."""

    def __init__(
        self,
        *nodes: NodeBuilder,
        plugins: Iterable[type[Plugin]] = (),
        gates: Mapping[str, bool] | None = None,
        extensions: Iterable[type[Extension]] = EXTENSIONS,
        contained: int = 0,
        installed: Catalogue | None = None,
        **config: Any,
    ) -> None:
        """`contained`: so many exceptions may be contained before a turn raises one.

        `installed`: plugins that `profiles` may name beside the in-tree ones.
        """
        installed = installed or Catalogue()
        classes = {cls.name: cls for cls in plugins}
        enabled = [{"name": name} for name in classes]
        profile: dict[str, Any] = {"schedulerName": "default-scheduler"}
        if enabled:
            profile["plugins"] = {"multiPoint": {"enabled": enabled}}
        switched = {**DEFAULT_GATES, **(gates or {})}
        effective = configuration({"profiles": [profile], **config}, switched)
        self.parts = Parts.fresh()
        factories = {
            **installed.factories,
            **IN_TREE,
            **{name: (lambda _a, _c, cls=cls: cls()) for name, cls in classes.items()},
        }
        known = {**installed.known, **known_points(classes)}
        self._runners_of = partial(build_runners, factories=factories, known=known)
        runners = self._runners_of(effective, self.parts)
        self._strict, self._contained = Strict(), contained
        self.machine: Machine = build_machine(
            effective,
            self.parts,
            runners,
            monotonic_s=lambda: 0.0,
            observer=self._strict,
            extensions=extensions,
        )
        self.now_s = 1000.0
        self.effects: list[Effect] = []
        self.turn(*(Seen(NODE, node.build()) for node in nodes))

    def turn(self, *facts: Fact, after_s: float = 0.0) -> list[Effect]:
        """Hand in facts; what comes out is kept in `effects`."""
        self.now_s += after_s
        self.effects = self.machine.handle([ours(fact) for fact in facts], self.now_s)
        for error in self._strict.raised[self._contained :]:
            raise error
        return self.effects

    @property
    def complaints(self) -> list[str]:
        """What was reported for an administrator to mend."""
        return self._strict.complaints

    def reload(self, **config: Any) -> list[Effect]:
        """Replace the configuration."""
        effective = configuration(config, DEFAULT_GATES)
        runners = self._runners_of(effective, self.parts)
        return self.turn(reconfigured(effective, runners, (), self._strict))

    def see(self, pod: PodBuilder | Pod) -> list[Effect]:
        built = pod.build() if isinstance(pod, PodBuilder) else pod
        return self.turn(Seen(POD, built))

    def lose(self, pod: PodBuilder | Pod) -> list[Effect]:
        built = pod.build() if isinstance(pod, PodBuilder) else pod
        return self.turn(Gone(POD, built))

    def of(self, kind: type[E]) -> list[E]:
        """The effects of one kind that the last turn gave."""
        return [effect for effect in self.effects if isinstance(effect, kind)]

    def the(self, kind: type[E]) -> E:
        found = self.of(kind)
        assert len(found) == 1, f"expected one {kind.__name__}, got {self.effects}"
        return found[0]

    def answer(self, answer: Answer, after_s: float = 0.0) -> list[Effect]:
        return self.turn(answer, after_s=after_s)

    def bound(self, bind: Bind) -> list[Effect]:
        return self.answer(Bound(bind.id))

    def notes(self) -> list[str]:
        return [f"{e.reason}: {e.note}" for e in self.of(EmitEvent)]

    def condition(self) -> Any:
        return self.the(PatchPodStatus).condition

    def node_of(self, uid: str) -> str:
        info = self.parts.cluster.placed.get(uid)
        return info.node_name if info is not None else ""

    def audited(self) -> None:
        assert recount(self.parts.cluster) == []


def explanation_of(
    play: Play, name: str, namespace: str = "default", **config: Any
) -> dict[str, Any]:
    """The page about a pod, as the port serves it."""
    made = configuration(config)
    nothing: Any = None
    inspection = Inspection(play.machine.context, made, lambda: True, nothing, nothing)
    page = asyncio.run(inspection.explain(namespace, name))
    assert page is not None
    return dict(page)


def explained(play: Play, name: str, namespace: str = "default", **config: Any) -> str:
    """What `asched explain` prints about a pod."""
    return printed(explanation_of(play, name, namespace, **config), "text")


def explained_gang(play: Play, key: str) -> str:
    """What `asched explain podgroup/NAME` prints about a group by "namespace/name"."""
    page = one_gang(play.machine.context, key)
    assert page is not None
    return printed(page, "text")


def ours(fact: Fact) -> Fact:
    """A pod that names no scheduler is meant for ours, as the API server would have it."""
    pod = fact.obj if isinstance(fact, (Seen, Gone)) else None
    if not isinstance(pod, Pod) or pod.spec.scheduler_name:
        return fact
    assert isinstance(fact, (Seen, Gone))
    spec = replace(pod.spec, scheduler_name="default-scheduler")
    return type(fact)(fact.kind, replace(pod, spec=spec))


GANGS: dict[str, Any] = {
    "profiles": [
        {
            "schedulerName": "default-scheduler",
            "plugins": {"multiPoint": {"enabled": [{"name": "GangScheduling"}]}},
        }
    ]
}


def gang_play(*nodes: NodeBuilder, **gates: bool) -> Play:
    return Play(*nodes, gates=gates, **GANGS)


def a_group(name: str = "crew", min_count: int | None = 3) -> PodGroup:
    gang = None if min_count is None else GangPolicy(min_count=min_count)
    return PodGroup(
        metadata=ObjectMeta(namespace="default", name=name, uid=f"uid-{name}"),
        spec=PodGroupSpec(scheduling_policy=PodGroupPolicy(gang=gang)),
    )


def a_member(name: str, group: str = "crew", cpu: str = "1") -> PodBuilder:
    return a_pod(name).requests(cpu=cpu).spec(schedulingGroup={"podGroupName": group})


def uid_of(name: str) -> str:
    return a_member(name).build().uid


def room_for(count: int) -> NodeBuilder:
    return a_node(f"room-for-{count}").allocatable(cpu=str(count), memory="8Gi", pods="100")


def bound(play: Play) -> set[str]:
    return {bind.pod.name for bind in play.of(Bind)}


def seen_group(play: Play, min_count: int | None = 3) -> None:
    play.turn(Seen(POD_GROUP, a_group(min_count=min_count)))


def places(play: Play) -> set[str]:
    return {name for name in ("a", "b", "c") if play.node_of(uid_of(name))}


def refused(play: Play, pod: Pod) -> None:
    """A kubelet refuses a pod that asched has bound."""
    metadata, node = pod.metadata, play.node_of(pod.uid)
    owner = metadata.controller.uid if metadata.controller is not None else ""
    what = metadata.namespace, metadata.name, pod.uid, owner, node, "OutOfcpu", "x"
    play.turn(Gone(POD, pod.on(node)), KubeletRefused(*what))


def placed(play: Play, pod: PodBuilder) -> str:
    """The node of a pod of ours, which is shown to be there; empty if it waits."""
    built = pod.build()
    play.see(built)
    for bind in play.of(Bind):
        play.turn(Bound(bind.id), Seen(POD, play.parts.cluster.pods_seen[built.key].on(bind.node)))
    return play.node_of(built.uid)


def label_gang_play(
    *nodes: NodeBuilder, args: dict[str, Any] | None = None, **profile: Any
) -> Play:
    plugins = {
        "multiPoint": {
            "enabled": [{"name": "Coscheduling"}],
            "disabled": [{"name": "PrioritySort"}],
        }
    }
    config = [{"name": "Coscheduling", "args": args or {}}]
    own = {"schedulerName": "default-scheduler", "plugins": plugins, "pluginConfig": config}
    return Play(*nodes, profiles=[{**own, **profile}])


def a_label_group(name: str = "crew", minimum: int = 3, **spec: Any) -> CoschedulingGroup:
    metadata = {"name": name, "namespace": "default", "uid": f"uid-{name}"}
    return decode(CoschedulingGroup, {"metadata": metadata, "spec": {"minMember": minimum, **spec}})


def a_label_member(name: str, group: str = "crew", cpu: str = "1") -> PodBuilder:
    return a_pod(name).labels({GROUP_LABEL: group}).requests(cpu=cpu)


def label_group_seen(play: Play, *args: Any, **spec: Any) -> None:
    play.turn(Seen(COSCHEDULING_GROUP, a_label_group(*args, **spec)))


def settled(play: Play) -> set[str]:
    """Answer every binding, and show it; who was bound."""
    names = set()
    while binds := play.of(Bind):
        for bind in binds:
            names.add(bind.pod.name)
            play.turn(Bound(bind.id), _placed(play, bind))
    return names


def _placed(play: Play, bind: Bind) -> Seen:
    """The pod on its node, with the condition that the API server writes at the binding."""
    pod = play.parts.cluster.pods_seen[bind.pod.key].on(bind.node)
    at = rfc3339(play.parts.cluster.wall_clock_s)
    placed = PodCondition("PodScheduled", "True", last_transition_time=at)
    return Seen(POD, replace(pod, status=replace(pod.status, conditions=(placed,))))


EPOCH_S = 1_700_000_000.0


class Batch(Play):
    """A play with Backfill and Coscheduling, in which bindings succeed and pods are started. All
    tenants are trusted, unless `args` say otherwise.
    """

    def __init__(self, *nodes: NodeBuilder, args: dict[str, Any] | None = None) -> None:
        plugins = {
            "multiPoint": {
                "enabled": [{"name": "Coscheduling"}, {"name": "Backfill"}],
                "disabled": [{"name": "PrioritySort"}],
            }
        }
        trust = {"maxNamespacePercentage": 100, "softEnds": True}
        config = [{"name": "Backfill", "args": {**trust, **(args or {})}}]
        own = {"schedulerName": "default-scheduler", "plugins": plugins, "pluginConfig": config}
        super().__init__(*nodes, profiles=[own])
        self.places: dict[str, str] = {}
        self.told: dict[str, str] = {}
        self.turn(WallClock(EPOCH_S - self.now_s))

    @property
    def wall_s(self) -> float:
        return self.parts.cluster.wall_clock_s

    def date(self, at_s: float) -> str:
        """A time of the play, as the API writes it."""
        return rfc3339(at_s + self.wall_s - self.now_s)

    def go(self, *facts: Any, after_s: float = 0.0) -> None:
        """A turn, and what follows of bindings."""
        self.turn(*facts, after_s=after_s)
        while True:
            for patch in self.of(PatchPodStatus):
                if "message" in (patch.condition or ()):
                    self.told[patch.pod.name] = patch.condition["message"]
            binds = self.of(Bind)
            if not binds:
                return
            answers: list[Any] = []
            for bind in binds:
                self.places[bind.pod.name] = bind.node
                pod = self.parts.cluster.pods_seen[bind.pod.key].on(bind.node)
                status = replace(pod.status, start_time=rfc3339(self.wall_s))
                answers += [Bound(bind.id), Seen(POD, replace(pod, status=status))]
            self.turn(*answers)

    def show(self, *pods: PodBuilder) -> None:
        self.go(*(Seen(POD, pod.build()) for pod in pods))

    def end(self, name: str, after_s: float = 0.0) -> None:
        self.go(Gone(POD, self.parts.cluster.pods_seen[f"default/{name}"]), after_s=after_s)

    def pass_time(self, seconds: float) -> None:
        """Let time pass as a process does: from deadline to deadline."""
        until_s = self.now_s + seconds
        while (due_s := self.machine.next_deadline_s()) is not None and due_s <= until_s:
            self.go(after_s=max(due_s - self.now_s, 0.01))
        self.go(after_s=until_s - self.now_s)

    def gang(self, name: str, *pods: PodBuilder, minimum: int = 0) -> None:
        group = a_label_group(name, minimum or len(pods))
        self.go(Seen(COSCHEDULING_GROUP, group))
        self.show(*(pod.labels({GROUP_LABEL: name}) for pod in pods))

    def promised(self, owner: str) -> Reservation | None:
        return self.parts.cluster.singleton(Reservations).of(owner)

    def to(self, gang: str) -> Reservation:
        found = self.promised(f"scheduling.x-k8s.io:default/{gang}")
        assert found is not None, self.told
        return found


def lasting(name: str, seconds: int | None, cpu: int = 1) -> PodBuilder:
    pod = a_pod(name).requests(cpu=str(cpu))
    return pod if seconds is None else pod.spec(activeDeadlineSeconds=seconds)


def two_full_nodes() -> Batch:
    """n1 is free after 100 s, n2 after 200 s, grace periods aside."""
    play = Batch(room("n1"), room("n2"))
    play.show(lasting("a", 100, cpu=3), lasting("b", 200, cpu=3))
    return play


HOLD_CLASS = "check-and-hold.asched.dev"
CONSUMES = "autoscaling.x-k8s.io/consume-provisioning-request"
HOLD_S = 600


def request_play(*nodes: NodeBuilder, args: dict[str, Any] | None = None) -> "RequestPlay":
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
        spec = {"provisioningClassName": HOLD_CLASS, "podSets": pod_sets, **more}
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


def consumer(name: str, cpu: str = "1", request: str = "job", key: str = CONSUMES) -> PodBuilder:
    pod = a_pod(name).requests(cpu=cpu)
    return pod.metadata(annotations={key: request})


def restarted(play: RequestPlay, *nodes: Any) -> RequestPlay:
    """A process that begins after the one of `play`."""
    other = request_play(*nodes)
    other.now_s, other.stored, other.version = play.now_s, play.stored, play.version
    return other


def held_play(*nodes: NodeBuilder, count: int = 2) -> RequestPlay:
    play = request_play(*(nodes or (room("n1", 2), room("n2", 1))))
    play.template()
    play.ask(sets={"worker": count})
    said = play.settle()
    assert said["Provisioned"] == ("True", "CapacityIsFound"), said
    return play


SCALE_UP_CLASS = "best-effort-atomic-scale-up.autoscaling.x-k8s.io"
REQUESTED, HELPS = "NewNodesDoNotHelp", "Unschedulable"
USUAL_SHAPE = {"name": "usual", "labels": {"pool": "usual"}, "allocatable": {"cpu": "4"}}
LIMIT_S, BACKOFF_S = 100, 1000


def scale_up_profile(
    shapes: tuple[dict[str, Any], ...] = (USUAL_SHAPE,), **args: Any
) -> dict[str, Any]:
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
        super().__init__(*nodes, profiles=[scale_up_profile(**args)])

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
            self.turn(Bound(effect.id), _placed(self, effect))
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
        made = {"uid": f"uid-{name}", "creationTimestamp": rfc3339(self.now_s)}
        stored = {**body, "metadata": {**body["metadata"], **made}}
        self.turn(Done(effect.id, stored))
        if body["kind"] == "PodTemplate":
            self.templates[name] = stored
            self.turn(Seen(POD_TEMPLATE, self.template(name)))
            return
        record = decode(ProvisioningRequest, stored)
        self.made.append(name)
        self.show(record)

    def template(self, name: str) -> PodTemplate:
        return decode(PodTemplate, orjson.loads(orjson.dumps(self.templates[name])))

    def show(self, request: ProvisioningRequest) -> None:
        self.requests[request.metadata.name] = request
        self.turn(Seen(PROVISIONING_REQUEST, request))

    def _delete(self, effect: Delete) -> None:
        template = self.template(effect.name) if effect.name in self.templates else None
        known = template or self.requests.get(effect.name)
        if known is None or effect.uid not in ("", known.metadata.uid):
            self.turn(Refused(effect.id, 409 if known else 404, "not found"))
            return
        self.turn(Done(effect.id))
        if template is not None:
            del self.templates[effect.name]
            self.turn(Gone(POD_TEMPLATE, template))
        else:
            self.turn(Gone(PROVISIONING_REQUEST, self.requests.pop(effect.name)))

    def gang(self, *members: PodBuilder, name: str = "crew", namespace: str = "default") -> None:
        group = a_label_group(name, len(members))
        metadata = replace(group.metadata, namespace=namespace)
        self.turn(Seen(COSCHEDULING_GROUP, replace(group, metadata=metadata)))
        self.turn(*(Seen(POD, member.build()) for member in members))
        self.settle()

    def crew(self, count: int = 8, cpu: str = "1", name: str = "crew") -> None:
        self.gang(*(a_label_member(f"{name}-{n}", name, cpu) for n in range(count)), name=name)

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

    def say(self, type_: str, status: str = "True") -> None:
        conditions = [{"type": type_, "status": status}]
        request = self.request
        changed = {"metadata": {"name": "x"}, "status": {"conditions": conditions}}
        self.show(replace(request, status=decode(ProvisioningRequest, changed).status))
