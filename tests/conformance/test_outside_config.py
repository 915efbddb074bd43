import pytest

from tests.conformance.outside_config import UNAVOIDABLE, compare, replay
from tests.support import RECORDINGS, recorded_lines

RECORD = "outside/config/config.jsonl.gz"
HEAD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"


def test_every_recorded_document_agrees() -> None:
    passed, failed, differences = replay(RECORDINGS / RECORD)
    assert differences == []
    assert failed == 0
    assert passed >= 400


def test_every_excuse_names_a_recorded_case_and_is_needed() -> None:
    cases = {case["name"]: case for case in recorded_lines(RECORD)}
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
