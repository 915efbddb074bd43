"""The three kinds of patch, as functions of documents."""

import copy

import pytest

from asched_lab.apiserver.patches import PatchError, apply_json_patch, merge, strategic


def test_merge_replaces_lists_and_removes_by_null() -> None:
    before = {"a": [1, 2], "b": {"c": 1, "d": 2}}
    kept = copy.deepcopy(before)
    assert merge(before, {"a": [3], "b": {"c": None, "e": 5}}) == {"a": [3], "b": {"d": 2, "e": 5}}
    assert before == kept


@pytest.mark.parametrize(
    ("operation", "expected"),
    [
        ({"op": "add", "path": "/l/-", "value": 3}, {"l": [1, 2, 3], "o": {"a/b": 1}}),
        ({"op": "add", "path": "/l/0", "value": 3}, {"l": [3, 1, 2], "o": {"a/b": 1}}),
        ({"op": "remove", "path": "/o/a~1b"}, {"l": [1, 2], "o": {}}),
        ({"op": "replace", "path": "/l/1", "value": 9}, {"l": [1, 9], "o": {"a/b": 1}}),
        ({"op": "move", "from": "/l/0", "path": "/x"}, {"l": [2], "o": {"a/b": 1}, "x": 1}),
        (
            {"op": "copy", "from": "/o", "path": "/x"},
            {"l": [1, 2], "o": {"a/b": 1}, "x": {"a/b": 1}},
        ),
    ],
)
def test_json_patch(operation: dict, expected: dict) -> None:
    document = {"l": [1, 2], "o": {"a/b": 1}}
    assert apply_json_patch(document, [operation]) == expected
    assert document == {"l": [1, 2], "o": {"a/b": 1}}


@pytest.mark.parametrize(
    "operation",
    [
        {"op": "test", "path": "/a", "value": 2},
        {"op": "remove", "path": "/b"},
        {"op": "odd", "path": "/a"},
        {"op": "add", "path": "/l/9", "value": 1},
        {"op": "add", "path": "no-slash", "value": 1},
    ],
)
def test_json_patch_refusals(operation: dict) -> None:
    with pytest.raises(PatchError):
        apply_json_patch({"a": 1, "l": []}, [operation])


def conditions(*types: str) -> dict:
    return {"status": {"conditions": [{"type": kind, "status": "False"} for kind in types]}}


def order(document: dict) -> list[str]:
    return [condition["type"] for condition in document["status"]["conditions"]]


@pytest.mark.parametrize(
    ("before", "patch", "after"),
    [
        (("A",), conditions("B"), ["B", "A"]),
        (("A", "B"), conditions("B"), ["A", "B"]),
        (("A", "B", "C"), conditions("C", "A"), ["B", "C", "A"]),
    ],
)
def test_strategic_merge_orders_lists(before: tuple, patch: dict, after: list[str]) -> None:
    assert order(strategic(conditions(*before), patch, "Pod")) == after


def test_strategic_merge_merges_by_key_and_deletes_by_directive() -> None:
    pod = {"spec": {"containers": [{"name": "a", "image": "x", "tty": True}, {"name": "b"}]}}
    patch = {
        "spec": {"containers": [{"name": "a", "image": "y"}, {"name": "b", "$patch": "delete"}]}
    }
    assert strategic(pod, patch, "Pod") == {
        "spec": {"containers": [{"name": "a", "image": "y", "tty": True}]}
    }


def test_strategic_merge_replaces_what_has_no_key() -> None:
    pod = {"spec": {"tolerations": [{"key": "a"}]}}
    patch = {"spec": {"tolerations": [{"key": "b"}]}}
    assert strategic(pod, patch, "Pod") == patch


def test_strategic_merge_of_sets() -> None:
    pod = {"metadata": {"finalizers": ["a/b", "c/d"]}}
    added = strategic(pod, {"metadata": {"finalizers": ["e/f"]}}, "Pod")
    assert sorted(added["metadata"]["finalizers"]) == ["a/b", "c/d", "e/f"]
    patch = {"metadata": {"$deleteFromPrimitiveList/finalizers": ["a/b"]}}
    assert strategic(pod, patch, "Pod") == {"metadata": {"finalizers": ["c/d"]}}


def test_strategic_merge_refuses_a_wrong_type() -> None:
    with pytest.raises(PatchError, match="cannot restore slice from string"):
        strategic(conditions("A"), {"status": {"conditions": "x"}}, "Pod")
