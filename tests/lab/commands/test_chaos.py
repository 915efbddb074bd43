"""`asched chaos`: its lines and its exit status."""

from pathlib import Path

import pytest

from asched.cli.main import main
from asched.core.queue.queue import SchedulingQueue
from asched_lab.sim import shrinking
from asched_lab.sim.lives import read


def test_a_scenario_that_holds_says_so_in_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["chaos", "--scenario", "RollingDrain", "--seed", "1", "--runs", "2"]) == 0

    (line,) = capsys.readouterr().out.splitlines()
    assert line.startswith("RollingDrain: 2 runs, ")
    assert line.endswith("no rule broken")


def test_a_broken_rule_names_its_seed_first(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SchedulingQueue, "move", lambda *_, **__: 0)

    assert main(["chaos", "--scenario", "Preemptors", "--seed", "3", "--whole"]) == 1
    assert capsys.readouterr().err.startswith("scenario Preemptors, seed 3: ")


def test_a_sweep_names_every_seed_that_fails_and_how_to_repeat_it(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def ill(*_: object, **__: object) -> None:
        raise RuntimeError("the queue is ill")

    monkeypatch.setattr(shrinking, "PLAYS_MAX", 2)
    monkeypatch.setattr(SchedulingQueue, "move", ill)

    assert main(["chaos", "--scenario", "Churn", "--seed", "3", "--runs", "3"]) == 1
    told = capsys.readouterr()
    lines = told.err.splitlines()
    named = [line.partition(": ")[0] for line in lines if line.startswith("scenario ")]
    again, *_ = [line for line in lines if line.startswith("again: ")]
    assert named == [f"scenario Churn, seed {seed}" for seed in (3, 4, 5)]
    assert told.out.endswith("3 with a broken rule\n")

    words = again.removeprefix("again: asched ").split()
    assert words[:5] == ["chaos", "--scenario", "Churn", "--seed", "3"]
    assert main(words) == 1
    assert capsys.readouterr().err.splitlines()[0] == lines[0]


WRONG = [
    ["--scenario", "Picnic"],
    ["--scenario", "Churn", "--without", "Rain"],
    ["--only", "1-x"],
]


@pytest.mark.parametrize("words", WRONG)
def test_wrong_words_are_met_with_one_line(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["chaos", *words]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_a_broken_life_is_kept_with_its_rule(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SchedulingQueue, "move", lambda *_, **__: 0)
    kept = tmp_path / "lives.jsonl"
    options = ["--scenario", "Preemptors", "--seed", "3", "--keep", str(kept), "--lives", "1"]

    assert main(["chaos", *options]) == 1
    assert capsys.readouterr().out.startswith("scenario Preemptors, seed 3: ")
    assert read(kept)[0].broken
    monkeypatch.undo()
    monkeypatch.setattr("asched_lab.sim.lives.code", lambda: "mended")
    assert main(["chaos", *options, "--table", str(kept)]) == 0
    assert [bool(life.broken) for life in read(kept)] == [True, False]
    assert "0 runs with a broken rule (1 with those" in capsys.readouterr().out


def test_files_that_hold_no_lives_are_refused_in_a_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    wrong = tmp_path / "wrong"
    wrong.write_text("nothing\n")

    assert main(["chaos", "--table", str(wrong)]) == 2
    assert capsys.readouterr().err.startswith(f"asched chaos: {wrong}, line 1: not a run: ")
    assert main(["chaos", "--lives", "5"]) == 2
    assert "go together" in capsys.readouterr().err
