"""A transcript that is recorded again from a server that answers as before is the same."""

import json
from pathlib import Path

import pytest

from asched_lab.measure.real import assets
from asched_lab.record.transcripts.__main__ import main, new_lines
from asched_lab.record.transcripts.placeholders import Placeholders
from asched_lab.record.transcripts.replay import Replay, server_of
from tests.support import RECORDINGS, recorded_lines

FOLDER = RECORDINGS / "apiserver"
INDEX = json.loads((FOLDER / "index.json").read_text(encoding="utf-8"))["scenarios"]


#: In these the embedded server answers in the words of the recorded one.
ALIKE = ("crud_pods", "defaults", "paging", "server_side_apply", "watch_selectors")


@pytest.mark.parametrize("scenario", ALIKE)
async def test_the_same_answers_give_the_same_lines(scenario: str) -> None:
    lines = recorded_lines(f"apiserver/transcripts/{scenario}.jsonl")
    async with server_of("main", scenario) as server:
        replay = Replay(scenario, lines, server, "main")
        assert await replay.run() == []
    placeholders = Placeholders(server.url.rpartition("/")[2], shows_managers="apply" in scenario)

    assert [*new_lines(replay, placeholders)] == lines
    assert placeholders.versions() == INDEX[scenario]["rv_ascending"]


@pytest.mark.real
def test_a_scenario_is_recorded_from_a_real_server(tmp_path: Path) -> None:
    if (folder := assets()) is None:
        pytest.skip("KUBEBUILDER_ASSETS names no folder with etcd and kube-apiserver")
    words = ["--control-plane", str(folder), "--out", str(tmp_path), "--recordings", str(FOLDER)]
    assert main([*words, "no_anonymous"]) == 0

    path = Path("transcripts/no_anonymous.jsonl")
    assert (tmp_path / path).read_bytes() == (FOLDER / path).read_bytes()
    made = json.loads((tmp_path / "index.json").read_text(encoding="utf-8"))
    assert made["scenarios"] == {"no_anonymous": INDEX["no_anonymous"]}


def test_a_scenario_that_requests_do_not_repeat_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--control-plane", str(tmp_path), "--out", str(tmp_path), "--recordings", str(FOLDER)]
    assert main([*words, "too_many_requests"]) == 1
    assert "too_many_requests: not recorded: requests alone do not repeat it" in (
        capsys.readouterr().out
    )
