"""`asched extender`: what is wrong is said in one line, before anything is opened."""

from pathlib import Path

import pytest

from asched.cli.main import main

UNKNOWN = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles: [{schedulerName: a, plugins: {filter: {enabled: [{name: Nope}]}}}]
"""


@pytest.mark.parametrize(
    ("flags", "status", "why"),
    [
        (
            ["--tls-cert-file", "x"],
            2,
            "--tls-cert-file and --tls-private-key-file must be given together",
        ),
        (["--client-ca-file", "x"], 2, "--client-ca-file needs HTTPS"),
        (["--config", "/nonexistent.yaml"], 2, "open /nonexistent.yaml: no such file or directory"),
        (["--plugin", "nowhere.py"], 2, "there is no such file"),
        (["--kubeconfig", "/nonexistent.yaml"], 1, "/nonexistent.yaml"),
        (["--standalone", "--bind-address", "192.0.2.1"], 1, "choose another --port"),
    ],
)
def test_what_cannot_be_is_one_line(
    flags: list[str], status: int, why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["extender", *flags]) == status
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("asched extender: ")
    assert why in line


def test_a_configuration_is_judged_at_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(UNKNOWN)
    assert main(["extender", "--standalone", "--config", str(path)]) == 2
    assert 'plugin "Nope" does not exist' in capsys.readouterr().err
