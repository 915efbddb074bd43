"""The decide mode: the engine alone, in process, without an API: bindings are answered at once.

    make objects ──facts──> [ Machine.handle ] ──effects──> perform on the store ──facts──> ...
                              only this is timed

The clock shows the processor time that the machine has taken, plus waits that were skipped: while
all pods wait for a backoff, the clock jumps to its end. The engine is one thread and never waits,
so on an idle computer that equals wall time, and other work on a busy one does not count. Neither
the making of objects nor this file's own work counts. The facts that follow a binding go back to
the machine as from its watch, and that is timed as well.

Bounds  JUMPS_MAX jumps without a pod being scheduled end a wait without progress.
"""

import gc
import resource
import time
from collections.abc import Callable, Iterable, Sequence
from heapq import heappop, heappush
from itertools import count
from pathlib import Path
from typing import Any, Final, Protocol

from asched.core.cluster.facts import Fact
from asched.core.config.v1 import SchedulerConfiguration
from asched.core.cycle.machine import Machine
from asched.core.framework.effects import Bind, Effect, EmitEvent
from asched.core.framework.meter import SAMPLE_EVERY, Meter
from asched.host.assemble import Parts, build_machine, build_runners
from asched.host.memory import Collector
from asched.ops.recording.recorder import Recorder as Recording
from asched.ops.recording.recorder import head_of
from asched_lab.bench.manifests import JsonObject
from asched_lab.bench.metrics import DataItem, latency
from asched_lab.bench.objects import Objects
from asched_lab.bench.recorder import Recorder
from asched_lab.bench.world import Step, WorkloadFailedError, World

#: Jumps of the clock to the next deadline without progress; the queue's sweep of 5 minutes is among
#: them, so more jumps change nothing.
JUMPS_MAX: Final = 60
#: Extension points whose duration is mostly the wait for an answer.
WAITING_POINTS: Final = frozenset({"Bind", "Permit", "PreBind"})
#: Size limit of a recording; ten thousand pods need a megabyte.
RECORD_BYTES_MAX: Final = 1 << 30
#: Turns of a few milliseconds between two progress reports.
SHOW_EVERY_TURNS: Final = 64
#: Start of the machine's clock: zero would mean "never" in some places.
EPOCH_S: Final = 1_000_000.0


class FactHandler(Protocol):
    """The machine, or a recorder in front of it."""

    def handle(self, facts: list[Fact], now_s: float) -> list[Effect]: ...


