"""One scheduler in the trial: its replicas, its lease, its pods, and when one was bound last."""

import os
import signal
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any, Final

from asched_lab.bench.processes import Process
from asched_lab.bench.world import WorkloadFailedError
from tests.e2e.control_plane import Plane

Json = dict[str, Any]
ASCHED: Final = "asched"
REPLICAS: Final = 2
FORMS: Final = 8


@dataclass
class Side:
    """`kind` is the name of the program and of its lease; `folder` gets the logs of its lives."""

    kind: str
    pods: int
    plane: Plane
    kubeconfig: Path
    folder: Path
    lease_s: int
    created: int = 0
    bound: int = 0
    last_s: float = 0.0
    replicas: list[Process] = field(default_factory=list)
    _numbers: Iterator[int] = field(default_factory=lambda: count(1))

    @property
    def scheduler_name(self) -> str:
        """What its pods ask for."""
        return ASCHED if self.kind == ASCHED else "default-scheduler"

    async def begin(self) -> None:
        for _ in range(REPLICAS):
            self.replicas.append(await self._born())

    async def end(self) -> None:
        for process in self.replicas:
            await process.stop()

    async def _born(self) -> Process:
        """A replica that reaches the server by the wire alone."""
        name = f"life-{self.kind}-{next(self._numbers)}"
        flags = (
            f"--kubeconfig={self.kubeconfig}",
            "--secure-port=0",
            f"--leader-elect-lease-duration={self.lease_s}s",
            f"--leader-elect-renew-deadline={self.lease_s * 2 // 3}s",
            "--leader-elect-retry-period=2s",
        )
        log = self.folder / f"{name}.log"
        if self.kind == ASCHED:
            process = Process.of_asched(name, ("run", *flags), log)
        else:
            binary = str(Path(os.environ["KUBEBUILDER_ASSETS"]) / self.kind)
            process = Process(name, (binary, *flags), log)
        await process.start()
        return process

    async def tend(self) -> None:
        """As a kubelet does: what ended is started again, at once."""
        for place, process in enumerate(self.replicas):
            try:
                process.check()
            except WorkloadFailedError:
                self.replicas[place] = await self._born()

    async def kill(self, *, both: bool) -> None:
        """SIGKILL, with bindings under way: both replicas, or the one that was born first."""
        oldest = min(self.replicas, key=lambda process: process.started_s)
        for process in self.replicas if both else [oldest]:
            with suppress(ProcessLookupError):  # it has just ended by itself
                os.kill(process.pid, signal.SIGKILL)

    async def lease_free_s(self) -> float:
        """The monotonic time at which the lease as it stands runs out."""
        path = f"/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/{self.kind}"
        _, lease = await self.plane.client.ask("GET", path)
        moment = lease["spec"]["renewTime"].rstrip("Z").partition(".")
        renewed = time.mktime(time.strptime(moment[0], "%Y-%m-%dT%H:%M:%S")) - time.timezone
        left = renewed + float(f"0.{moment[2] or 0}") + self.lease_s - time.time()
        return time.monotonic() + max(0.0, left)

    def a_pod(self, number: int) -> Json:
        """One of several forms: most are plain, some spread, keep apart or choose nodes. Rules
        speak of pods of this side alone.
        """
        form = number % FORMS
        labels = {"app": f"{self.kind}-{number // 400}"} if form == 1 else {}
        amounts = {"requests": {"cpu": f"{300 + form * 25}m"}}
        spec: Json = {
            "schedulerName": self.scheduler_name,
            "containers": [{"name": "c", "image": "i", "resources": amounts}],
        }
        if form == 1:
            spread = {
                "maxSkew": 3,
                "topologyKey": "topology.kubernetes.io/zone",
                "whenUnsatisfiable": "DoNotSchedule",
                "labelSelector": {"matchLabels": labels},
            }
            spec["topologySpreadConstraints"] = [spread]
        if form == 2 and number % (FORMS * 4) == 2:
            labels["alone"] = self.kind
            term = {
                "topologyKey": "kubernetes.io/hostname",
                "labelSelector": {"matchLabels": {"alone": self.kind}},
            }
            rule = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
            spec["affinity"] = {"podAntiAffinity": rule}
        if form == 3:
            spec["nodeSelector"] = {"disk": "ssd"}
        return {"metadata": {"name": f"{self.kind}-{number}", "labels": labels}, "spec": spec}
