"""The few protobuf bodies that are read."""

import base64

import pytest

from asched_lab.apiserver.protobuf import MAGIC, ProtobufError, load

#: What kubectl 1.32 sends for `create namespace ktmp`.
NAMESPACE = "azhzAAoPCgJ2MRIJTmFtZXNwYWNlEhwKFAoEa3RtcBIAGgAiACoAMgA4AEIAEgAaAgoAGgAiAA=="
#: What it sends for `auth can-i create pods`.
REVIEW = (
    "azhzAAoyChdhdXRob3JpemF0aW9uLms4cy5pby92MRIXU2VsZlN1YmplY3RBY2Nlc3NSZXZpZXcSOQoQCgASABoAIgAq"
    "ADIAOABCABIbChkKAXQSBmNyZWF0ZRoAIgAqBHBvZHMyADoAGggIABIAGgAgABoAIgA="
)


def test_a_namespace() -> None:
    assert load(base64.b64decode(NAMESPACE)) == {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": "ktmp"},
    }


def test_a_review() -> None:
    review = load(base64.b64decode(REVIEW))
    assert review["kind"] == "SelfSubjectAccessReview"
    assert review["spec"] == {
        "resourceAttributes": {"namespace": "t", "verb": "create", "resource": "pods"}
    }


@pytest.mark.parametrize("cut", [3, 5, 20, 40])
def test_damaged_bodies_are_refused(cut: int) -> None:
    with pytest.raises(ProtobufError):
        load(base64.b64decode(NAMESPACE)[:cut])


def test_unknown_kinds_are_refused() -> None:
    with pytest.raises(ProtobufError, match="kind Widget cannot be read"):
        load(MAGIC + b"\x0a\x0c\x0a\x02v1\x12\x06Widget")
