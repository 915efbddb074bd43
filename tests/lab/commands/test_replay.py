"""`asched replay`: what it prints, and how it ends."""

import gzip
import json
from pathlib import Path

import pytest

from asched.cli.main import main
from tests.ops.recording.recorded import NAME, record
from tests.ops.recording.streams import nodes, pods

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


def test_all_of_them_are_printed_on_demand(recording: Path, packs: Path, capsys: Capture) -> None:
    assert main(["replay", str(recording), "--config", str(packs), "--all"]) == 1
    every = capsys.readouterr().out
    main(["replay", str(recording), "--config", str(packs), "-o", "json"])
    told = json.loads(capsys.readouterr().out)

    assert "--all" not in every
    assert every.count("  why   ") >= len([one for one in told["differences"] if one["why"]]) > 20
    assert told["equal"] is False
    assert told["firstDifference"]["turn"] > 0
    assert sum(told["counts"].values()) == len(told["differences"])


def test_a_truncated_one_is_told(recording: Path, capsys: Capture) -> None:
    recording.write_bytes(recording.read_bytes()[:-30])

    assert main(["replay", str(recording)]) == 0

    assert "it ends in the middle" in capsys.readouterr().err


def test_another_version_is_told(recording: Path, capsys: Capture) -> None:
    body = gzip.decompress(recording.read_bytes())
    head = json.loads(body.partition(b"\n")[0]) | {"version": "0.0.1"}
    recording.write_bytes(
        gzip.compress(json.dumps(head).encode() + b"\n" + body.partition(b"\n")[2])
    )

    assert main(["replay", str(recording)]) == 0

    assert "recorded by asched 0.0.1, this is " in capsys.readouterr().err


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


def test_pseudonyms_and_another_configuration_are_two_things(
    recording: Path, packs: Path, tmp_path: Path, capsys: Capture
) -> None:
    arguments = ["replay", str(recording), "--config", str(packs)]
    assert main([*arguments, "--anonymize", str(tmp_path / "out")]) == 2

    assert "exclude each other" in capsys.readouterr().err
