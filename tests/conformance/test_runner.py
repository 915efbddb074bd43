"""The command that replays recordings: what it does with a case that it cannot judge."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.conformance.__main__ import main

NODE = {"metadata": {"name": "n1"}, "status": {"allocatable": {"cpu": "4", "pods": "10"}}}
POD = {
    "metadata": {"name": "p", "namespace": "default", "uid": "p"},
    "spec": {"schedulerName": "default-scheduler", "containers": [{"name": "c"}]},
}


def a_case(name: str, expect: dict[str, Any], tags: tuple[str, ...] = ()) -> dict[str, Any]:
    objects = {"nodes": [NODE]}
    case = {"name": name, "family": "f", "config": None, "objects": objects, "pod": POD}
    return {**case, "expect": expect, "tags": tags}


#: An expectation without fields is one that no replay can be compared with.
UNREADABLE: dict[str, Any] = {}
WRONG: dict[str, Any] = {"error": "something else"}


def replayed(
    folder: Path, capsys: pytest.CaptureFixture[str], *records: dict[str, Any]
) -> tuple[int, dict[str, Any]]:
    path = folder / "f.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    status = main([str(path), "--json"])
    return status, json.loads(capsys.readouterr().out)["families"]["f"]


def test_an_exception_is_a_difference_of_its_case_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status, family = replayed(
        tmp_path, capsys, a_case("one", UNREADABLE), a_case("two", WRONG), a_case("three", WRONG)
    )
    assert status == 1
    assert list(family["differences"]) == ["one", "two", "three"]
    assert family["differences"]["one"][0].startswith("ended by KeyError")


def test_a_difference_that_its_tag_declares_does_not_fail_the_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    declared = a_case("one", WRONG, ("quirk:rule-without-selector",))
    status, family = replayed(tmp_path, capsys, declared)
    assert (status, family["declared"], family["agree"]) == (0, 1, 0)

    status, family = replayed(tmp_path, capsys, {**declared, "tags": ["several-outcomes"]})
    assert (status, family["declared"], family["differ"]) == (1, 0, 1)


def test_an_exception_is_no_declared_difference(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status, family = replayed(
        tmp_path, capsys, a_case("one", UNREADABLE, ("quirk:rule-without-selector",))
    )
    assert (status, family["differ"]) == (1, 1)
