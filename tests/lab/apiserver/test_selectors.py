"""Label and field selectors: what they match and how they complain."""

import pytest

from asched_lab.apiserver.resources import NODES, PODS
from asched_lab.apiserver.selectors import matches_label_selector, selector_of
from asched_lab.apiserver.statuses import ApiError


@pytest.mark.parametrize(
    ("selector", "labels", "matches"),
    [
        ("a=b", {"a": "b"}, True),
        ("a=b", {}, False),
        ("a!=b", {}, True),
        ("a", {"a": ""}, True),
        ("!a", {"a": ""}, False),
        ("a in (b, c)", {"a": "c"}, True),
        ("a notin (b)", {"a": "b"}, False),
        ("a=", {"a": ""}, True),
        ("a=b,c", {"a": "b"}, False),
        ("n>3", {"n": "4"}, True),
        ("n<3", {"n": "x"}, False),
        ("example.com/a=b", {"example.com/a": "b"}, True),
    ],
)
def test_labels(selector: str, labels: dict[str, str], matches: bool) -> None:
    chosen = selector_of(PODS, {"labelSelector": selector})
    assert chosen.matches({"metadata": {"labels": labels}}) is matches


@pytest.mark.parametrize(
    ("selector", "complaint"),
    [
        ("a in b", "found 'b' expected: '('"),
        ("a=b c", "found 'c', expected: ',' or 'end of string'"),
        ("a,", "expected: identifier after ','"),
        ("=a", "found '=', expected: !, identifier, or 'end of string'"),
        ("-a", "name part must consist of"),
        ("a in (b", "expected: ',', or ')'"),
    ],
)
def test_bad_labels(selector: str, complaint: str) -> None:
    with pytest.raises(ApiError) as refused:
        selector_of(PODS, {"labelSelector": selector})
    assert refused.value.code == 400
    assert complaint in refused.value.message


@pytest.mark.parametrize(
    ("selector", "matches"),
    [
        ("spec.nodeName=", True),
        ("spec.nodeName!=", False),
        ("spec.nodeName==n1", False),
        ("status.phase!=Succeeded,status.phase!=Failed", True),
        ("metadata.name=a,spec.hostNetwork=false", True),
        (r"metadata.name=a\,b", False),
    ],
)
def test_fields(selector: str, matches: bool) -> None:
    pod = {"metadata": {"name": "a"}, "spec": {}, "status": {"phase": "Pending"}}
    assert selector_of(PODS, {"fieldSelector": selector}).matches(pod) is matches


def test_a_field_nobody_selects_by_is_refused() -> None:
    with pytest.raises(ApiError, match=r"field label not supported: spec\.nodeName"):
        selector_of(NODES, {"fieldSelector": "spec.nodeName=x"})


@pytest.mark.parametrize(
    ("selector", "matches"),
    [
        (None, False),
        ({}, True),
        ({"matchLabels": {"a": "b"}}, True),
        ({"matchExpressions": [{"key": "a", "operator": "NotIn", "values": ["b"]}]}, False),
        ({"matchExpressions": [{"key": "c", "operator": "NotIn", "values": ["b"]}]}, True),
        ({"matchExpressions": [{"key": "a", "operator": "Exists"}]}, True),
        ({"matchExpressions": [{"key": "a", "operator": "DoesNotExist"}]}, False),
    ],
)
def test_selector_objects(selector: dict | None, matches: bool) -> None:
    assert matches_label_selector(selector, {"a": "b"}) is matches
