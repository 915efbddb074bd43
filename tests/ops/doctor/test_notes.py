"""What a finding says of what cannot be read, and how lists, times and names are read."""

import json
from datetime import UTC, datetime
from typing import Any, cast

import pytest

from asched.kube.errors import ApiError, ConnectionLost, Forbidden
from asched.kube.transport import Reply
from asched.ops.doctor.notes import (
    CONNECTIONS,
    LIST_MAX,
    READ_TIMEOUT_S,
    Finding,
    Identity,
    Reader,
    State,
    ago,
    seconds_since,
    unreadable,
)


@pytest.mark.parametrize(
    ("error", "text", "cure"),
    [
        (
            Forbidden(403, "no leases for you"),
            "may not read leases: no leases for you",
            "run the doctor as somebody who may read leases",
        ),
        (
            ApiError(500, "etcd is away"),
            "the server answers 500 about leases: etcd is away",
            "look at the API server's log",
        ),
        (ConnectionLost("it broke"), "cannot read leases: it broke", "try again"),
    ],
)
def test_what_cannot_be_read_says_why_and_whose_turn_it_is(
    error: Exception, text: str, cure: str
) -> None:
    assert unreadable("lease", "leases", error) == Finding("lease", State.SKIPPED, text, cure)


@pytest.mark.parametrize(
    ("user", "groups", "account"),
    [
        (
            "system:serviceaccount:shop:asched",
            ("system:serviceaccounts", "system:serviceaccounts:shop", "system:authenticated"),
            ("shop", "asched"),
        ),
        ("jane", ("system:authenticated",), ("", "")),
        ("", ("system:authenticated",), ("", "")),
        ("system:serviceaccount:shop", ("system:authenticated",), ("shop", "")),
        ("my-system:serviceaccount:shop:asched", ("system:authenticated",), ("", "")),
    ],
)
def test_an_account_is_in_the_groups_that_the_server_puts_it_in(
    user: str, groups: tuple[str, ...], account: tuple[str, str]
) -> None:
    """As Kubernetes' serviceaccount.MakeGroupNames, and nobody else has them."""
    assert Identity.named(user) == Identity(user, groups)
    assert Identity.named(user, ("extra",)).groups == ("extra", *groups)
    assert Identity(user).service_account == account


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (-3, "0 s ago"),
        (0.4, "0 s ago"),
        (1.6, "2 s ago"),
        (119.4, "119 s ago"),
        (119.6, "2 min ago"),
        (179, "2 min ago"),
        (180, "3 min ago"),
        (7200, "120 min ago"),
    ],
)
def test_ages_are_told_in_seconds_up_to_two_minutes(seconds: float, words: str) -> None:
    assert ago(seconds) == words


@pytest.mark.parametrize(
    ("text", "age_s"),
    [
        ("2026-01-01T00:00:00Z", 60.0),
        ("2026-01-01T00:00:30.500000Z", 29.5),
        ("2026-01-01T00:02:00Z", -60.0),
        ("2026-01-01T01:00:00+01:00", 60.0),
        ("2026-01-01T00:00:00", None),  # of no zone: nobody knows how old it is
        ("soon", None),
        (5, None),
        ("", None),
        (None, None),
    ],
)
def test_times_that_cannot_be_read_have_no_age(text: Any, age_s: float | None) -> None:
    assert seconds_since(text, datetime(2026, 1, 1, 0, 1, tzinfo=UTC)) == age_s


class Told:
    """A session, and its pool, that notes what it is asked and has one answer."""

    def __init__(self, code: int, answer: Any) -> None:
        self.asked: list[tuple[Any, ...]] = []
        self._reply = Reply(code, json.dumps(answer).encode())

    def pool(self, *given: Any, **named: Any) -> "Told":
        self.asked.append((*given, named))
        return self

    async def request(self, *given: Any, **named: Any) -> Reply:
        self.asked.append((*given, named))
        return self._reply


def a_reader(code: int, answer: Any) -> tuple[Reader, Told]:
    told = Told(code, answer)
    return Reader(cast("Any", told)), told


async def test_lists_are_asked_for_with_a_bound_whatever_else_is_asked() -> None:
    reader, told = a_reader(200, {"items": [{"a": 1}]})

    assert await reader.items("/api/v1/events") == [{"a": 1}]
    assert await reader.items("/api/v1/events?fieldSelector=x") == [{"a": 1}]

    limit, timeout = f"limit={LIST_MAX}", {"timeout_s": READ_TIMEOUT_S}
    assert told.asked == [
        (CONNECTIONS, {"purpose": "doctor"}),
        ("GET", f"/api/v1/events?{limit}", timeout),
        ("GET", f"/api/v1/events?fieldSelector=x&{limit}", timeout),
    ]
    assert await a_reader(200, {})[0].items("/x") == []
    assert await a_reader(200, {"items": None})[0].items("/x") == []


async def test_only_what_is_not_there_is_none() -> None:
    assert await a_reader(200, {"a": 1})[0].get_or_none("/x") == {"a": 1}
    assert await a_reader(404, {})[0].get_or_none("/x") is None
    with pytest.raises(Forbidden):
        await a_reader(403, {})[0].get_or_none("/x")


async def test_a_review_is_posted_as_its_kind() -> None:
    reader, told = a_reader(201, {"status": {"allowed": True}})

    answer = await reader.ask("g/v1", "reviews", "Review", {"user": "u"})

    assert answer == {"status": {"allowed": True}}
    method, path, body, named = told.asked[-1]
    assert (method, path, named) == ("POST", "/apis/g/v1/reviews", {"timeout_s": READ_TIMEOUT_S})
    assert json.loads(body) == {"apiVersion": "g/v1", "kind": "Review", "spec": {"user": "u"}}
