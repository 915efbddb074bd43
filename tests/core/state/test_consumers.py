"""Pods that consume a request: by which annotation, and which of them have a place."""

import pytest

from asched.core.state.consumers import CONSUMES, CONSUMES_OLD, Consumers, request_of
from asched.core.state.pods import PodInfo
from tests.builders import a_cluster, a_pod, pending


def info(name: str, request: str = "job", key: str = CONSUMES) -> PodInfo:
    annotations = {key: request} if request else {"other": "x"}
    return pending(a_cluster(), a_pod(name, "team").metadata(annotations=annotations))


@pytest.mark.parametrize(
    ("annotations", "request_"),
    [
        (None, ""),
        ({"other": "x"}, ""),
        ({CONSUMES: "job"}, "team/job"),
        ({CONSUMES_OLD: "job"}, "team/job"),
        ({CONSUMES: "new", CONSUMES_OLD: "old"}, "team/new"),
        ({CONSUMES: "", CONSUMES_OLD: "old"}, "team/old"),
        ({CONSUMES: ""}, ""),
    ],
)
def test_an_annotation_names_the_request(annotations: dict[str, str], request_: str) -> None:
    assert request_of(a_pod("a", "team").metadata(annotations=annotations).build()) == request_


def test_placed_pods_stand_under_their_request() -> None:
    consumers = Consumers()
    one, two, other = info("one"), info("two", key=CONSUMES_OLD), info("other", "another")
    for placed in (one, two, other, info("none", "")):
        consumers.place(placed)
    assert dict(consumers.of("team/job")) == {"uid-one": one, "uid-two": two}
    assert dict(consumers.of("team/nobody")) == {}
    assert consumers.request_of("uid-other") == "team/another"
    assert consumers.request_of("uid-none") == ""
    assert list(consumers.moved) == ["uid-one", "uid-two", "uid-other"]
