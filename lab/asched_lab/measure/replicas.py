"""Replicas of a scheduler, two on one lease by default, each behind a proxy of its own.

    async with Replicas("asched", kubeconfig, folder, LeaseOptions()) as replicas:
        leader = await replicas.until_leading()
        leader.kill()

A replica that has ended is started again, as by a kubelet: while something is waited for, and by
`tend`. On a busy machine a leader may lose its lease at any time, and its process ends then.

Bounds  READY_S until a replica can take the lease, and until one leads.
"""

import asyncio
import json
import os
import signal
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Self

from asched_lab.bench.processes import Process
from asched_lab.bench.world import WorkloadFailedError
from asched_lab.measure.late_proxy import LateProxy

ASCHED: Final = "asched"
#: The name of the profile in the pods, by program; the lease has the program's name.
PROFILES: Final = {ASCHED: "asched", "kube-scheduler": "default-scheduler"}
#: A log line of a replica that has read the cluster and waits for the lease, or has it.
READY_WORDS: Final = {ASCHED: '"synced"', "kube-scheduler": "ttempting to acquire leader lease"}
LEADING_WORDS: Final = "uccessfully acquired lease"
READY_S: Final = 90.0
POLL_S: Final = 0.05
COUNT: Final = 2


@dataclass(frozen=True)
class LeaseOptions:
    """Times of a lease; by default those of both programs."""

    lease_s: float = 15.0
    renew_s: float = 10.0
    retry_s: float = 2.0

    @property
    def flags(self) -> tuple[str, ...]:
        return (
            f"--leader-elect-lease-duration={self.lease_s:g}s",
            f"--leader-elect-renew-deadline={self.renew_s:g}s",
            f"--leader-elect-retry-period={self.retry_s:g}s",
        )

    @property
    def fields(self) -> dict[str, str]:
        """The same in a configuration."""
        return {
            "leaseDuration": f"{self.lease_s:g}s",
            "renewDeadline": f"{self.renew_s:g}s",
            "retryPeriod": f"{self.retry_s:g}s",
        }


class Replica:
    """One place for a process: the process there now, and its proxy."""

    def __init__(self, proxy: LateProxy, process: Process, program: str) -> None:
        self.proxy = proxy
        self.process = process
        self._program = program

    @property
    def log(self) -> str:
        return self.process.log.read_text(encoding="utf-8", errors="replace")

    @property
    def is_running(self) -> bool:
        try:
            self.process.check()
        except WorkloadFailedError:
            return False
        return True

    @property
    def is_ready(self) -> bool:
        return self.is_running and READY_WORDS[self._program] in self.log

    @property
    def leads(self) -> bool:
        """Whether it has taken the lease: each process takes it once, and ends when it loses it."""
        return self.is_running and LEADING_WORDS in self.log

    def signal(self, number: int) -> None:
        with suppress(ProcessLookupError):  # it has just ended by itself
            os.kill(self.process.pid, number)

    def kill(self) -> None:
        self.signal(signal.SIGKILL)


class Replicas:
    """An async context manager. `folder` gets the logs of all processes."""

    def __init__(
        self,
        program: str,
        kubeconfig: str,
        folder: Path,
        lease: LeaseOptions,
        *,
        flags: tuple[str, ...] = (),
        binaries: Path | None = None,
        count: int = COUNT,
        document: Mapping[str, Any] | None = None,
    ) -> None:
        """`binaries`: the folder of programs other than asched. `document`: a configuration, which
        gets the kubeconfig and the times of the lease.
        """
        self.program = program
        self.lease = lease
        self.all: list[Replica] = []
        #: Processes started so far.
        self.started = 0
        self._kubeconfig = kubeconfig
        self._folder = folder
        self._flags = flags
        self._binaries = binaries or Path()
        self._count = count
        self._document = document

    async def __aenter__(self) -> Self:
        try:
            for _ in range(self._count):
                proxy = await LateProxy(self._kubeconfig).__aenter__()
                self.all.append(Replica(proxy, await self._start(proxy), self.program))
        except BaseException:
            await self.__aexit__()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        for replica in self.all:
            replica.proxy.mend()
            replica.signal(signal.SIGCONT)
        for replica in self.all:
            await replica.process.stop()
            await replica.proxy.__aexit__()

    async def _start(self, proxy: LateProxy) -> Process:
        self.started += 1
        name = f"{self.program}-{self.started}"
        kubeconfig = proxy.write_kubeconfig(self._folder / f"kubeconfig-{proxy.url[-5:]}")
        connection = f"--kubeconfig={kubeconfig}", *self.lease.flags
        if self._document is not None:
            connection = (f"--config={self._write_document(name, kubeconfig)}",)
        arguments = *connection, "--secure-port=0", *self._flags
        log = self._folder / f"{name}.log"
        if self.program == ASCHED:
            process = Process.of_asched(name, ("run", *arguments), log)
        else:
            binary = str(self._binaries / self.program)
            process = Process(name, (binary, *arguments), log)
        await process.start()
        return process

    def _write_document(self, name: str, kubeconfig: str) -> Path:
        assert self._document is not None
        path = self._folder / f"{name}.yaml"
        election = {"resourceName": self.program, **self.lease.fields}
        connection = {"kubeconfig": kubeconfig}
        whole = {**self._document, "leaderElection": election, "clientConnection": connection}
        path.write_text(json.dumps(whole), encoding="utf-8")
        return path

    async def tend(self, *, but: Replica | None = None) -> None:
        """Start again what has ended, other than the process of `but`."""
        for replica in self.all:
            if replica is not but and not replica.is_running:
                replica.process = await self._start(replica.proxy)

    async def until_ready(self) -> None:
        """Wait until all replicas have read the cluster. Raises WorkloadFailedError."""
        await self._until(lambda: all(replica.is_ready for replica in self.all))

    async def until_leading(self, *, but: Replica | None = None) -> Replica:
        """Wait until one leads, other than the process of `but`, which is left alone. Raises
        WorkloadFailedError.
        """
        found = list[Replica]()

        def holds() -> bool:
            found[:] = [replica for replica in self.all if replica is not but and replica.leads]
            return bool(found)

        await self._until(holds, but)
        return found[0]

    async def _until(self, holds: Callable[[], bool], spare: Replica | None = None) -> None:
        until_s = time.monotonic() + READY_S + self.lease.lease_s
        while not holds():
            await self.tend(but=spare)
            if time.monotonic() > until_s:
                logs = "\n".join(replica.log[-1000:] for replica in self.all)
                raise WorkloadFailedError(f"no replica of {self.program} is ready: {logs}")
            await asyncio.sleep(POLL_S)
