"""Who asks, by certificates and a proxy's headers: each rule alone."""

from datetime import UTC, datetime, timedelta

import pytest
from cryptography.x509.oid import ExtendedKeyUsageOID

from asched.serve import identity
from asched.serve.identity import (
    RequestHeaders,
    User,
    by_certificate,
    by_proxy,
    common_name,
    is_signed_by,
    known,
)
from tests.serve.authority import Authority

OURS, THEIRS = Authority("ours"), Authority("theirs")
FRONT = OURS.issue("front")[0]
ALL = "system:authenticated"


def test_somebody_known_is_in_the_group_of_all_that_are_known() -> None:
    assert known("jane", ["b", "a", "b", ALL]) == User("jane", ("b", "a", ALL))
    assert known("jane", [], "u", {"k": ("v",)}) == User("jane", (ALL,), "u", {"k": ("v",)})
    same = {known("jane", ["a"], "u", {"k": ("v",)}), known("jane", ["a"], "u", {"k": ("v",)})}
    assert len(same) == 1


@pytest.mark.parametrize(
    ("authorities", "is_signed"),
    [
        (OURS.pem, True),
        (THEIRS.pem, False),
        (THEIRS.pem + OURS.pem, True),
        (OURS.pem + THEIRS.pem, True),
        ("", False),
        ("no certificates here", False),
    ],
)
def test_one_of_the_authorities_has_to_have_issued_it(authorities: str, is_signed: bool) -> None:
    assert is_signed_by(FRONT, authorities) is is_signed
    assert (by_certificate(FRONT, authorities) is not None) is is_signed


@pytest.mark.parametrize(
    ("usage", "is_good"),
    [
        (ExtendedKeyUsageOID.CLIENT_AUTH, True),
        (ExtendedKeyUsageOID.ANY_EXTENDED_KEY_USAGE, True),
        (ExtendedKeyUsageOID.SERVER_AUTH, False),
    ],
)
def test_it_has_to_be_one_for_clients(usage, is_good: bool) -> None:
    assert is_signed_by(OURS.issue("jane", usage=usage)[0], OURS.pem) is is_good
    assert not is_signed_by(OURS.certificate, OURS.pem), "it names no use at all"


@pytest.mark.parametrize(
    ("hours", "is_valid"), [(-49, False), (-47, True), (0, True), (23, True), (25, False)]
)
def test_it_has_to_be_valid_now(hours: int, is_valid: bool, monkeypatch) -> None:
    """It is from two days ago until tomorrow."""

    class Clock:
        @staticmethod
        def now(zone):
            assert zone is UTC
            return datetime.now(UTC) + timedelta(hours=hours)

    monkeypatch.setattr(identity, "datetime", Clock)
    assert is_signed_by(FRONT, OURS.pem) is is_valid


def test_a_subject_is_a_user_and_its_organizations_are_groups() -> None:
    certificate = OURS.issue("jane", groups=["dev", "ops"])[0]
    assert by_certificate(certificate, OURS.pem) == User("jane", ("dev", "ops", ALL))
    assert common_name(certificate) == "jane"
    assert by_certificate(None, OURS.pem) is None


RULES = RequestHeaders(
    OURS.pem,
    (),
    ("x-user", "x-other-user"),
    ("x-group", "x-more-groups"),
    ("x-uid",),
    ("X-Extra-", "x-also-"),
)


@pytest.mark.parametrize(
    ("headers", "user"),
    [
        ([], None),
        ([("x-user", "")], None),
        ([("x-group", "ops")], None),
        ([("x-user", "jane")], User("jane", (ALL,))),
        ([("x-user", ""), ("x-user", "jane"), ("x-user", "john")], User("jane", (ALL,))),
        ([("x-other-user", "john")], User("john", (ALL,))),
        ([("x-other-user", "john"), ("x-user", "jane")], User("jane", (ALL,))),
        (
            [("x-user", "jane"), ("x-more-groups", "b"), ("x-group", "a"), ("other", "c")],
            User("jane", ("b", "a", ALL)),
        ),
        ([("x-user", "jane"), ("x-uid", ""), ("x-uid", "u")], User("jane", (ALL,), "u")),
        (
            [
                ("x-user", "jane"),
                ("x-extra-scopes", "a"),
                ("x-also-k%2fv", "c"),
                ("x-extra-scopes", "b"),
                ("x-extr", "no"),
            ],
            User("jane", (ALL,), "", {"scopes": ("a", "b"), "k/v": ("c",)}),
        ),
    ],
)
def test_a_proxy_names_the_user(headers: list[tuple[str, str]], user: User | None) -> None:
    assert by_proxy(FRONT, headers, RULES) == user
    assert by_proxy(None, headers, RULES) is None
    assert by_proxy(THEIRS.issue("front")[0], headers, RULES) is None


def test_a_proxy_may_have_to_have_a_certain_name() -> None:
    headers = [("x-user", "jane")]
    for names, is_trusted in (
        ((), True),
        (("front",), True),
        (("a", "front"), True),
        (("a",), False),
    ):
        rules = RequestHeaders(OURS.pem, names, ("x-user",))
        assert (by_proxy(FRONT, headers, rules) is not None) is is_trusted
