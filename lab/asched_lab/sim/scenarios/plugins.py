"""User plugins that let pods wait, reject them, raise and hold reservations; HTTP extenders."""

from asyncio import sleep
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

from asched import names
from asched.core.framework.effects import Bind, DeletePod, Effect
from asched.core.framework.waiting import Stage
from asched_lab.apiserver import crud
from asched_lab.apiserver.resources import PODS
from asched_lab.sim.extenders import ExtenderRule
from asched_lab.sim.faults import LostAnswers, ServerErrors, SickExtenders, SlowAnswers, StaleWatch
from asched_lab.sim.process import Process
from asched_lab.sim.scenario import Scenario, profile
from asched_lab.sim.steps import AddNodes, AddPods, Amend, Cordon, DeletePods, Json, OpenGates, Step
from asched_lab.sim.world import World

#: Values of the label `permit` of a pod: its outcome at Permit.
OUTCOMES = ("open", "open", "slow", "slow", "late", "shut", "raises", "odd", "refuses")
#: Values of the label `hands`: its outcome at PreBind.
HANDS = ("quick", "quick", "quick", "slow", "drop", "raise")


class Doorman:
    """Permit: lets pods wait, and decides by their label."""

    permit_timeout_s = 8.0

    def __init__(self) -> None:
        self.allowed: dict[str, str] = {}  # pod's uid -> the node it may go to

    async def permit(self, pod: Any, node: Any) -> Any:
        self.allowed.pop(pod.uid, None)
        outcome = pod.labels.get("permit", "open")
        if outcome == "slow":
            await sleep(len(pod.name) % 7 + 0.5)
        elif outcome == "late":
            await sleep(30.0)
        elif outcome == "shut":
            await sleep(0.3)
            return "closed"
        elif outcome == "raises":
            raise RuntimeError("planted failure at Permit")
        elif outcome == "odd":
            return 42
        elif outcome == "refuses":
            return "not today"
        self.allowed[pod.uid] = node.name
        return None


class Porter:
    """Reserve, PreBind and PostBind: holds a reservation for each pod on its way."""

    def __init__(self) -> None:
        self.held: dict[str, str] = {}  # pod's uid -> the node it is held on
        self.faults: list[str] = []

    def reserve(self, pod: Any, node: Any) -> None:
        if pod.uid in self.held:
            self.faults.append(f"{pod.key} is reserved twice")
        self.held[pod.uid] = node.name

    def unreserve(self, pod: Any, node: Any) -> None:
        if self.held.pop(pod.uid, node.name) != node.name:
            self.faults.append(f"{pod.key} is given back on the wrong node")

    async def pre_bind(self, pod: Any, node: Any) -> Any:
        if self.held.get(pod.uid) != node.name:
            self.faults.append(f"{pod.key} comes to PreBind without a reservation")
        hands = pod.labels.get("hands", "quick")
        if hands == "slow":
            await sleep(2.0)
        elif hands == "drop":
            await sleep(0.5)
            return "it fell down"
        elif hands == "raise":
            raise RuntimeError("the porter fell down")
        return None

    def post_bind(self, pod: Any, node: Any) -> None:
        if self.held.pop(pod.uid, "") != node.name:
            self.faults.append(f"{pod.key} was bound without a reservation")


class PermitWaits(Scenario):
    """No pod passes Permit that the plugin did not allow, and every reservation is given back.

    In the end all pods are allowed, and every pod that fits is placed.
    """

    rounds = 30
    faults = (StaleWatch(lag_s_max=3), SlowAnswers(seconds_max=0.5), LostAnswers(rate=0.1))
    plugins = (Doorman, Porter)
    config: ClassVar[Json] = profile("Doorman", "Porter")

    def setup(self, world: World) -> None:
        world.on_sent.append(_must_be_allowed)
        AddNodes(count=world.rng.randint(1, 4)).do(world)

    def start(self, world: World) -> Iterator[Step]:
        for _ in range(self.rounds):
            number = world.rng.randint(1, 3)
            yield AddPods(
                count=number, priority=world.rng.choice((0, 0, 10)), make=_permit_waits_labelled
            )
            roll = world.rng.random()
            if roll < 0.25:
                yield DeletePods(count=2)
            elif roll < 0.35:
                yield AddNodes()
            elif roll < 0.45:
                node = world.rng.choice(world.node_names())
                yield Cordon(node=node, unschedulable=roll < 0.4)
        yield AllowAll()

    def check(self, world: World) -> None:
        porter = user_plugin(world.acting, "Porter")
        assert not porter.faults, porter.faults[0]
        assert not porter.held, f"still held for {sorted(porter.held)}"


