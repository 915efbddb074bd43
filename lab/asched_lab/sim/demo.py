"""The demo: an embedded API server, a realistic set of pods, and the real scheduler.

The scheduler runs as a process of its own and uses HTTP, exactly as in a cluster. This side creates
the objects, watches the store, shows the progress, and checks the end state itself.

Bounds  SETTLED_S without a binding ends the run; TIME_MAX_S ends it in any case.
"""

import asyncio
import contextlib
import os
import socket
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from asched import names
from asched.core.cycle.failure import ADVICE_BEGINS
from asched.core.leader.election import LeaseRecord, Term
from asched.core.model.timestamp import micro_time
from asched_lab.apiserver.server import ApiServer
from asched_lab.sim import mix
from asched_lab.sim.checker import EndState

POLL_S: Final = 0.1
#: The demo ends when nothing was bound for so long and every other pod has a condition.
SETTLED_S: Final = 1.5
TIME_MAX_S: Final = 600.0
STOP_S: Final = 12.0
CREATED_PER_STEP: Final = 200
#: Pages that unauthenticated clients on this machine may read during a demo.
OPEN_PATHS: Final = "/healthz,/readyz,/livez,/metrics,/metrics/*,/debug/asched/*,/ui/*"


@dataclass(frozen=True, slots=True)
class Progress:
    """Counts of pods, and seconds since the scheduler was started."""

    pods: int
    bound: int
    refused: int
    seconds: float
    rate: float  # pods bound per second over the last second
    wait_p50_s: float
    wait_p99_s: float

    @property
    def waiting(self) -> int:
        return self.pods - self.bound - self.refused


@dataclass(slots=True)
class Summary:
    """The end: what `--json` prints, and why the other pods are not bound."""

    nodes: int
    pods: int
    bound: int
    unschedulable: int
    seconds: float
    pods_per_second: float
    reasons: Counter[str] = field(default_factory=Counter)
    broken: list[str] = field(default_factory=list)
    forgotten: list[str] = field(default_factory=list)
    #: NAMESPACE/NAME of a pod that has no node; empty if all have one.
    example: str = ""

    @property
    def is_good(self) -> bool:
        """Every pod that can be placed is, and no rule is broken."""
        return (
            not self.broken and not self.forgotten and self.bound + self.unschedulable == self.pods
        )

    def as_json(self) -> dict[str, Any]:
        keys = ("nodes", "pods", "bound", "unschedulable", "seconds", "pods_per_second")
        return {key: getattr(self, key) for key in keys}


class SchedulerDiedError(Exception):
    """The scheduler's process ended; the message has its last log lines."""


