"""`asched doctor` as a command: flags, output, exit status."""

import json
import os
from collections.abc import AsyncIterator
from pathlib import Path
from unittest.mock import patch

import pytest

from asched.cli.doctor import as_text, flags_of_process, main, split
from asched.ops.doctor.notes import Finding, State
from asched_lab.apiserver.server import ApiServer
from tests.unit.cli.programs import asched

FINDINGS = [
    Finding("reach", State.OK, "it answers"),
    Finding("clock", State.WARNING, "it is late", "wind it up"),
    Finding("scheduler name", State.PROBLEM, "taken", "take another"),
]


def test_one_line_a_finding_and_its_cure_below() -> None:
    assert as_text(FINDINGS).splitlines() == [
        "ok       reach           it answers",
        "warning  clock           it is late",
        "                         -> wind it up",
        "problem  scheduler name  taken",
        "                         -> take another",
        "",
        "1 problem, 1 warning",
    ]
    assert as_text(FINDINGS[:1]).splitlines()[-1] == "no problem found"


def test_our_flags_are_taken_out_and_the_rest_is_runs() -> None:
    words = ["--config=x", "--as", "bob", "-o=json", "--as-group=a", "--as-group", "b", "-v", "2"]
    own, rest = split(words)
    assert rest == ["--config=x", "-v", "2"]
    assert own.output == "json"
    assert (own.user, own.groups) == ("bob", ["a", "b"])


@pytest.mark.parametrize(
    ("words", "flags"),
    [
        (["/opt/asched/bin/asched", "run", "--v=2", ""], ("--v=2",)),
        (["/usr/bin/python3", "/usr/bin/asched", "run", "--config=/x"], ("--config=/x",)),
        (["sh", "-c", "asched run"], ()),
        (["/pause"], ()),
        ([""], ()),
    ],
)
def test_in_a_pod_the_flags_of_its_scheduler_count(
    words: list[str], flags: tuple[str, ...]
) -> None:
    assert flags_of_process(words) == flags


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--config=/nonexistent"], "asched doctor: "),
        (["--confg=x"], "asched doctor: unknown flag: --confg"),
        (["--as"], "asched doctor: argument --as: expected one argument"),
    ],
)
def test_wrong_use_is_two(words: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words) == 2
    assert capsys.readouterr().err.startswith(said)


@pytest.fixture
async def server() -> AsyncIterator[ApiServer]:
    made = ApiServer()
    await made.start()
    try:
        yield made
    finally:
        await made.stop()


async def doctor(home: Path, *words: str) -> tuple[int, str]:
    environment = {"PATH": os.environ["PATH"], "HOME": str(home)}
    with patch.dict(os.environ, environment, clear=True):
        status, output, _ = await asched("doctor", *words)
    return status, output


async def test_a_healthy_cluster_is_zero_and_an_absent_one_is_one(
    server: ApiServer, tmp_path: Path
) -> None:
    status, output = await doctor(tmp_path, f"--master={server.url}", "-o=json")
    assert status == 0
    assert {finding["state"] for finding in json.loads(output)} <= {"ok", "skipped"}
    status, output = await doctor(tmp_path, "--master=http://127.0.0.1:1")
    assert status == 1
    assert output.startswith("problem  reach")
    assert output.rstrip().endswith("1 problem")
