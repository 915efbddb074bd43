"""The production machine in a supposed cluster: it decides, the store answers, time is jumped over.

    snapshot ─> store ─changes─> [ Machine ] ──effects──> store, stand-ins ─facts──> [ Machine ] ...

One pass: all objects exist before the machine starts, as if a scheduler had been started on the
cluster a moment later. So pods that wait already are tried too, in the order in which a scheduler
would try them. It ends when no pod is left to be tried and no request is open; changes that only
time could bring (a pod is tried again every five minutes) are not simulated.

Bounds  TURNS_MAX turns; JUMPS_MAX jumps of the clock in a row without a write; CALL_S for a
        coroutine of a plugin, which runs in real time.
"""

from collections import Counter
from dataclasses import dataclass, field
from typing import Final

from asched.batch.provisioning.cycle import holding_promised
from asched.core.cluster.facts import Answer, Fact, Refused, WallClock
from asched.core.config.args import HOLD_S_MAX, PERCENT_MAX, CheckAndHoldArgs
from asched.core.config.v1 import SchedulerConfiguration
from asched.core.cycle.machine import Machine
from asched.core.framework.effects import (
    AskExtender,
    Bind,
    CallPlugin,
    CancelCall,
    DeletePod,
    Effect,
    EmitEvent,
)
from asched.core.model.kinds import PROVISIONING_REQUEST
from asched.core.model.provisioning import ProvisioningRequest, RequestStage
from asched.host.assemble import Parts, build_machine, build_runners
from asched.host.plugin_calls import answer_now
from asched.host.user_plugins.catalogue import Catalogue
from asched_lab.whatif.stand_ins import Hands
from asched_lab.whatif.store import Store

TURNS_MAX: Final = 1_000_000
JUMPS_MAX: Final = 100
CALL_S: Final = 10.0
#: The limits for a promise of another process that is only read.
ANY_TERMS: Final = CheckAndHoldArgs(hold_s=HOLD_S_MAX, max_namespace_percentage=PERCENT_MAX)
#: Start of the simulated clock, in seconds.
START_S: Final = 1_000_000.0


@dataclass(frozen=True, slots=True)
class Scheduler:
    """Which scheduler decides. `serves_all`: pods of other schedulers follow the first profile's
    rules too.
    """

    configuration: SchedulerConfiguration
    plugins: Catalogue = field(default_factory=Catalogue)
    seed: int = 0


class World:
    """One simulated cluster with one scheduler. `preempted`: keys of pods that were evicted, with
    what their events say. `bound`: pods to nodes, in the order of the bindings.
    """

    def __init__(self, store: Store, scheduler: Scheduler) -> None:
        self.store = store
        self.hands = Hands(store)
        self.bound: dict[str, str] = {}
        self.preempted: dict[str, str] = {}
        self.attempts: Counter[str] = Counter()
        parts = Parts.fresh()
        plugins = scheduler.plugins
        runners = build_runners(
            scheduler.configuration, parts, factories=plugins.factories, known=plugins.known
        )
        #: Turns end with their facts, not with the clock, so equal clusters give equal places.
        self.machine: Machine = build_machine(
            scheduler.configuration,
            parts,
            runners,
            monotonic_s=lambda: 0.0,
            seed=scheduler.seed,
        )
        self._now_s = START_S
        #: keys of ProvisioningRequests with reserved places; failures become notes
        self.held: list[str] = []
        self.notes: list[str] = []

    def run(self) -> None:
        """Run until no fact is left."""
        self.hands.work()
        machine = self.machine
        machine.is_active = False
        ahead_s = self.store.ctx.clock() - START_S
        facts: list[Fact] = [WallClock(ahead_s), *self.store.watch()]
        while facts or machine.is_taking_in:
            facts = self._turn(facts)
        self._hold()
        machine.is_active = True
        jumps = 0
        for _ in range(TURNS_MAX):
            facts = self._turn(facts)
            if facts:
                jumps = 0
                continue
            due_s = machine.next_deadline_s()
            if due_s is not None and due_s <= self._now_s:
                continue
            jumps += 1
            if due_s is None or jumps > JUMPS_MAX or not self._is_anything_under_way():
                return
            self._now_s = due_s

    def _hold(self) -> None:
        """Reserve places for accepted ProvisioningRequests whichever scheduler decides: another
        scheduler may serve a class that this configuration does not.
        """
        cluster = self.machine.context.cluster
        requests: list[ProvisioningRequest] = list(cluster.all(PROVISIONING_REQUEST).values())
        for request in requests:
            if request.stage is not RequestStage.HELD:
                continue
            steps = holding_promised(cluster, request, ANY_TERMS)
            try:
                while True:
                    next(steps)
            except StopIteration as end:
                over: tuple[str, str] | None = end.value
            if over is None:
                self.held.append(request.metadata.key)
            else:
                key = request.metadata.key
                self.notes.append(f"nothing is held for ProvisioningRequest {key}: {over[1]}")

    def _is_anything_under_way(self) -> bool:
        """Whether time alone may change something, by a backoff or a wait for other pods."""
        places = self.machine.context.queue.places
        return bool(len(places.backoff) or len(places.error_backoff) or not self.machine.is_idle)

    def _turn(self, facts: list[Fact]) -> list[Fact]:
        answers: list[Fact] = []
        for effect in self.machine.handle(facts, self._now_s):
            answer = self._performed(effect)
            if answer is not None:
                answers.append(answer)
            self.hands.work()
            answers += self.store.facts
            self.store.facts.clear()
        return answers

    def _performed(self, effect: Effect) -> Answer | None:
        answer: Answer | None = None
        match effect:
            case EmitEvent():
                if effect.reason == "Preempted":
                    key = f"{effect.regarding.namespace}/{effect.regarding.name}"
                    self.preempted[key] = effect.note
            case CancelCall():
                pass
            case AskExtender():
                answer = Refused(effect.id, 0, "extenders are not called for hypothetical pods")
            case CallPlugin():
                answer = answer_now(effect, min(effect.timeout_s, CALL_S))
            case _:
                answer = self.store.perform(effect)
                if isinstance(effect, Bind):
                    self.bound[effect.pod.key] = effect.node
                if isinstance(effect, DeletePod):
                    self.preempted.setdefault(effect.pod.key, "")
        return answer if effect.answers and effect.wants_answer else None