class AllowAll(Step):
    """Allow every pod from now on."""

    def do(self, world: World) -> None:
        for pod in world.waiting():
            labels = {**pod["metadata"]["labels"], "permit": "open", "hands": "quick"}
            world.server.ctx.put(PODS, {**pod, "metadata": {**pod["metadata"], "labels": labels}})


def user_plugin(process: Process, name: str) -> Any:
    """The user's instance of a plugin of the first profile."""
    runner = next(iter(process.machine.context.runners.values()))
    adapted: Any = runner.profile.plugins[name]
    return adapted.user


def _permit_waits_labelled(world: World, pod: Json) -> None:
    labels = {"permit": world.rng.choice(OUTCOMES), "hands": world.rng.choice(HANDS)}
    pod["metadata"]["labels"].update(labels)


def _must_be_allowed(process: Process, bind: Bind) -> None:
    if user_plugin(process, "Doorman").allowed.get(bind.pod.uid) != bind.node:
        process.world.ledger.complain(f"pod {bind.pod.key} is bound and was not let through")


NAMES = 12
PHASES = (
    "active",
    "backoff",
    "error_backoff",
    "unschedulable",
    "gated",
    "permit",
    "preBind",
    "binding",
    "placed",
)


@dataclass(frozen=True, slots=True)
class DeleteIn(Step):
    """Delete a pod in this phase, at once or with grace; sometimes another pod is created under its
    name.
    """

    phase: str
    hits: Counter[str]

    def do(self, world: World) -> None:
        keys = keys_in(world, self.phase)
        if not keys:
            return
        namespace, _, name = world.rng.choice(keys).partition("/")
        record = world.server.ctx.get(PODS, namespace, name)
        if record is None:
            return
        self.hits[self.phase] += 1
        world.note(f"delete {name} in phase {self.phase}")
        grace_s = world.rng.choice((0, 30))
        crud.delete(world.server.ctx, PODS, record, {"gracePeriodSeconds": grace_s})
        if world.rng.random() < 0.4:
            AddPods(name=name, make=_any_outcome).do(world)


def keys_in(world: World, phase: str) -> list[str]:
    """Keys of pods in a phase, as the scheduler knows it."""
    context = world.machine.context
    if phase == "placed":
        return [f"{p['metadata']['namespace']}/{p['metadata']['name']}" for p in world.placed()]
    stages = {"permit": Stage.PERMIT, "preBind": Stage.PRE_BIND, "binding": Stage.BINDING}
    if phase in stages:
        stage = stages[phase]
        return [waiting.info.pod.key for waiting in context.waiting if waiting.stage is stage]
    return [queued.key for queued in getattr(context.queue.places.listing(), phase)]


class EveryPhase(Scenario):
    """Everything that a deleted pod held is given back, and its successor under the same name is
    not confused with it.
    """

    rounds = 80
    faults = (
        SlowAnswers(seconds_max=2.0),
        StaleWatch(lag_s_max=3),
        LostAnswers(rate=0.1),
        ServerErrors(rate=0.05),
    )
    plugins = (Doorman, Porter)
    config: ClassVar[Json] = profile("Doorman", "Porter")

    def setup(self, world: World) -> None:
        self.hits: Counter[str] = Counter()
        AddNodes(count=world.rng.randint(1, 3), cpu=(1, 2), pods=(10,)).do(world)

    def start(self, world: World) -> Iterator[Step]:
        for _ in range(self.rounds):
            roll = world.rng.random()
            if roll < 0.5:
                name = f"db-{world.rng.randrange(NAMES)}"
                yield AddPods(name=name, priority=world.rng.choice((0, 0, 10)), make=_any_outcome)
            elif roll < 0.95:
                yield DeleteIn(phase=world.rng.choice(PHASES), hits=self.hits)
            else:
                yield OpenGates()
        yield OpenGates()
        yield AllowAll()

    def check(self, world: World) -> None:
        assert len(self.hits) > 1, f"only {dict(self.hits)} were hit"
        porter = user_plugin(world.acting, "Porter")
        assert not porter.faults, porter.faults[0]
        assert not porter.held, f"still held for {sorted(porter.held)}"


def _any_outcome(world: World, pod: Json) -> None:
    outcomes, hands = ("open", "slow", "slow", "shut", "late"), ("quick", "slow", "slow", "drop")
    pod["metadata"]["labels"] |= {
        "permit": world.rng.choice(outcomes),
        "hands": world.rng.choice(hands),
    }
    if world.rng.random() < 0.2:
        pod["metadata"]["finalizers"] = ["example.com/hold"]
    if world.rng.random() < 0.15:
        pod["spec"]["schedulingGates"] = [{"name": "example.com/later"}]


