"""`asched replay`: what it prints, and how it ends."""

from pathlib import Path

import pytest

from asched.cli.main import main
from tests.unit.ops.recording.recorded import NAME, record
from tests.unit.ops.recording.streams import nodes, pods

PACKS = f"""
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: {NAME}
  pluginConfig:
  - name: NodeResourcesFit
    args: {{scoringStrategy: {{type: MostAllocated, resources: [{{name: cpu, weight: 1}}]}}}}
"""

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    return record(tmp_path / "recording", [nodes(), pods(30)])


@pytest.fixture
def packs(tmp_path: Path) -> Path:
    path = tmp_path / "packs.yaml"
    path.write_text(PACKS)
    return path


def test_equal_decisions_end_with_0(recording: Path, capsys: Capture) -> None:
    assert main(["replay", str(recording)]) == 0

    told = capsys.readouterr()
    assert "64 facts and 30 bindings of" in told.out
    assert told.out.endswith("all decisions are equal\n")
    assert told.err == ""


def test_differences_end_with_1_and_are_explained(
    recording: Path, packs: Path, capsys: Capture
) -> None:
    assert main(["replay", str(recording), "--config", str(packs)]) == 1

    out = capsys.readouterr().out
    assert "first difference in turn " in out
    assert "  then  bind default/p" in out
    assert "  now   bind default/p" in out
    assert "  why   n" in out
    assert "more; --all prints them" in out


def test_a_truncated_one_is_told(recording: Path, capsys: Capture) -> None:
    recording.write_bytes(recording.read_bytes()[:-30])

    assert main(["replay", str(recording)]) == 0

    assert "it ends in the middle" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["/no/such/file"], "no such file"),
        (["/dev/null"], "is no recording of asched"),
        (["{recording}", "--config", "/no/such.yaml"], "open /no/such.yaml"),
        (["{recording}", "--plugin", "nonsense"], "--plugin nonsense"),
    ],
)
def test_what_cannot_be_is_one_line_and_2(
    recording: Path, arguments: list[str], text: str, capsys: Capture
) -> None:
    assert main(["replay", *(one.format(recording=recording) for one in arguments)]) == 2

    told = capsys.readouterr()
    assert text in told.err
    assert told.err.count("\n") == 1
    assert told.out == ""


def test_under_pseudonyms_it_is_written_and_compared(
    recording: Path, tmp_path: Path, capsys: Capture
) -> None:
    out = tmp_path / "out"

    assert main(["replay", str(recording), "--anonymize", str(out)]) == 0

    told = capsys.readouterr().out
    assert "names replaced" in told
    assert told.endswith("it decides the same, name by name\n")
    assert main(["replay", str(out)]) == 0


def test_nothing_is_written_over(recording: Path, capsys: Capture) -> None:
    assert main(["replay", str(recording), "--anonymize", str(recording)]) == 2

    assert "exists already" in capsys.readouterr().err
