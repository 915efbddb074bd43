"""A real control plane on loopback for one measurement: etcd and kube-apiserver only.

    async with RealServer(assets) as server:
        server.kubeconfig            # an administrator's
        server.scheduler_kubeconfig  # of the user system:kube-scheduler

Certificates come from a package that asched needs anyway. The store is in memory where the system
has such a folder, so that the disk is not measured.

Bounds  READY_S until the API server reports ready.
"""

import asyncio
import datetime as dt
import ipaddress
import json
import os
import shutil
import signal
import socket
import ssl
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from typing import Self

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import NameOID

from asched.kube.certificates import client_context
from asched_lab.bench.processes import Process
from asched_lab.bench.world import WorkloadFailedError

READY_S = 90.0
POLL_S = 0.2
TOKEN = "bench-administrator"
SCHEDULER_TOKEN = "bench-scheduler"
#: Flags without which the server's limits would be measured instead of the only client.
UNLIMITED = (
    "--max-requests-inflight=0",
    "--max-mutating-requests-inflight=0",
    "--enable-priority-and-fairness=false",
)
#: Without controllers no service account exists, and no node is ever ready.
NO_CONTROLLERS = ("--disable-admission-plugins=ServiceAccount,TaintNodesByCondition",)
MEMORY_FOLDER = Path("/dev/shm")


def assets() -> Path | None:
    """The folder with etcd and kube-apiserver, if KUBEBUILDER_ASSETS names one."""
    named = os.environ.get("KUBEBUILDER_ASSETS", "")
    folder = Path(named)
    if named and all((folder / name).exists() for name in ("etcd", "kube-apiserver")):
        return folder
    return None


