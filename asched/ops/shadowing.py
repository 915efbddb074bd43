"""`asched run --shadow` as a part of the process: looks on, counts, and reports at the end.

    facts ─> machine that is never active ─> Shadow ─> Tally ─> metrics, page, report

Nothing is written anywhere: no lane sends, no lease is asked for, no listener has a status to tell.

Bounds  LOOK_S between two second looks where none is due; half of the time at most for them,
        and END_S at the end.
"""

import asyncio
import json
import logging
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

import msgspec

from asched.core.cycle.machine import Machine
from asched.insight.shadow.following import Shadow
from asched.insight.shadow.tally import FindingTally
from asched.insight.shadow.words import text
from asched.kube.clock import counter_s

log = logging.getLogger("asched.shadow")

LOOK_S: Final = 0.1
#: Whoever asked for the end waits for the report; the overlay lets a kubelet wait longer.
END_S: Final = 60.0


class ShadowPlan(msgspec.Struct, frozen=True):
    """Where the report goes: a file as JSON, or standard output as text."""

    report: Path | None = None
    tally: FindingTally = msgspec.field(default_factory=FindingTally)

    def tell(self) -> None:
        """Write the report."""
        told = self.tally.told()
        if self.report is None:
            sys.stdout.write(text(told))
            return
        try:
            self.report.write_text(json.dumps(told, indent=2) + "\n", encoding="utf-8")
        except OSError as error:
            log.error("the report is not written to %s: %s", self.report, error.strerror)  # noqa: TRY400
            sys.stdout.write(text(told))


class Shadowing:
    """The shadow of one life of a process."""

    def __init__(self, plan: ShadowPlan, machine: Machine) -> None:
        machine.is_active = False
        self._shadow = Shadow(machine.context, plan.tally)
        machine.context.beside = self._shadow
        self._tally = plan.tally

    def show(self, pulled: Callable[..., object]) -> None:
        """Put what is counted on the page of metrics; `pulled` is that of its `Families`."""
        pulled(
            "asched_shadow_decisions_total",
            "counter",
            "[ALPHA] Decisions of the shadowed scheduler by profile, verdict (placed,"
            " unschedulable) and how ours compares.",
            ("profile", "verdict", "outcome"),
            lambda: {key: float(count) for key, count in self._tally.decisions.copy().items()},
        )
        pulled(
            "asched_shadow_differences_total",
            "counter",
            "[ALPHA] Decisions of the shadowed scheduler that a plugin made differ from ours: it"
            " refuses the node, or its points differ most.",
            ("profile", "plugin", "outcome"),
            lambda: {key: float(count) for key, count in self._tally.plugins.copy().items()},
        )
        pulled(
            "asched_shadow_doubts",
            "gauge",
            "[ALPHA] Decisions that differ and wait for a second look.",
            (),
            lambda: {(): float(self._shadow.doubts)},
        )

    async def run(self, now_s: Callable[[], float]) -> None:
        """Look again at what differs, until cancelled. Facts go first: a look may take some 30 ms,
        and API servers end the streams of those who read too slowly.
        """
        while True:
            started_s = counter_s()
            if self._shadow.look_again(now_s()):
                await asyncio.sleep(counter_s() - started_s)
            else:
                await asyncio.sleep(LOOK_S)

    def end(self, now_s: float) -> None:
        """Nothing more will be seen: what waits for a second look has it now, or goes without."""
        if self._shadow.doubts:
            told = "looking again at %d decisions that differ, for %.0f s at most"
            log.info(told, self._shadow.doubts, END_S)
        until_s = counter_s() + END_S
        while counter_s() < until_s and self._shadow.look_again(now_s, is_ending=True):
            pass
        self._shadow.settle()
