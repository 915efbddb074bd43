"""`asched run --shadow` within the process: compare decisions, count, and report at the end.

    facts ─> inactive machine ─> Shadow ─> Tally ─> metrics, page, report

Nothing is written to the cluster: no effect, no lease, no status.

Bounds  LOOK_S between two checks for due second looks; half of the time at most for them, and END_S
        at the end.
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
from asched.insight.shadow.finding import FindingTally, text
from asched.insight.shadow.following import Shadow
from asched.kube.clock import monotonic_s

log = logging.getLogger("asched.shadow")

LOOK_S: Final = 0.1
#: The end of the process waits for the report; the overlay's grace period is longer.
END_S: Final = 60.0


class ShadowPlan(msgspec.Struct, frozen=True):
    """Where the report is written: a file as JSON, or standard output as text."""

    report: Path | None = None
    tally: FindingTally = msgspec.field(default_factory=FindingTally)

    def write_report(self) -> None:
        report = self.tally.as_json()
        if self.report is None:
            sys.stdout.write(text(report))
            return
        try:
            self.report.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
        except OSError as error:
            log.error("the report cannot be written to %s: %s", self.report, error.strerror)  # noqa: TRY400
            sys.stdout.write(text(report))


class Shadowing:
    """The shadow of one run of a process."""

    def __init__(self, plan: ShadowPlan, machine: Machine) -> None:
        machine.is_active = False
        self._shadow = Shadow(machine.context, plan.tally)
        machine.context.shadow = self._shadow
        self._tally = plan.tally

    def show(self, pulled: Callable[..., object]) -> None:
        """Add the metrics; `pulled` is the method of `Families`."""
        pulled(
            "asched_shadow_decisions_total",
            "counter",
            "[ALPHA] Decisions of the shadowed scheduler by profile, verdict (placed,"
            " unschedulable) and comparison with ours.",
            ("profile", "verdict", "outcome"),
            lambda: {key: float(count) for key, count in self._tally.decisions.copy().items()},
        )
        pulled(
            "asched_shadow_differences_total",
            "counter",
            "[ALPHA] Decisions of the shadowed scheduler that differ because of a plugin of ours:"
            " it rejects the node, or its points differ most.",
            ("profile", "plugin", "outcome"),
            lambda: {key: float(count) for key, count in self._tally.plugins.copy().items()},
        )
        pulled(
            "asched_shadow_doubts",
            "gauge",
            "[ALPHA] Differing decisions that wait for a second comparison.",
            (),
            lambda: {(): float(self._shadow.doubts)},
        )

    async def run(self, now_s: Callable[[], float]) -> None:
        """Compare differing decisions again, until cancelled. Facts take precedence: a comparison
        may take some 30 ms, and API servers end the streams of slow readers.
        """
        while True:
            started_s = monotonic_s()
            if self._shadow.look_again(now_s()):
                await asyncio.sleep(monotonic_s() - started_s)
            else:
                await asyncio.sleep(LOOK_S)

    def end(self, now_s: float) -> None:
        """No more facts will arrive: compare the remaining decisions, within a time limit."""
        if self._shadow.doubts:
            message = "comparing %d differing decisions again, for %.0f s at most"
            log.info(message, self._shadow.doubts, END_S)
        until_s = monotonic_s() + END_S
        while monotonic_s() < until_s and self._shadow.look_again(now_s, is_ending=True):
            pass
        self._shadow.settle()
