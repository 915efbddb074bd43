"""Lines out of pieces, versions that must grow, failures in words."""

import random

import pytest

from asched.core.model.kinds import POD, RESOURCE_CLAIM
from asched.core.model.meta import runs_backwards
from asched.kube.errors import ConnectFailed, Forbidden, NotFound, Unauthorized
from asched.kube.reading import LineSplitter, explain_failure


@pytest.mark.parametrize("seed", range(30))
def test_any_cut_gives_the_same_lines(seed):
    rng = random.Random(seed)
    lines = [bytes(rng.choices(b"abc{}", k=rng.randrange(12))) for _ in range(20)]
    wire = b"\n".join(lines) + b"\n" + b"unfinished"
    splitter = LineSplitter()
    found = []
    while wire:
        cut = rng.randrange(1, 15)
        found += splitter.feed(wire[:cut])
        wire = wire[cut:]
    assert found == lines
    assert splitter.feed(b"\n") == [b"unfinished"]


@pytest.mark.parametrize(
    ("before", "after", "backwards"),
    [
        ("", "5", False),
        ("5", "", False),
        ("5", "5", False),
        ("9", "10", False),
        ("10", "9", True),
        ("100", "101", False),
        ("101", "100", True),
        ("abc", "abb", False),
        ("abc", "10", False),
        ("b1", "11", False),
        ("11", "1-", False),
        ("101", "1-", False),
    ],
)
def test_only_numbers_can_run_backwards(before, after, backwards):
    assert runs_backwards(before, after) is backwards


def test_what_is_forbidden_is_named_with_verb_and_resource():
    text = explain_failure(POD, Forbidden(403, "User x cannot list", "Forbidden"))
    assert 'grant the verbs list and watch on resource "pods" in API group ""' in text
    assert "User x cannot list" in text
    text = explain_failure(RESOURCE_CLAIM, Forbidden(403, "no", "Forbidden"))
    assert 'resource "resourceclaims" in API group "resource.k8s.io"' in text


def test_every_failure_has_a_line_of_its_own():
    texts = {
        explain_failure(POD, error)
        for error in (
            NotFound(404, "x"),
            Unauthorized(401, "x"),
            ConnectFailed("cannot reach y"),
            Forbidden(403, "x"),
        )
    }
    assert len(texts) == 4
    assert any("the credentials are not accepted (x)" in text for text in texts)
    assert all("pods" in text for text in texts)
