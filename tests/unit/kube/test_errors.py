"""Answers of servers become errors that say what to do."""

import json

import pytest

from asched.kube import errors
from asched.kube.errors import api_error, read_status, retry_after_s
from tests.unit.kube.scripted import status


@pytest.mark.parametrize(
    ("code", "reason", "expected"),
    [
        (401, "Unauthorized", errors.Unauthorized),
        (403, "Forbidden", errors.Forbidden),
        (404, "NotFound", errors.NotFound),
        (409, "Conflict", errors.Conflict),
        (409, "AlreadyExists", errors.AlreadyExists),
        (410, "Expired", errors.Expired),
        (422, "Invalid", errors.ApiError),
        (429, "TooManyRequests", errors.TooManyRequests),
        (500, "InternalError", errors.ServerFailed),
        (504, "Timeout", errors.ServerFailed),
    ],
)
def test_the_class_follows_reason_and_code(code, reason, expected):
    error = api_error(code, json.dumps(status(code, reason, "what happened")).encode())
    assert type(error) is expected
    assert (error.code, error.reason, error.message) == (code, reason, "what happened")


def test_a_plain_text_answer_is_its_own_message():
    error = api_error(429, b"Too many requests,\nplease try again later.\n", "1")
    assert str(error) == "Too many requests, please try again later."
    assert error.retry_after_s == 1.0


def test_an_empty_answer_is_named_by_its_code():
    assert str(api_error(502, b"")) == "HTTP status 502"


def test_a_page_of_html_is_cut():
    assert len(str(api_error(502, b"<html>" * 1000))) == errors.MESSAGE_LENGTH_MAX


def test_the_wait_may_stand_in_the_status():
    body = json.dumps(status(429, "TooManyRequests", "m", details={"retryAfterSeconds": 10}))
    assert api_error(429, body.encode()).retry_after_s == 10.0


@pytest.mark.parametrize(
    ("header", "seconds"),
    [(None, None), ("3", 3.0), ("0", 0.0), ("-1", 0.0), ("Fri, 31 Dec 1999 23:59:59 GMT", None)],
)
def test_only_seconds_count_in_retry_after(header, seconds):
    assert retry_after_s(header) == seconds


def test_an_object_that_is_no_status_is_none():
    assert read_status(b'{"kind":"Pod","status":{"phase":"Running"}}') is None
    assert read_status(b"nonsense") is None


def test_a_version_of_the_future_is_recognised():
    causes = [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}]
    body = status(504, "Timeout", "m", details={"causes": causes, "retryAfterSeconds": 1})
    found = read_status(json.dumps(body).encode())
    assert found is not None
    assert found.is_too_large_version
