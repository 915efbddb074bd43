"""What a reflector knows of its own hearing, word by word."""

import pytest

from asched.core.model.kinds import NODE
from asched.core.model.meta import ObjectMeta
from asched.core.model.node import Node
from asched.kube.doubt import Doubt
from asched.kube.turns import Relist


class Asked:
    """A server whose cache is at a version."""

    def __init__(self, cached=""):
        self.version, self.checks = cached, 0

    async def cached(self, _kind):
        return self.version

    async def check(self):
        self.checks += 1


def a_doubt(cached=""):
    now = iter(range(1, 99))
    return Doubt(NODE, Asked(cached), lambda: float(next(now)))


def objects(*versions):
    return [Node(metadata=ObjectMeta(name="n", resource_version=str(one))) for one in versions]


def test_nothing_is_known_at_first_and_nothing_is_doubted():
    doubt = a_doubt()
    assert (doubt.heard_s, doubt.silent_count, doubt.is_open) == (None, 0, False)


def test_a_stream_that_speaks_and_a_list_that_comes_are_signs_of_life():
    doubt = a_doubt()
    doubt.fell_silent("says nothing")
    assert (doubt.heard_s, doubt.silent_count, doubt.is_open) == (None, 1, True)
    doubt.listening()
    assert (doubt.heard_s, doubt.is_open) == (1.0, True), "a list says nothing of a stream"
    doubt.spoke()
    assert (doubt.heard_s, doubt.is_open) == (2.0, False)
    doubt.fell_silent("says nothing")
    doubt.listed(objects(3, 4))
    assert (doubt.heard_s, doubt.is_open) == (3.0, False)


@pytest.mark.parametrize(
    ("cached", "was_probe", "is_open", "heard", "checks"),
    [
        ("10", False, False, True, 0),
        ("8", False, False, True, 1),
        ("12", False, True, False, 0),
        ("10", True, False, True, 0),
    ],
)
async def test_a_stream_without_a_line_is_compared_with_the_cache(
    cached, was_probe, is_open, heard, checks
):
    doubt = a_doubt(cached)
    await doubt.compare("10", was_probe=was_probe)
    assert (doubt.is_open, doubt.heard_s is not None) == (is_open, heard)
    assert doubt._history.checks == checks


@pytest.mark.parametrize(("newest", "kept_back"), [(10, False), (12, True)])
async def test_a_list_tells_whether_a_silent_probe_kept_something_back(newest, kept_back):
    doubt = a_doubt("12")
    with pytest.raises(Relist, match="say nothing after 10, the server knows of 12"):
        await doubt.compare("10", was_probe=True)
    doubt.listening()
    assert doubt.heard_s is None, "suspected"
    doubt.listed(objects(4, newest))
    assert (doubt.silent_count == 1) is doubt.is_open is kept_back
    assert (doubt.heard_s is None) is kept_back
    doubt.listening()
    assert (doubt.heard_s is None) is kept_back, "a list is no proof of a stream"
    doubt.listed(objects(4))
    assert doubt.heard_s is not None
