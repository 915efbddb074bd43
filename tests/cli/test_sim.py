"""`asched sim`: its lines and its exit status."""

import pytest

from asched.cli.main import main
from asched.core.queue.queue import SchedulingQueue


def test_a_scenario_that_holds_says_so_in_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sim", "--scenario", "RollingDrain", "--seed", "1", "--runs", "2"]) == 0

    (line,) = capsys.readouterr().out.splitlines()
    assert line.startswith("RollingDrain: 2 lives, ")
    assert line.endswith("no rule broken")


def test_steps_tell_what_happened(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sim", "--scenario", "OldNames", "--steps"]) == 0

    assert " bind default/db-" in capsys.readouterr().out


def test_a_broken_rule_names_its_seed_first(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SchedulingQueue, "move", lambda *_, **__: 0)

    assert main(["sim", "--scenario", "Preemptors", "--seed", "3"]) == 1
    assert capsys.readouterr().err.startswith("scenario Preemptors, seed 3: ")


@pytest.mark.parametrize("words", [["--scenario", "Picnic"], ["--runs", "0"]])
def test_wrong_words_are_met_with_one_line(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["sim", *words]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1