class RealServer:
    """etcd and kube-apiserver as child processes; `is_limited`: with kube-apiserver's default
    priority and fairness; `flags`: further ones of kube-apiserver, in which {folder} is that of the
    server's files; `has_default_admission`: service accounts and taints of new nodes as well, which
    need controllers.
    """

    description = "real kube-apiserver and etcd"

    def __init__(
        self,
        folder_of_binaries: Path,
        *,
        is_limited: bool = False,
        flags: Sequence[str] = (),
        has_default_admission: bool = False,
    ) -> None:
        self.binaries = folder_of_binaries
        base = MEMORY_FOLDER if MEMORY_FOLDER.is_dir() else None
        self.folder = Path(tempfile.mkdtemp(prefix="asched-bench-", dir=base))
        self._flags = (
            *(() if has_default_admission else NO_CONTROLLERS),
            *(() if is_limited else UNLIMITED),
            *(flag.replace("{folder}", str(self.folder)) for flag in flags),
        )
        self._processes: list[Process] = []
        self.kubeconfig = str(self.folder / "kubeconfig")
        self.scheduler_kubeconfig = str(self.folder / "scheduler.kubeconfig")

    async def __aenter__(self) -> Self:
        try:
            await self._start()
        except BaseException:
            await self.stop()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    @property
    def url(self) -> str:
        document = json.loads(Path(self.kubeconfig).read_text(encoding="utf-8"))
        url: str = document["clusters"][0]["cluster"]["server"]
        return url

    async def kill_and_restart(self, away_s: float) -> None:
        """Kill the API server, and start it again after that time; its store lives on."""
        process = self._processes[-1]
        os.kill(process.pid, signal.SIGKILL)
        await process.stop()
        await asyncio.sleep(away_s)
        await process.start()
        await self._until_ready(self.url, str(self.folder / "serving.crt"), process)

    async def kill_store(self, away_s: float) -> None:
        """Kill etcd, and start it again after that time; the API server waits for it."""
        etcd, api_server = self._processes[:2]
        os.kill(etcd.pid, signal.SIGKILL)
        await etcd.stop()
        await asyncio.sleep(away_s)
        await etcd.start()
        await self._until_ready(self.url, str(self.folder / "serving.crt"), api_server)

    async def stop_for(self, seconds: float) -> None:
        """Stop the API server, and let it continue after that time."""
        process = self._processes[-1]
        os.kill(process.pid, signal.SIGSTOP)
        try:
            await asyncio.sleep(seconds)
        finally:
            os.kill(process.pid, signal.SIGCONT)

    async def slow_store(self, seconds: float, stopped_s: float, runs_s: float) -> None:
        """Let etcd stop and run alternately for so long."""
        etcd, until_s = self._processes[0], time.monotonic() + seconds
        while time.monotonic() < until_s:
            os.kill(etcd.pid, signal.SIGSTOP)
            await asyncio.sleep(stopped_s)
            os.kill(etcd.pid, signal.SIGCONT)
            await asyncio.sleep(runs_s)

    def cpu_s(self) -> float:
        """Processor time of the API server alone so far."""
        served = (process for process in self._processes if process.name == "kube-apiserver")
        return sum(process.usage().get("cpu_s", 0.0) for process in served)

    async def stop(self) -> None:
        """Stop the API server first, then its store."""
        for process in reversed(self._processes):
            await process.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    async def _start(self) -> None:
        certificates = _certificates(self.folder)
        (self.folder / "tokens.csv").write_text(
            f"{TOKEN},bench,1,system:masters\n{SCHEDULER_TOKEN},system:kube-scheduler,2\n"
        )
        client_port, peer_port, port = (free_port() for _ in range(3))
        peer = f"http://127.0.0.1:{peer_port}"
        client = f"http://127.0.0.1:{client_port}"
        await self._spawn(
            "etcd",
            f"--data-dir={self.folder / 'etcd'}",
            f"--listen-client-urls={client}",
            f"--advertise-client-urls={client}",
            f"--listen-peer-urls={peer}",
            f"--initial-advertise-peer-urls={peer}",
            f"--initial-cluster=default={peer}",
            f"--quota-backend-bytes={8 * 1024**3}",
        )
        api_server = await self._spawn(
            "kube-apiserver",
            f"--etcd-servers={client}",
            f"--secure-port={port}",
            "--bind-address=127.0.0.1",
            f"--cert-dir={self.folder}",
            f"--tls-cert-file={certificates}/serving.crt",
            f"--tls-private-key-file={certificates}/serving.key",
            f"--token-auth-file={self.folder / 'tokens.csv'}",
            "--authorization-mode=RBAC",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-key-file={certificates}/accounts.key",
            f"--service-account-signing-key-file={certificates}/accounts.key",
            "--service-cluster-ip-range=10.0.0.0/16",
            *self._flags,
        )
        url = f"https://127.0.0.1:{port}"
        for path, token in ((self.kubeconfig, TOKEN), (self.scheduler_kubeconfig, SCHEDULER_TOKEN)):
            _write_kubeconfig(Path(path), url, f"{certificates}/serving.crt", token)
        await self._until_ready(url, f"{certificates}/serving.crt", api_server)

    async def _spawn(self, name: str, *arguments: str) -> Process:
        command = (str(self.binaries / name), *arguments)
        process = Process(name, command, self.folder / f"{name}.log")
        self._processes.append(process)
        await process.start()
        return process

    async def _until_ready(self, url: str, authority: str, api_server: Process) -> None:
        context = client_context(authorities=await asyncio.to_thread(Path(authority).read_bytes))
        until_s = time.monotonic() + READY_S
        while time.monotonic() < until_s:
            api_server.check()
            if await asyncio.to_thread(_is_ready, url, context):
                return
            await asyncio.sleep(POLL_S)
        raise WorkloadFailedError(f"kube-apiserver was not ready within {READY_S:.0f} s")


def _write_kubeconfig(path: Path, url: str, authority: str, token: str) -> None:
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "bench",
        "clusters": [
            {"name": "bench", "cluster": {"server": url, "certificate-authority": authority}}
        ],
        "users": [{"name": "bench", "user": {"token": token}}],
        "contexts": [{"name": "bench", "context": {"cluster": "bench", "user": "bench"}}],
    }
    path.write_text(json.dumps(document))


def _is_ready(url: str, context: ssl.SSLContext) -> bool:
    request = urllib.request.Request(f"{url}/readyz", headers={"Authorization": f"Bearer {TOKEN}"})
    try:
        with urllib.request.urlopen(request, context=context, timeout=2) as reply:
            return bool(reply.status == 200)
    except (urllib.error.URLError, OSError):
        return False


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _certificates(folder: Path) -> Path:
    """A self-signed serving certificate for loopback, and a key that signs account tokens."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "asched-bench")])
    today = dt.datetime.now(dt.UTC)
    names = [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(today - dt.timedelta(hours=1))
        .not_valid_after(today + dt.timedelta(days=2))
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    (folder / "serving.crt").write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    accounts = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    for file, private in (("serving.key", key), ("accounts.key", accounts)):
        (folder / file).write_bytes(
            private.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.NoEncryption(),
            )
        )
    return folder
