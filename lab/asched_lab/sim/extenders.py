"""HTTP extenders of a simulated cluster, with their rules and failures.

While `SickExtenders` is in force the answers of an `ExtenderRule` are late, missing, an error,
malformed, or false; afterwards they are correct and fast. Whatever it grants is recorded: no pod
may be bound to a node that an extender did not grant.

Source  kube/extenders.py, which uses sockets; replaced here
"""

import asyncio
import random
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from asched.core.cluster.facts import Answer, Refused, Replied, Returned, Unknown
from asched.core.config.construct import in_order_of_use
from asched.core.config.v1 import Extender, SchedulerConfiguration
from asched.core.framework.effects import (
    AskExtender,
    Bind,
    Effect,
    PodRef,
    Together,
    Whole,
    Wholes,
)
from asched.kube.writes import bind as bind_request
from asched_lab.sim.faults import SickExtenders
from asched_lab.sim.wire import WAY_S_MAX, send

if TYPE_CHECKING:
    from asched_lab.sim.world import World

Json = dict[str, Any]

#: Replies of sick extenders with status 200, to any request.
NONSENSE: Final[tuple[Any, ...]] = (
    None,
    [],
    "nonsense",
    42,
    {"NodeNames": "all"},
    {"NodeNames": [1]},
    {"FailedNodes": ["n"]},
    [{"Host": 1, "Score": "ten"}],
    {"NodeNameToMetaVictims": []},
    {"Error": {"code": 500}},
)


class ExtenderRule:
    """One extender's rule, on Kubernetes objects."""

    def passes(self, pod: Json, node: Json) -> bool:  # noqa: ARG002
        """Whether the pod may go to the node."""
        return True

    def score(self, pod: Json, node: Json) -> int:  # noqa: ARG002
        """0 to 10."""
        return 0

    def protects(self, victim: Json) -> bool:  # noqa: ARG002
        """Whether this pod may not be evicted from a node."""
        return False


