"""Words of others reach a terminal as words."""

import pytest

from asched.cli import explain
from asched.cli.arguments import plain
from asched.cli.top import screen
from asched_lab.commands.simulate import fail

HOSTILE = "\x1b[2J\x1b]0;owned\x07\x9b31m\u202eback\r"
OBEYED = set("\x1b\x07\x9b\u202e\r")


def test_a_line_stays_a_line_and_controls_become_question_marks() -> None:
    assert plain("a\nb\tcafé 節") == "a\nb?café 節"
    assert not set(plain(HOSTILE)) & OBEYED


@pytest.mark.parametrize("output", ["text", "wide", "json", "yaml"])
def test_what_an_extender_or_a_driver_says_cannot_steer_the_terminal(output: str) -> None:
    told = {
        "pod": "default/p",
        "place": HOSTILE,
        "story": [],
        "now": {"preFilter": HOSTILE, "plugin": "Mine", "nodes": 3},
        "attempts": 1,
    }
    shown = explain.printed(told, output)
    assert not set(shown) & OBEYED
    assert "owned" in shown


def test_what_a_server_answers_cannot_either(capsys: pytest.CaptureFixture[str]) -> None:
    assert fail("plan", f"the server said {HOSTILE}", 1) == 1
    assert not set(capsys.readouterr().err) & OBEYED


def test_the_live_view_is_as_careful() -> None:
    queues = dict.fromkeys(("active", "backoff", "unschedulable", "gated", "binding"), 0)
    view = {"profiles": [HOSTILE], "nodes": {"count": 0}, "queues": queues, "pods": 0}
    first = next(screen({**view, "placed": 0, "leads": True, "synced": True, "at": 0}))
    assert not set(first) & {*OBEYED, "\n"}
