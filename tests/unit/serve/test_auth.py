"""Who somebody is and what they may see: certificates, proxies, tokens, and what is remembered."""

import pytest
from cryptography.x509.oid import ExtendedKeyUsageOID

from asched.serve import auth
from asched.serve.auth import (
    ACCESS_REVIEWS,
    ANONYMOUS,
    Authenticator,
    Authorizer,
    RequestCredentials,
    RequestHeaders,
    UnknownUserError,
    User,
)
from asched.serve.options import AccessOptions, AuthenticationOptions, AuthorizationOptions
from asched.serve.telemetry.metrics import Metrics
from tests.unit.serve.authority import Authority
from tests.unit.serve.world import review


class Reviewer:
    """Counts what it is asked; fails when told to."""

    def __init__(self):
        self.asked = []
        self.answers = []

    async def __call__(self, path, asked):
        self.asked.append((path, asked))
        if self.answers:
            answer = self.answers.pop(0)
            if isinstance(answer, Exception):
                raise answer
            return answer
        return await review(path, asked)


@pytest.fixture
def reviewer(monkeypatch):
    monkeypatch.setattr(auth, "RETRY_S", 0.0)
    return Reviewer()


def an_authenticator(post, **flags):
    options = AccessOptions(authentication=AuthenticationOptions(**flags))
    return Authenticator(options, post, Metrics().access)


def an_authorizer(post, **flags):
    options = AccessOptions(authorization=AuthorizationOptions(**flags))
    return Authorizer(options, post, Metrics().access)


def bearer(token):
    return RequestCredentials([("authorization", f"Bearer {token}")])


# --- certificates ---------------------------------------------------------------------------------


async def test_a_client_certificate_names_user_and_groups():
    authority = Authority()
    judge = an_authenticator(None)
    judge.client_authorities = authority.pem
    certificate, _, _ = authority.issue("jane", groups=["ops", "system:masters"])

    user = await judge.user(RequestCredentials((), certificate))

    assert user == User("jane", ("ops", "system:masters", "system:authenticated"))


@pytest.mark.parametrize("flaw", ["expired", "another authority's", "for servers"])
async def test_a_certificate_with_a_flaw_makes_nobody_known(flaw):
    authority = Authority()
    judge = an_authenticator(None)
    judge.client_authorities = authority.pem
    issuer = Authority() if flaw.startswith("another") else authority
    usage = ExtendedKeyUsageOID.SERVER_AUTH if flaw == "for servers" else None
    options = {"usage": usage} if usage else {}
    days = -1 if flaw == "expired" else 1
    certificate, _, _ = issuer.issue("jane", days=days, **options)

    assert await judge.user(RequestCredentials((), certificate)) == ANONYMOUS


async def test_a_proxy_speaks_for_its_users_if_its_certificate_allows_it():
    authority = Authority()
    judge = an_authenticator(None)
    judge.proxy = RequestHeaders(
        authority.pem, ("front",), ("x-remote-user",), ("x-remote-group",), (), ("x-remote-extra-",)
    )
    headers = [
        ("x-remote-user", "jane"),
        ("x-remote-group", "ops"),
        ("x-remote-group", "dev"),
        ("x-remote-extra-why%2Fnot", "so"),
    ]
    front, _, _ = authority.issue("front")
    other, _, _ = authority.issue("other")
    stranger, _, _ = Authority().issue("front")

    user = await judge.user(RequestCredentials(headers, front))

    assert user.name == "jane"
    assert user.groups == ("ops", "dev", "system:authenticated")
    assert user.extra == {"why/not": ("so",)}
    for certificate in (other, stranger, None):
        assert await judge.user(RequestCredentials(headers, certificate)) == ANONYMOUS


# --- tokens ---------------------------------------------------------------------------------------


async def test_an_unknown_token_is_remembered_too(reviewer):
    judge = an_authenticator(reviewer)
    for _ in range(2):
        with pytest.raises(UnknownUserError):
            await judge.user(bearer("who-is-this"))

    assert len(reviewer.asked) == 1


# --- rights ---------------------------------------------------------------------------------------


async def test_the_review_tells_everything_known_of_the_user(reviewer):
    judge = an_authorizer(reviewer)
    user = User("jane", ("ops",), "u-1", {"scope": ("a", "b")})

    assert not await judge.may(user, "get", "/configz")

    (path, asked) = reviewer.asked[0]
    assert path == ACCESS_REVIEWS
    assert asked["spec"] == {
        "nonResourceAttributes": {"path": "/configz", "verb": "get"},
        "user": "jane",
        "groups": ["ops"],
        "uid": "u-1",
        "extra": {"scope": ["a", "b"]},
    }


async def test_answers_are_remembered_by_user_verb_and_path(reviewer):
    judge = an_authorizer(reviewer)
    jane, john = User("jane", ("system:monitoring",)), User("john")

    assert [await judge.may(jane, "get", "/metrics") for _ in range(2)] == [True, True]
    assert not await judge.may(jane, "delete", "/metrics")
    assert not await judge.may(john, "get", "/metrics")

    assert len(reviewer.asked) == 3


async def test_refusals_and_grants_are_remembered_for_times_of_their_own(reviewer):
    judge = an_authorizer(reviewer, authorization_webhook_cache_unauthorized_ttl=0.0)
    john = User("john")
    for _ in range(2):
        assert not await judge.may(john, "get", "/configz")

    assert len(reviewer.asked) == 2


@pytest.mark.parametrize(
    ("path", "is_open"),
    [
        ("/healthz", True),
        ("/healthz/", False),
        ("/healthz/ping", False),
        ("/open", True),
        ("/open/", True),
        ("/opened", False),
        ("/open/deep/below", True),
    ],
)
async def test_open_paths_are_exact_unless_they_end_in_a_star(path, is_open):
    judge = an_authorizer(None, authorization_always_allow_paths=("/healthz", "/open", "/open/*"))

    assert await judge.may(ANONYMOUS, "get", path) is is_open