class DecideWorld(World):
    """The engine with a store around it."""

    mode = "decide"
    has_fine_clock = True

    def __init__(
        self,
        configuration: SchedulerConfiguration,
        *,
        seed: int = 0,
        is_profiled: bool = False,
        record: Path | None = None,
    ) -> None:
        """`is_profiled`: extension points and plugins are timed as well, which costs some
        microseconds.

        `record`: the file for a recording; the time of its thread is added when the world is
        closed.
        """
        super().__init__()
        self.recorder = Recorder()
        # Processor time is exact on a busy computer, but reading it takes up to 2 µs.
        monotonic_s = time.thread_time if is_profiled else time.perf_counter
        parts = Parts.fresh()
        self.runners = build_runners(configuration, parts)
        self.machine: Machine = build_machine(
            configuration,
            parts,
            self.runners,
            monotonic_s=monotonic_s,
            observer=self.recorder,
            seed=seed,
        )
        if is_profiled:
            for name, runner in self.runners.items():
                runner.cache.work.meter = Meter(self.recorder, name, monotonic_s)
        self.recording: Recording | None = None
        if record is not None:
            head = head_of(self.machine, configuration)
            self.recording = Recording(self.machine, head, record, RECORD_BYTES_MAX)
        #: receives the facts
        self.handler: FactHandler = self.recording or self.machine
        self.objects = Objects()
        self.engine_s = 0.0
        self.measured_from_s = 0.0
        self.event_count = 0
        self.effect_count = 0
        self._turns = 0
        self._collector = Collector()
        self._skipped_s = EPOCH_S
        self._facts: list[Fact] = []
        self._background: list[tuple[float, int, float, Step]] = []
        self._order = count()

    @property
    def now_s(self) -> float:
        return self._skipped_s + self.engine_s

    # --- objects ---------------------------------------------------------------------------------

    async def create(
        self, manifests: Sequence[JsonObject], namespace: str = ""
    ) -> list[JsonObject]:
        made = []
        for manifest in manifests:
            obj, facts = self.objects.create(manifest, namespace, self.names)
            self._facts += facts
            made.append(obj)
            if obj.get("kind") == "Pod":
                metadata = obj["metadata"]
                key = f"{metadata['namespace']}/{metadata['name']}"
                self.pods.created(key, metadata.get("labels"), self.now_s)
                if obj["spec"].get("nodeName"):
                    self.pods.scheduled(key, self.now_s)
                elif obj["spec"].get("schedulingGates"):  # a condition that the API server sets
                    self.pods.attempted(key)
        return made

    async def replace(
        self, manifest: JsonObject, namespace: str, subresources: Iterable[str]
    ) -> None:
        del subresources  # an object has one body in this world
        self._facts += self.objects.replace(manifest, namespace)

    async def patch(
        self, plural: str, namespace: str, name: str, body: JsonObject, subresource: str = ""
    ) -> None:
        del subresource  # an object has one body in this world
        facts = self.objects.patch(plural, namespace, name, body)
        if facts is None:
            raise WorkloadFailedError(f"{plural} {name!r} is to be patched, but does not exist")
        self._facts += facts

    async def delete(self, plural: str, namespace: str, name: str) -> None:
        self._facts += self.objects.delete(plural, namespace, name)
        self._notice_gone()

    async def listed(self, plural: str, namespace: str = "") -> list[JsonObject]:
        return self.objects.listed(plural, namespace)

    def add_facts(self, facts: Iterable[Fact]) -> None:
        """Facts of objects that the store does not hold."""
        self._facts += facts

    # --- time ------------------------------------------------------------------------------------

    async def until(self, reached: Callable[[], bool], timeout_s: float, what: str) -> None:
        deadline_s = self.now_s + timeout_s
        jumps, progress = 0, self.pods.progress
        while not reached():
            await self._do_background()
            self._turns += 1
            if self._turns % SHOW_EVERY_TURNS == 0:
                self.on_progress()
            if self._turn():
                continue
            if self.pods.progress != progress:
                jumps, progress = 0, self.pods.progress
                continue
            jumps += 1
            if self.now_s > deadline_s or jumps > JUMPS_MAX or not self._jump(deadline_s):
                raise WorkloadFailedError(
                    f"waited for {what}, and no event is left: {self.pods.scheduled_count}"
                    f" of {len(self.pods.pods)} pods are scheduled"
                )
        self._settle()

    def take_in(self) -> None:
        """Pass the new objects to the machine without trying a pod."""
        was_active, self.machine.is_active = self.machine.is_active, False
        while self._facts:
            self._turn()
        self.machine.is_active = was_active

    def _settle(self) -> None:
        """Finish bindings under way; start nothing new."""
        self.take_in()

    async def sleep(self, seconds: float) -> None:
        end_s = self.now_s + seconds
        while self.now_s < end_s:
            await self._do_background()
            if not self._turn() and not self._jump(end_s):
                self._skipped_s += end_s - self.now_s

    def every(self, interval_s: float, step: Step) -> None:
        heappush(self._background, (self.now_s, next(self._order), interval_s, step))

    async def _do_background(self) -> None:
        while self._background and self._background[0][0] <= self.now_s:
            due_s, _, interval_s, step = heappop(self._background)
            if await step():
                heappush(
                    self._background, (due_s + interval_s, next(self._order), interval_s, step)
                )

    def _jump(self, until_s: float) -> bool:
        """Move the clock to the next event; False if there is none."""
        deadlines = [self._background[0][0]] if self._background else []
        machine_s = self.machine.next_deadline_s()
        if machine_s is not None:
            deadlines.append(machine_s)
        if not deadlines:
            return False
        self._skipped_s += max(0.0, min(*deadlines, until_s) - self.now_s)
        return True

    def _turn(self) -> bool:
        """One turn of the machine; True if there is more to do at once."""
        facts, self._facts = self._facts, []
        now_s = self.now_s
        started_s = time.thread_time()
        effects = self.handler.handle(facts, now_s)
        self._collector.turn_ended()
        self.engine_s += time.thread_time() - started_s
        for effect in effects:
            self._perform(effect)
        deadline_s = self.machine.next_deadline_s()
        return bool(self._facts) or (deadline_s is not None and deadline_s <= self.now_s)

    def _perform(self, effect: Effect) -> None:
        self.effect_count += 1
        if isinstance(effect, EmitEvent):
            self.event_count += 1
            return
        self._facts += self.objects.perform(effect)
        if isinstance(effect, Bind):
            pod = self.objects.get("pods", effect.pod.namespace, effect.pod.name)
            if pod is not None and pod["spec"].get("nodeName"):
                self.pods.scheduled(effect.pod.key, self.now_s)
        for key in self.objects.take_attempted():
            self.pods.attempted(key)
        self._notice_gone()

    def _notice_gone(self) -> None:
        for key in self.objects.take_gone_pods():
            self.pods.deleted(key)

    # --- figures ---------------------------------------------------------------------------------

    def latencies(self, run: str) -> list[DataItem]:
        durations = {
            "scheduler_scheduling_attempt_duration_seconds": self.recorder.attempts,
            "scheduler_scheduling_algorithm_duration_seconds": self.recorder.algorithms,
        }
        found = (latency(metric, run, seconds) for metric, seconds in durations.items())
        return [item for item in found if item is not None]

    def forget_measured(self) -> None:
        """Collect garbage outside of the measurement, as the running scheduler does."""
        self.recorder.clear()
        self.measured_from_s = self.engine_s
        self.event_count = self.effect_count = 0
        gc.collect()
        gc.disable()
        self._collector.settle()

    def facts(self) -> dict[str, Any]:
        work = [runner.cache.work for runner in self.runners.values()]
        return {
            "attempts": sum(self.recorder.results.values()),
            "results": dict(self.recorder.results),
            "unneeded_attempts": self.machine.context.queue.due_filter.not_tried,
            "engine_s": round(self.engine_s - self.measured_from_s, 3),
            "effects": self.effect_count,
            "events": self.event_count,
            "rescued_by_timer": self.recorder.flushed,
            "rows": sum(w.rows for w in work),
            "full_passes": sum(w.full_passes for w in work),
            "row_passes": sum(w.row_passes for w in work),
            "complaints": self.recorder.complaints[:3],
            "peak_rss_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
        }

    def stages(self) -> list[tuple[str, float, int]]:
        """Time of the engine per stage, by its own reports; plugins are extrapolated from the
        attempts in which they were timed.
        """
        recorder = self.recorder
        found = [
            (f"point {name}", seconds, count)
            for name, (seconds, count) in sorted(recorder.points.items())
            if name not in WAITING_POINTS
        ]
        found += [
            (f"plugin {name}", seconds * SAMPLE_EVERY, count * SAMPLE_EVERY)
            for name, (seconds, count) in sorted(recorder.plugins.items())
            if name.partition(" ")[0] not in WAITING_POINTS
        ]
        facts = [(f"fact {name}", s, n) for name, (s, n) in sorted(recorder.facts.items())]
        total_s = self.engine_s - self.measured_from_s
        cycle_s, facts_s = sum(recorder.algorithms), sum(seconds for _, seconds, _ in facts)
        rest_s = max(total_s - cycle_s - facts_s, 0.0)
        return [
            *found,
            *facts,
            ("hints, within facts", *recorder.hints),
            ("cycle: filter, score, choose", cycle_s, len(recorder.algorithms)),
            ("facts taken in", facts_s, sum(count for _, _, count in facts)),
            ("queue, reserve, binding, effects", rest_s, self.effect_count),
            ("engine, all", total_s, self.effect_count),
        ]

    async def close(self) -> None:
        if self.recording is not None:
            self.recording.close()
            self.engine_s += self.recording.thread_s
        gc.unfreeze()
        gc.enable()
