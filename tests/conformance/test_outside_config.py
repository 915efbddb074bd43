import json
from pathlib import Path

import pytest

from tests.conformance.outside_config import UNAVOIDABLE, compare, replay
from tests.support import ROOT, shared_path

RECORD = "outside/config/config.jsonl"
SAMPLE = ROOT / "tests/golden/config-files.jsonl"
HEAD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"


def check(record: Path, least: int) -> None:
    passed, failed, differences = replay(record)
    assert differences == []
    assert failed == 0
    assert passed >= least


def test_every_recorded_document_agrees() -> None:
    check(shared_path(RECORD), 400)


def test_every_document_of_the_sample_agrees() -> None:
    check(SAMPLE, 30)


def test_every_excuse_names_a_recorded_case_and_is_needed() -> None:
    lines = shared_path(RECORD).read_text(encoding="utf-8").splitlines()
    cases = {case["name"]: case for case in map(json.loads, lines)}
    assert all(compare(cases[name]) for name in UNAVOIDABLE)


def test_a_difference_is_seen_and_named() -> None:
    case = {
        "name": "made up",
        "input": HEAD,
        "ok": True,
        "errors": [],
        "effective": {"parallelism": 3},
        "extenders": ["http://a"],
    }
    found = compare(case)
    assert "effective.parallelism is 16, must be 3" in found
    assert "extenders is [], must be ['http://a']" in found


@pytest.mark.parametrize(
    ("field", "is_accepted"),
    [
        ("parallelism: 1", True),
        ("parallelism: 0", False),
        ("parallelism: x", False),
        ("leaderElection: {retryPeriod: 9s}", False),
    ],
)
def test_a_wrong_verdict_is_seen(field: str, is_accepted: bool) -> None:
    case = {"name": "n", "input": f"{HEAD}{field}\n", "ok": is_accepted}
    assert compare(case) == []
    assert compare({**case, "ok": not is_accepted})