PRIORITIES = (0, 0, 0, 10)
TIMEOUT_NS = 2 * 10**9
PICKY = "picky"
PRECIOUS = "precious"


class Firm(ExtenderRule):
    """Manages all pods: picky pods need an ssd; precious pods are not evicted."""

    def passes(self, pod: Json, node: Json) -> bool:
        labels = pod["metadata"]["labels"]
        return PICKY not in labels or bool(node["metadata"]["labels"].get("disk") == "ssd")

    def score(self, pod: Json, node: Json) -> int:  # noqa: ARG002 - the same for all nodes
        return len(node["metadata"]["name"]) % 11

    def protects(self, victim: Json) -> bool:
        return PRECIOUS in victim["metadata"]["labels"]


class Soft(ExtenderRule):
    """Excludes zone c; it is ignorable."""

    def passes(self, pod: Json, node: Json) -> bool:  # noqa: ARG002 - the same for all pods
        labels = node["metadata"]["labels"]
        return bool(labels.get("topology.kubernetes.io/zone") != "c")


def _extender(prefix: str, **more: object) -> Json:
    verbs = {"filterVerb": "filter", "prioritizeVerb": "prioritize", "weight": 2}
    return {"urlPrefix": f"http://{prefix}", "httpTimeout": TIMEOUT_NS, **verbs, **more}


class Advisers(Scenario):
    """No pod is bound where an extender did not agree, and no pod is lost while extenders fail.

    One extender is required and takes part in preemption, one is ignorable, one binds the pods that
    request a licence.
    """

    faults = (
        SickExtenders(rate=0.25),
        StaleWatch(lag_s_max=3),
        SlowAnswers(seconds_max=0.5),
        LostAnswers(rate=0.05),
    )
    extender_rules = (Soft(), Firm(), ExtenderRule())
    moody = frozenset({names.EXTENDER})
    config: ClassVar[Json] = {
        "extenders": [
            _extender("soft", ignorable=True),
            _extender("firm", preemptVerb="preempt", nodeCacheCapable=True),
            {
                "urlPrefix": "http://binder",
                "bindVerb": "bind",
                "httpTimeout": TIMEOUT_NS,
                "managedResources": [{"name": "example.com/licence"}],
            },
        ]
    }

    def setup(self, world: World) -> None:
        world.on_effect.append(_must_be_named)
        AddNodes(count=world.rng.randint(3, 6), offers={"example.com/licence": "2"}).do(world)

    def start(self, world: World) -> Iterator[Step]:
        for _ in range(self.rounds):
            priority = world.rng.choice(PRIORITIES)
            yield AddPods(count=world.rng.randint(1, 3), priority=priority, make=_advisers_labelled)
            yield Amend(count=world.rng.randint(1, 3))
            roll = world.rng.random()
            if roll < 0.3:
                yield DeletePods(count=2)
            elif roll < 0.4:
                yield AddNodes(offers={"example.com/licence": "2"})
            elif roll < 0.5:
                node = world.rng.choice(world.node_names())
                yield Cordon(node=node, unschedulable=roll < 0.45)

    def is_plain(self, pod: Json) -> bool:  # noqa: ARG002 - extenders filter all of them
        return False


def _advisers_labelled(world: World, pod: Json) -> None:
    labels = pod["metadata"]["labels"]
    if world.rng.random() < 0.3:
        labels[PICKY] = "yes"
    if world.rng.random() < 0.2:
        labels[PRECIOUS] = "yes"
    if world.rng.random() < 0.3:
        resources = pod["spec"]["containers"][0]["resources"]
        resources["requests"] = {**resources["requests"], "example.com/licence": "1"}
        resources["limits"] = {"example.com/licence": "1"}


def _must_be_named(process: Process, effect: Effect) -> None:
    """Only pods that the required extender named are evicted, and none of the highest priority."""
    if not isinstance(effect, DeletePod):
        return
    world = process.world
    victim = world.server.get("pods", effect.pod.namespace, effect.pod.name)
    if victim is None or victim["metadata"]["uid"] != effect.pod.uid:
        return
    assert world.extenders is not None
    if effect.pod.uid not in world.extenders.given_up:
        world.ledger.complain(f"{effect.pod.key} is evicted, and the extender did not name it")
    if victim["spec"].get("priority", 0) >= max(PRIORITIES):
        world.ledger.complain(f"{effect.pod.key} is evicted, and no pod outranks it")
