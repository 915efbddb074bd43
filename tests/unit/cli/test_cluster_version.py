"""Whose rules a start decides by."""

import json
import re
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import NamedTuple

import pytest

from asched.cli import cluster_version, flags, run
from asched.cli.flags import UsageError
from asched.core.config.versions import BASE
from asched.host.configuration.file import ConfigError
from asched.kube.session import connect
from tests.unit.kube.scripted import Seen, Wire, reply, scripted


class VersionAnswer(BaseHTTPRequestHandler):
    """Answers every request with a version."""

    version = "v1.37.1"

    def do_GET(self) -> None:
        body = json.dumps({"major": "1", "minor": "37", "gitVersion": self.version}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_arguments: object) -> None:
        pass


@pytest.fixture
def kubeconfig(tmp_path: Path) -> Iterator[Path]:
    server = HTTPServer(("127.0.0.1", 0), VersionAnswer)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    address = f"http://127.0.0.1:{server.server_port}"
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": {"server": address}}],
        "users": [{"name": "u", "user": {"token": "t"}}],
    }
    path = tmp_path / "kubeconfig"
    path.write_text(json.dumps(document))
    yield path
    server.shutdown()
    thread.join()
    server.server_close()


def test_the_server_s_version_decides(kubeconfig: Path) -> None:
    options = flags.parse([f"--kubeconfig={kubeconfig}"], cluster_version.of_server)
    assert (options.kubernetes.minor, options.kubernetes.server) == ("1.37", "v1.37.1")
    assert options.gates["StorageCapacityScoring"]
    assert options.gates["distinct-attribute-per-device"]
    assert options.warnings == ()
    plan = run.plan_of(options)
    assert plan.kubernetes.minor == "1.37"
    assert plan.configuration.gates["VolumeLimitScaling"]
    assert plan.serving.flags["emulated-version"] == "[1.37]"


def test_the_kubeconfig_may_be_named_in_the_configuration(kubeconfig: Path, tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    document = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "clientConnection": {"kubeconfig": str(kubeconfig)},
    }
    file.write_text(json.dumps(document))
    assert flags.parse([f"--config={file}"], cluster_version.of_server).kubernetes.minor == "1.37"


def test_a_flag_overrides_the_server(kubeconfig: Path) -> None:
    arguments = [f"--kubeconfig={kubeconfig}", "--emulated-version=kube=1.36"]
    options = flags.parse(arguments, cluster_version.of_server)
    assert options.kubernetes.minor == "1.36"
    assert options.kubernetes.is_emulated
    assert not options.gates["StorageCapacityScoring"]


