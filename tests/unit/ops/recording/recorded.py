"""Machines to be recorded, and recordings of them."""

from collections.abc import Callable, Iterable
from itertools import count
from pathlib import Path
from typing import Any

from asched.core.cluster.facts import Bound, Fact, Seen
from asched.core.config.defaults import configuration
from asched.core.config.v1 import SchedulerConfiguration
from asched.core.cycle.machine import Machine
from asched.core.framework.effects import Bind, Effect
from asched.core.model.kinds import POD
from asched.host.assemble import Parts, build_machine, build_runners
from asched.host.user_plugins.catalogue import Catalogue, of_class
from asched.ops.recording.lines import RecordingHead
from asched.ops.recording.recorder import Recorder, head_of
from tests.builders import PodBuilder

NAME = "default-scheduler"
NOBODY = Catalogue()
BYTES_MAX = 1 << 24


def a_configuration(**fields: Any) -> SchedulerConfiguration:
    return configuration({"profiles": [{"schedulerName": NAME}], **fields})


def a_catalogue(*plugins: type[Any]) -> Catalogue:
    return Catalogue([of_class(cls, "a test") for cls in plugins])


def a_machine(
    config: SchedulerConfiguration | None = None,
    catalogue: Catalogue = NOBODY,
    monotonic_s: Callable[[], float] | None = None,
) -> Machine:
    """With a counter that makes each turn end after some cycles."""
    ticks = count()
    config = config or a_configuration()
    parts = Parts.fresh()
    runners = build_runners(config, parts, factories=catalogue.factories, known=catalogue.known)
    return build_machine(
        config, parts, runners, monotonic_s=monotonic_s or (lambda: next(ticks) * 0.0005)
    )


def a_head(
    machine: Machine,
    config: SchedulerConfiguration | None = None,
    catalogue: Catalogue = NOBODY,
) -> RecordingHead:
    return head_of(machine, config or a_configuration(), catalogue.contents)


def ours(pod: PodBuilder) -> Seen:
    """A pod that the recorded machine is to place."""
    return Seen(POD, pod.spec(schedulerName=NAME).build())


Answering = Callable[[Effect], Iterable[Fact]]


def bound(effect: Effect) -> Iterable[Fact]:
    """Every binding is accepted, and nothing else is answered."""
    if isinstance(effect, Bind):
        yield Bound(effect.id)


def record(
    path: Path,
    turns: Iterable[Iterable[Fact]],
    *,
    config: SchedulerConfiguration | None = None,
    catalogue: Catalogue = NOBODY,
    answering: Answering = bound,
    machine: Machine | None = None,
) -> Path:
    """A recording of a machine that is told these facts, a turn each 100 ms, and then is left to
    itself until it has no more to do; answers come with the next turn.
    """
    config = config or a_configuration()
    machine = machine or a_machine(config, catalogue)
    recorder = Recorder(machine, a_head(machine, config, catalogue), path, BYTES_MAX)
    now_s, answers = 1000.0, list[Fact]()
    for facts in turns:
        now_s += 0.1
        effects = recorder.handle([*answers, *facts], now_s)
        answers = [answer for effect in effects for answer in answering(effect)]
    for _ in range(200):
        deadline_s = machine.next_deadline_s()
        if not answers and (deadline_s is None or deadline_s > now_s + 15.0):
            break
        now_s = max(now_s + 0.1, deadline_s or 0.0)
        effects = recorder.handle(answers, now_s)
        answers = [answer for effect in effects for answer in answering(effect)]
    recorder.close()
    return path
