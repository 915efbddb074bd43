"""Streams of nodes and pods to record, and a recorder's tape."""

import threading
from pathlib import Path

from asched.core.cluster.facts import Fact, Seen
from asched.core.framework.effects import Bind
from asched.core.model.kinds import NODE
from asched.ops.recording.recorder import Recorder
from tests.builders import a_node, a_pod
from tests.unit.ops.recording.recorded import a_head, a_machine, ours

BYTES_MAX = 1 << 24


def sights(count: int) -> list[Fact]:
    node = a_node("n1").allocatable(cpu="1000", memory="1000Gi", pods="1000").build()
    return [Seen(NODE, node), *(ours(a_pod(f"p{n}")) for n in range(count))]


class Tape:
    """A machine that is recorded to a file of its own."""

    def __init__(self, folder: Path, bytes_max: int = BYTES_MAX) -> None:
        self.path = folder / "recording"
        machine = a_machine(monotonic_s=lambda: 0.0)
        self.ended: list[str] = []
        self.has_ended = threading.Event()
        self.recorder = Recorder(
            machine, a_head(machine), self.path, bytes_max, stopped=self._stopped
        )
        self.now_s = 1000.0

    def _stopped(self, why: str) -> None:
        self.ended.append(why)
        self.has_ended.set()

    def turn(self, *facts: Fact) -> int:
        """How many bindings the machine asks for."""
        self.now_s += 1.0
        effects = self.recorder.handle(list(facts), self.now_s)
        return sum(isinstance(effect, Bind) for effect in effects)


def nodes(count: int = 4, **amounts: str) -> list[Fact]:
    amounts = amounts or {"cpu": "4", "memory": "16Gi", "pods": "20"}
    return [Seen(NODE, a_node(f"n{n}").allocatable(**amounts).build()) for n in range(count)]


def pods(count: int, start: int = 0) -> list[Fact]:
    """Each a little larger than the one before, so that each is a class of its own."""
    return [
        ours(a_pod(f"p{n}").requests(cpu=f"{100 + n}m", memory="64Mi"))
        for n in range(start, start + count)
    ]