def test_a_server_that_does_not_answer_is_a_warning(tmp_path: Path) -> None:
    arguments = [f"--kubeconfig={tmp_path}/absent", "--secure-port=0"]
    options = flags.parse(arguments, cluster_version.of_server)
    assert (options.kubernetes.minor, options.kubernetes.server) == (BASE, "")
    assert options.warnings[0].startswith("the version of the API server is not known (")


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("1.20", r"emulation version 1.20 is not between \[1.34, 1.38\]"),
        ("kube=1.99", "is not between"),
        ("wardle=1.2", "component not registered: wardle"),
        ("soon", "'soon' is no version"),
    ],
)
def test_versions_that_cannot_be_emulated(value: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        flags.parse([f"--emulated-version={value}"])


#: As kubeadm writes it into the manifest of kube-scheduler.
KUBEADM = (
    "--authentication-kubeconfig=/etc/kubernetes/scheduler.conf",
    "--authorization-kubeconfig=/etc/kubernetes/scheduler.conf",
    "--bind-address=127.0.0.1",
    "--kubeconfig=/etc/kubernetes/scheduler.conf",
    "--leader-elect=true",
)
FILE = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
clientConnection: {kubeconfig: /etc/kubernetes/scheduler.conf}
profiles:
- schedulerName: default-scheduler
  pluginConfig:
  - name: NodeResourcesFit
    args: {scoringStrategy: {type: MostAllocated, resources: [{name: cpu, weight: 1}]}}
  plugins:
    score: {disabled: [{name: ImageLocality}]}
"""
FOR_GROUPS = "    podGroupPostFilter: {enabled: [{name: DefaultPreemption}]}\n"


class Start(NamedTuple):
    """Gates that start with this version and the warnings about them; what is refused, and how."""

    minor: str
    gates: str
    warnings: tuple[str, ...]
    refused: str
    why: str
    takes_groups: bool


STARTS = (
    Start(
        "1.34",
        "VolumeAttributesClass=true,KubeletPSI=true,InterPodAffinityHostnameFastPath=true",
        ("unrecognized feature gate: KubeletPSI", "Kubernetes 1.37 and newer have it"),
        "DynamicResourceAllocation=false",
        "feature is locked to true",
        takes_groups=False,
    ),
    Start(
        "1.35",
        "DRAPrioritizedList=true,SchedulerPreQueueingHints=true",
        ("SchedulerPreQueueingHints=true has no effect: Kubernetes 1.37 and newer have it",),
        "PodGroupPreemptionPolicy=true",
        "Kubernetes 1.37 and newer have it, and asched decides as 1.36",
        takes_groups=False,
    ),
    Start(
        "1.36",
        "StorageCapacityScoring=true,GenericWorkload=true,GangScheduling=true",
        ("features=[GangScheduling GenericWorkload StorageCapacityScoring]",),
        "DRAFractionalCapacityRange=true",
        "Kubernetes 1.37 and newer have it, and asched decides as 1.36",
        takes_groups=False,
    ),
    Start(
        "1.37",
        "GenericWorkload=true,SidecarContainers=true,EtcdRangeStream=false",
        ("Kubernetes 1.37 has no such gate", "EtcdRangeStream has no effect on this scheduler"),
        "GangScheduling=true",
        "in Kubernetes 1.37 it is part of GenericWorkload",
        takes_groups=True,
    ),
    Start(
        "1.38",
        "StorageCapacityScoring=false,DynamicResourceAllocation=true",
        ("a preview", "Kubernetes 1.38 has no such gate, it is always on"),
        "DRADeviceTaintRules=false",
        "feature is locked to true",
        takes_groups=True,
    ),
)


@pytest.mark.parametrize("start", STARTS, ids=lambda start: start.minor)
def test_a_command_line_and_a_file_of_every_version(start: Start, tmp_path: Path) -> None:
    version = f"--emulated-version={start.minor}"
    options = flags.parse([*KUBEADM, version, f"--feature-gates={start.gates}"])
    assert options.kubernetes.minor == (max(start.minor, BASE))
    assert run.plan_of(options).configuration.profiles
    for words in start.warnings:
        assert any(words in line for line in options.warnings)
    assert len(options.warnings) == len(start.warnings)
    with pytest.raises(UsageError, match=re.escape(start.why)):
        flags.parse([*KUBEADM, version, f"--feature-gates={start.refused}"])

    file = tmp_path / "config.yaml"
    file.write_text(FILE)
    assert run.plan_of(flags.parse([version, f"--config={file}"])).configuration.profiles
    file.write_text(FILE + FOR_GROUPS)
    options = flags.parse([version, f"--config={file}"])
    if start.takes_groups:
        assert run.plan_of(options).configuration.profiles
        return
    with pytest.raises(ConfigError, match=r"podGroupPostFilter.*1\.37 and newer have this point"):
        run.plan_of(options)


@pytest.mark.parametrize(
    ("minor", "accept"),
    [("1.37", "application/json"), ("1.38", "application/json;drop=metadata.managedFields")],
)
async def test_streams_without_managed_fields(minor: str, accept: str) -> None:
    async def answer(_seen: Seen, _wire: Wire) -> bytes:
        return reply(200, {})

    async with scripted(answer) as server:
        flag = f"--emulated-version={minor}"
        plan = run.plan_of(flags.parse([flag, f"--master={server.url}"]))
        session = await connect(plan.connection, handshake=False)
        async with session.general.stream("/api/v1/pods", timeout_s=10) as stream:
            assert stream.status == 200
        await session.close()
    assert [seen.headers["accept"] for seen in server.seen] == [accept]