class Extenders:
    """The extenders of a world, in the order of use. `rules` in the order of the document."""

    def __init__(
        self, world: "World", configuration: SchedulerConfiguration, rules: Sequence[ExtenderRule]
    ) -> None:
        self._world = world
        self._rng = random.Random(world.rng.random())
        of = {id(config): rule for config, rule in zip(configuration.extenders, rules, strict=True)}
        self._configs: tuple[Extender, ...] = tuple(in_order_of_use(configuration.extenders))
        self._rules = [of[id(config)] for config in self._configs]
        #: (extender, pod's uid) -> the nodes of its last answer; None: it failed
        self.granted: dict[tuple[int, str], frozenset[str] | None] = {}
        #: Uids of pods that an extender was asked to bind: its answer may be false.
        self.asked_to_bind: set[str] = set()
        #: Uids of pods that an extender released to a preemptor.
        self.given_up: set[str] = set()

    async def ask(self, effect: AskExtender) -> Answer:
        """Send one request; return its answer or failure. The sender may be killed meanwhile."""
        heard: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()

        def hear(found: Answer) -> None:
            if not heard.done():
                heard.set_result(found)

        self._ask(effect, hear)
        return await heard

    def _ask(self, effect: AskExtender, hear: Callable[[Answer], None]) -> None:
        world, config = self._world, effect.extender
        clock, is_over = world.clock, False

        def answer(found: Answer) -> None:
            nonlocal is_over
            if not is_over:
                is_over = True
                self._note(effect, found)
                hear(found)

        if self._is_bind(effect):
            world.asks_extender_to_bind(bind_of(effect))
            self.asked_to_bind.add(bind_of(effect).pod.uid)
        url = f"{config.url_prefix}/{effect.verb}"
        late = Unknown(effect.id, f'Post "{url}": context deadline exceeded')
        clock.after(config.http_timeout_s, lambda: answer(late))
        way_s = self._rng.uniform(0.0, WAY_S_MAX)
        sickness = world.active_faults.strikes(SickExtenders)
        kind = self._rng.choice(sickness.kinds) if sickness is not None else ""
        if kind == "down":
            down = Refused(effect.id, 0, f'Post "{url}": connection refused')
            clock.after(way_s, lambda: answer(down))
        elif kind == "error":
            error = Refused(effect.id, 500, f"failed {effect.verb} with extender, code 500")
            clock.after(way_s, lambda: answer(error))
        elif kind == "nonsense":
            odd = Replied(effect.id, self._rng.choice(NONSENSE))
            clock.after(way_s, lambda: answer(odd))
        else:
            if kind == "slow":
                way_s = self._rng.uniform(0.0, 2 * config.http_timeout_s)
            is_lie = kind == "lie"
            clock.after(way_s, lambda: answer(Replied(effect.id, self._said(effect, is_lie))))

    def answered(self, effect: Effect) -> Answer:
        """The correct answer to a cycle's request at once, without consequences."""
        if isinstance(effect, Together):
            return Returned(0, [self._world.judged(part) for part in effect.parts])
        assert isinstance(effect, AskExtender)
        assert not self._is_bind(effect)
        return Replied(effect.id, self._said(effect, is_lie=False))

    def objects_to(self, bind: Bind) -> str:
        """Why the extenders' answers do not allow the binding; empty if they do."""
        pod = self._world.server.get("pods", bind.pod.namespace, bind.pod.name)
        for index, config in enumerate(self._configs):
            if not config.filter_verb or not is_interested(config, pod or {"spec": {}}):
                continue
            granted = self.granted.get((index, bind.pod.uid), frozenset())
            if granted is None and config.ignorable:
                continue
            if granted is None or bind.node not in granted:
                return f"{config.url_prefix} did not grant {bind.node}"
        return ""

    # --- answers ---------------------------------------------------------------------------------

    def _place(self, effect: AskExtender) -> int:
        """The position in the order of use, by the URL prefix."""
        return self._configs.index(effect.extender)

    def _is_bind(self, effect: AskExtender) -> bool:
        return effect.verb == effect.extender.bind_verb

    def _said(self, effect: AskExtender, is_lie: bool) -> Any:
        config = effect.extender
        if effect.verb == config.bind_verb:
            return self._bind(effect, is_lie)
        if effect.verb == config.preempt_verb:
            return self._preempt(effect, is_lie)
        pod = self._whole(effect.body["Pod"])
        names = self._node_names(effect)
        nodes = {name: self._world.server.get("nodes", "", name) for name in names}
        rule = self._rules[self._place(effect)]
        if effect.verb == config.prioritize_verb:
            scores = {n: rule.score(pod, node) for n, node in nodes.items() if node and pod}
            if is_lie:
                scores = {"no-such-node": 10, **dict.fromkeys(scores, 2**62)}
            return [{"Host": host, "Score": score} for host, score in scores.items()]
        passed = [n for n, node in nodes.items() if node and pod and rule.passes(pod, node)]
        if is_lie:
            passed = self._rng.choice(
                ([], ["no-such-node"], [*passed, "no-such-node"], list(nodes))
            )
        refused = {name: "the extender says no" for name in names if name not in passed}
        answer: Json = {"FailedNodes": refused, "FailedAndUnresolvableNodes": None, "Error": ""}
        if config.node_cache_capable:
            return {**answer, "Nodes": None, "NodeNames": passed}
        items = [nodes.get(name) or {"metadata": {"name": name}} for name in passed]
        return {**answer, "Nodes": {"metadata": {}, "items": items}, "NodeNames": None}

    def _preempt(self, effect: AskExtender, is_lie: bool) -> Any:
        rule = self._rules[self._place(effect)]
        body = effect.body
        victims_by_node = body["NodeNameToVictims"] or body["NodeNameToMetaVictims"] or {}
        released: dict[str, Json] = {}
        for node, victims in victims_by_node.items():
            uids = [v.uid if isinstance(v, Whole) else v["UID"] for v in victims["Pods"]]
            pods = [p for p in self._world.pods() if p["metadata"]["uid"] in uids]
            if not any(rule.protects(pod) for pod in pods):
                released[node] = {
                    "Pods": [{"UID": uid} for uid in uids],
                    "NumPDBViolations": victims["NumPDBViolations"],
                }
        if is_lie:
            released = self._rng.choice((self._false_victims(), {"no-such-node": {"Pods": []}}, {}))
        return {"NodeNameToMetaVictims": released}

    def _false_victims(self) -> dict[str, Json]:
        """All pods, with their nodes."""
        found: dict[str, Json] = {}
        for pod in self._world.placed():
            entry = found.setdefault(pod["spec"]["nodeName"], {"Pods": [], "NumPDBViolations": 0})
            entry["Pods"].append({"UID": pod["metadata"]["uid"]})
        return found

    def _bind(self, effect: AskExtender, is_lie: bool) -> Any:
        bind = bind_of(effect)
        if is_lie:
            trick = self._rng.choice(("nothing was done", "done, and denied", "done elsewhere"))
            if trick == "nothing was done":
                return {"Error": ""}
            if trick == "done, and denied":
                self._send(bind, is_lie=True)
                return {"Error": "it did not work"}
            elsewhere = self._rng.choice(self._world.node_names())
            self._send(Bind(pod=bind.pod, node=elsewhere), is_lie=elsewhere != bind.node)
            return {"Error": ""}
        return {"Error": self._send(bind)}

    def _send(self, bind: Bind, *, is_lie: bool = False) -> str:
        reply = send(self._world.server.ctx, bind_request(bind))
        if reply.status >= 300:
            return f"the API server answered {reply.status}"
        self._world.bound(bind, late=False, is_lie=is_lie)
        return ""

    # --- requests --------------------------------------------------------------------------------

    def _node_names(self, effect: AskExtender) -> Sequence[str]:
        """The names of the nodes in the request."""
        body = effect.body
        if body["NodeNames"] is not None:
            return tuple(body["NodeNames"])
        items: Wholes = body["Nodes"]["items"]
        return items.keys

    def _whole(self, whole: Whole) -> Json | None:
        namespace, _, name = whole.key.partition("/")
        pod = self._world.server.get("pods", namespace, name)
        return pod if pod is not None and pod["metadata"]["uid"] == whole.uid else None

    def _note(self, effect: AskExtender, answer: Answer) -> None:
        """Record the nodes that an answer grants, as far as it is well-formed."""
        config = effect.extender
        if effect.verb == config.preempt_verb and isinstance(answer, Replied):
            self.given_up |= _uids_in(answer.value)
        if effect.verb != config.filter_verb:
            return
        passed: frozenset[str] | None = None
        value = answer.value if isinstance(answer, Replied) else None
        if isinstance(value, Mapping) and "FailedAndUnresolvableNodes" in value:  # else malformed
            named = value.get("NodeNames")
            if not config.node_cache_capable:
                items = (value.get("Nodes") or {}).get("items") or ()
                named = [node["metadata"]["name"] for node in items]
            if named is None or (
                isinstance(named, list) and set(named) <= set(self._node_names(effect))
            ):
                passed = frozenset(named or ())
        self.granted[self._place(effect), effect.body["Pod"].uid] = passed


def bind_of(effect: AskExtender) -> Bind:
    """The binding that a binding extender is asked for."""
    body = effect.body
    pod = PodRef(namespace=body["PodNamespace"], name=body["PodName"], uid=body["PodUID"])
    return Bind(id=effect.id, pod=pod, node=body["Node"])


def _uids_in(value: Any) -> set[str]:
    """Uids in a preemption answer."""
    named = value.get("NodeNameToMetaVictims") if isinstance(value, dict) else None
    if not isinstance(named, dict):
        return set()
    return {pod["UID"] for victims in named.values() for pod in victims["Pods"]}


def is_interested(config: Extender, pod: Json) -> bool:
    """Whether the extender manages a resource the pod requests, or all pods."""
    managed = {resource.name for resource in config.managed_resources}
    requested = {
        name
        for container in pod["spec"].get("containers") or ()
        for name in container.get("resources", {}).get("requests", {})
    }
    return not managed or bool(managed & requested)