class Demo:
    """One run.

    `scheduler_flags` go to `asched run`; its output goes to `log`, which stays if it is given.
    With `serves_pages` the scheduler serves its pages at `pages`, to this machine only.
    Raises OSError if there is no folder for temporary files.
    """

    def __init__(
        self,
        *,
        nodes: int,
        pods: int,
        seed: int,
        scheduler_flags: Sequence[str] = (),
        log: Path | None = None,
        serves_pages: bool = False,
    ) -> None:
        self._node_count = nodes
        self._pod_count = pods
        self._seed = seed
        self.server = ApiServer(kubelet=True, controllers=True)
        self.kubeconfig = Path(tempfile.mkdtemp(prefix="asched-demo-")) / "kubeconfig"
        self._own_log = self.kubeconfig.with_name("scheduler.log")
        self.log = log or self._own_log
        self._flags = tuple(scheduler_flags)
        self._port = _free_port() if serves_pages else 0
        self.pages = f"https://localhost:{self._port}" if serves_pages else ""
        self._process: asyncio.subprocess.Process | None = None
        self._last_bound_s = 0.0
        self._bound_at: dict[str, float] = {}

    async def run(self, say: Callable[[str], None], show: Callable[[Progress], None]) -> Summary:
        """Create, schedule, watch, check. `say` is called with each step of the set-up, `show` with
        the progress about ten times a second.

        Raises SchedulerDiedError.
        """
        say("starting the API server")
        await self.server.start()
        self.kubeconfig.write_text(self.server.kubeconfig(self.pages), encoding="utf-8")
        await self._create("namespaces", mix.namespaces())
        await self._create("priorityclasses", mix.priority_classes())
        say(f"creating {self._node_count} nodes")
        await self._create("nodes", mix.nodes(self._node_count))
        say(f"creating {self._pod_count} pods")
        pods = mix.pods(self._pod_count, names.OUR_SCHEDULER_NAME, self._seed)
        await self._create("pods", pods)
        await self._create("leases", [_lease()])
        say("starting the scheduler")
        started_s = time.monotonic()
        await self._start_scheduler()
        await self._watch(started_s, show)
        return self._summary()

    async def stop(self) -> None:
        """Stop the scheduler with SIGTERM, then the server."""
        process = self._process
        if process is not None and process.returncode is None:
            process.terminate()
            try:
                await asyncio.wait_for(process.wait(), STOP_S)
            except TimeoutError:
                process.kill()
        await self.server.stop()
        for path in (self.kubeconfig, self._own_log):
            path.unlink(missing_ok=True)
        with contextlib.suppress(OSError):
            self.kubeconfig.parent.rmdir()

    async def _create(self, plural: str, objects: Any) -> None:
        for number, obj in enumerate(objects):
            self.server.create(plural, obj)
            if number % CREATED_PER_STEP == 0:
                await asyncio.sleep(0)

    async def _start_scheduler(self) -> None:
        command = [
            *(sys.executable, "-m", "asched", "run"),
            *("--kubeconfig", str(self.kubeconfig), f"--secure-port={self._port}"),
            *("--bind-address=127.0.0.1", f"--authorization-always-allow-paths={OPEN_PATHS}"),
            *(("--explain-hint",) if self.pages else ()),
            *self._flags,
        ]
        if not any(flag.startswith("--config") for flag in self._flags):
            command += ["--scheduler-name", names.OUR_SCHEDULER_NAME]
        # With a configuration file --kubeconfig has no effect.
        variables = {"PYTHONUNBUFFERED": "1", "KUBECONFIG": str(self.kubeconfig)}
        with self.log.open("wb") as log:
            self._process = await asyncio.create_subprocess_exec(
                *command, stdout=log, stderr=log, env={**os.environ, **variables}
            )

    async def _watch(self, started_s: float, show: Callable[[Progress], None]) -> None:
        """Check the store until everything is settled."""
        while True:
            await asyncio.sleep(POLL_S)
            now_s = time.monotonic() - started_s
            if self._process is not None and self._process.returncode is not None:
                raise SchedulerDiedError("the scheduler ended: " + " | ".join(self._last_words()))
            refused = self._read_store(now_s)
            show(self._progress(now_s, refused))
            done = len(self._bound_at) + refused >= self._pod_count
            if done and now_s - self._last_bound_s > SETTLED_S:
                return
            if now_s > TIME_MAX_S:
                return

    def _last_words(self) -> list[str]:
        if not self.log.is_file():  # a terminal or a pipe
            return [f"see {self.log}"]
        return self.log.read_text(encoding="utf-8").strip().splitlines()[-3:]

    def _read_store(self, now_s: float) -> int:
        """Record new bindings; return the number of pods reported unschedulable."""
        refused = 0
        for pod in self.server.list("pods"):
            if pod["spec"].get("nodeName"):
                uid = pod["metadata"]["uid"]
                if uid not in self._bound_at:
                    self._bound_at[uid] = self._last_bound_s = now_s
            elif _refusal(pod):
                refused += 1
        return refused

    def _progress(self, now_s: float, refused: int) -> Progress:
        waits = sorted(self._bound_at.values())
        recent = sum(1 for at in waits if at > now_s - 1)
        return Progress(
            pods=self._pod_count,
            bound=len(waits),
            refused=refused,
            seconds=now_s,
            rate=float(recent),
            wait_p50_s=waits[len(waits) // 2] if waits else 0.0,
            wait_p99_s=waits[int(len(waits) * 0.99)] if waits else 0.0,
        )

    def _summary(self) -> Summary:
        pods = self.server.list("pods")
        end = EndState(self.server.list("nodes"), pods, self.server.list("namespaces"))
        seconds = round(self._last_bound_s, 2)
        bound = len(end.placed)
        first_s = min(self._bound_at.values(), default=0.0) - POLL_S
        busy_s = max(self._last_bound_s - first_s, POLL_S)
        return Summary(
            nodes=self._node_count,
            pods=self._pod_count,
            bound=bound,
            unschedulable=sum(1 for pod in end.waiting if _refusal(pod)),
            seconds=seconds,
            pods_per_second=round(bound / busy_s, 1),
            reasons=Counter(_refusal(pod) or "not tried yet" for pod in end.waiting),
            broken=end.broken_rules(),
            forgotten=end.could_be_placed(),
            example=next((_key(pod) for pod in end.waiting), ""),
        )


def _lease() -> dict[str, Any]:
    """The lease as a scheduler leaves it that ended with all its writes answered: without it the
    next one would give each waiting pod a new version first.
    """
    metadata = {
        "name": names.OUR_SCHEDULER_NAME,
        "namespace": "kube-system",
        "annotations": Term(transitions=0, is_handed_on=True).annotations,
    }
    now = micro_time(time.time_ns())
    spec = LeaseRecord(duration_s=1, acquire_time=now, renew_time=now).spec()
    return {"metadata": metadata, "spec": spec}


def _key(pod: Mapping[str, Any]) -> str:
    return f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _refusal(pod: Mapping[str, Any]) -> str:
    """Why a pod has no node, normalised for equal pods; empty if there is no condition yet."""
    for condition in pod["status"].get("conditions") or ():
        if condition["type"] == names.POD_SCHEDULED and condition["status"] == "False":
            return str(condition.get("message", "")).partition(ADVICE_BEGINS)[0]
    return ""
