"""Whose rules a start decides by."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from asched.cli import cluster_version, flags, run
from asched.cli.flags import UsageError
from asched.core.config.versions import BASE


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


@pytest.mark.parametrize(
    ("minor", "gates"),
    [
        ("1.34", ""),
        ("1.35", "DRAPrioritizedList=true"),
        ("1.36", "StorageCapacityScoring=true,GenericWorkload=true,GangScheduling=true"),
        ("1.37", "GenericWorkload=true,TopologyAwareWorkloadScheduling=true"),
        ("1.38", "GenericWorkload=true,StorageCapacityScoring=false"),
    ],
)
def test_a_command_line_of_kubeadm_starts_with_every_version(minor: str, gates: str) -> None:
    arguments = [
        "--authentication-kubeconfig=/etc/kubernetes/scheduler.conf",
        "--authorization-kubeconfig=/etc/kubernetes/scheduler.conf",
        "--bind-address=127.0.0.1",
        "--kubeconfig=/etc/kubernetes/scheduler.conf",
        "--leader-elect=true",
        f"--feature-gates={gates}",
        f"--emulated-version={minor}",
    ]
    options = flags.parse(arguments)
    assert options.kubernetes.minor in (minor, BASE)
    assert options.kubernetes.is_emulated
