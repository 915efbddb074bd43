import json
from collections import Counter

from tests.conformance.outside_config import UNAVOIDABLE, compare, replay
from tests.support import shared_path

RECORD = "outside/config/config.jsonl"


def test_every_recorded_document_agrees() -> None:
    passed, failed, differences = replay(shared_path(RECORD))
    assert differences == []
    assert failed == 0
    assert passed > 400


def test_every_excuse_names_a_recorded_case_and_is_needed() -> None:
    lines = shared_path(RECORD).read_text(encoding="utf-8").splitlines()
    cases = {case["name"]: case for case in map(json.loads, lines)}
    assert all(compare(cases[name]) for name in UNAVOIDABLE)


def test_the_record_holds_every_stage() -> None:
    lines = shared_path(RECORD).read_text(encoding="utf-8").splitlines()
    stages = Counter(case.get("stage") for case in map(json.loads, lines))
    assert set(stages) == {None, "load", "validate", "construct", "elect"}


def test_a_difference_is_seen_and_named() -> None:
    case = {
        "name": "made up",
        "input": "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n",
        "ok": True,
        "errors": [],
        "effective": {"parallelism": 3},
        "extenders": ["http://a"],
    }
    found = compare(case)
    assert "effective.parallelism is 16, must be 3" in found
    assert "extenders is [], must be ['http://a']" in found
    wrong = {**case, "ok": False, "stage": "validate", "errors": ["x"]}
    assert compare(wrong)[0] == "accepted, must fail: ['x']"


def test_a_refusal_must_come_from_the_same_stage_with_the_same_texts() -> None:
    head = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
    case = {"name": "n", "input": f"{head}parallelism: 0\n", "ok": False, "errors": ["other"]}
    assert len(compare({**case, "stage": "load"})) == 2
    assert len(compare({**case, "stage": "validate"})) == 1
    assert compare({**case, "stage": "validate", "errors": ["json: whatever"]}) == []
