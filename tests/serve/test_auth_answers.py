"""What the API server says of people: read, tried again, remembered for a while, and measured."""

import pytest

from asched.serve import auth
from asched.serve.auth import (
    ANSWERS_MAX,
    ATTEMPTS,
    REMEMBERED_BYTES_MAX,
    RETRY_FACTOR,
    RETRY_S,
    TOKEN_HEADER,
    TOKEN_REVIEWS,
    Authenticator,
    Authorizer,
    Credentials,
    Remembered,
    ReviewError,
    UnknownUserError,
    insist,
)
from asched.serve.identity import RequestHeaders, User
from asched.serve.options import AccessOptions
from asched.serve.telemetry.metrics import Metrics
from tests.serve.authority import Authority

NEVER = "nobody is asked"


class World:
    """Time that passes when somebody waits, and an API server with its answers ready, each of which
    takes a second.
    """

    def __init__(self, monkeypatch) -> None:
        self.now_s = 100.0
        self.waits = []
        self.asked = []
        self.answers = []
        monkeypatch.setattr(auth, "monotonic", lambda: self.now_s)
        monkeypatch.setattr(auth.asyncio, "sleep", self.sleep)

    async def sleep(self, seconds):
        self.waits.append(seconds)

    async def post(self, path, review):
        self.asked.append((path, review))
        self.now_s += 1.0
        answer = self.answers.pop(0) if self.answers else NEVER
        assert answer is not NEVER
        if isinstance(answer, Exception):
            raise answer
        return answer


@pytest.fixture
def world(monkeypatch):
    return World(monkeypatch)


def bearer(token):
    return Credentials([("authorization", f"Bearer {token}")])


# --- what is remembered ---------------------------------------------------------------------------


def test_answers_live_for_a_while(world):
    answers = Remembered()
    answers.put("a", 1, 10.0)
    answers.put("never", 2, 0.0)
    answers.put("soon", 3, 0.5)
    assert (answers.get("a"), answers.get("never"), answers.get("soon")) == (1, None, 3)
    world.now_s += 1.0
    assert (answers.get("a"), answers.get("soon")) == (1, None)
    world.now_s += 9.5
    assert answers.get("a") is None
    answers.put("a", 4, 1.0)
    assert answers.get("a") == 4


def test_so_many_answers_are_remembered_and_the_one_given_first_goes(world):
    answers = Remembered()
    for number in range(ANSWERS_MAX):
        answers.put(number, True, 9.0)
    answers.put(0, False, 9.0)
    assert answers.get(1) is True
    answers.put("new", True, 9.0)
    assert (answers.get(0), answers.get(1), answers.get("new")) == (False, None, True)
    assert answers.get(2) is True


async def test_very_long_attributes_are_not_remembered(world):
    judge = Authorizer(AccessOptions(), world.post, Metrics().access)
    for path, times in (("/x", 1), ("/" + "x" * REMEMBERED_BYTES_MAX, 2)):
        world.asked.clear()
        for _ in range(2):
            world.answers = [(201, {"status": {"allowed": True}})]
            assert await judge.may(User("jane"), "get", path)
        assert len(world.asked) == times


# --- tokens ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("headers", "token"),
    [
        ([], ""),
        ([("authorization", "Bearer abc")], "abc"),
        ([("authorization", "  bearer abc ")], "abc"),
        ([("authorization", "Bearer a b")], "a"),
        ([("authorization", "Bearer a b c")], "a"),
        ([("authorization", "Bearer  abc")], ""),
        ([("authorization", "Bearer")], ""),
        ([("authorization", "Basic x"), ("authorization", "Bearer second")], ""),
        ([("authorization", "Bearer a"), ("authorization", "Bearer second")], "a"),
        ([(TOKEN_HEADER, "abc"), ("authorization", "Bearer  own")], "abc"),
        ([("authorization", "Basic abc")], ""),
        ([("x-authorization", "Bearer abc")], ""),
        ([(TOKEN_HEADER, " abc ")], "abc"),
        ([(TOKEN_HEADER, "abc"), ("authorization", "Basic x")], "abc"),
        ([(TOKEN_HEADER, "abc"), ("authorization", "Bearer own")], "own"),
        ([("authorization", "Bearer own"), (TOKEN_HEADER, "abc")], "own"),
    ],
)
def test_a_token_is_a_bearer_s_or_carried_past_a_proxy(headers, token):
    assert Credentials(headers).token == token


@pytest.mark.parametrize(
    ("answer", "user"),
    [
        (
            {
                "status": {
                    "authenticated": True,
                    "user": {
                        "username": "jane",
                        "groups": ["ops"],
                        "uid": "u",
                        "extra": {"scope": ["a", "b"]},
                    },
                }
            },
            User("jane", ("ops", "system:authenticated"), "u", {"scope": ("a", "b")}),
        ),
        (
            {"status": {"authenticated": True, "user": {"username": "x"}}},
            User("x", ("system:authenticated",)),
        ),
        (
            {
                "status": {
                    "authenticated": True,
                    "user": {"username": "x", "groups": None, "extra": None},
                }
            },
            User("x", ("system:authenticated",)),
        ),
        ({"status": {"authenticated": True, "user": None}}, User("", ("system:authenticated",))),
        ({"status": {"authenticated": False, "error": "it expired"}}, "it expired"),
        ({"status": {"error": ""}}, "the token is not known"),
        ({"status": None}, "the token is not known"),
        ({}, "the token is not known"),
    ],
)
async def test_a_review_says_who_the_bearer_is_or_why_nobody(world, answer, user):
    metrics = Metrics().access
    judge = Authenticator(AccessOptions(), world.post, metrics)
    world.answers = [(201, answer)]
    if isinstance(user, str):
        with pytest.raises(UnknownUserError, match=user):
            await judge.user(bearer("abc"))
    else:
        assert await judge.user(bearer("abc")) == user
    assert [(path, review["spec"]) for path, review in world.asked] == [
        (TOKEN_REVIEWS, {"token": "abc"})
    ]
    result = "failure" if isinstance(user, str) else "success"
    assert metrics.authentication.of(result).total == 1.0
    assert metrics.token_duration.of("miss").total == 1.0


async def test_a_certificate_counts_before_a_token(world):
    authority = Authority()
    judge = Authenticator(AccessOptions(), world.post, Metrics().access)
    judge.client_authorities = authority.pem
    certificate, _, _ = authority.issue("jane")
    shown = Credentials([("authorization", "Bearer abc")], certificate)
    assert (await judge.user(shown)).name == "jane"
    judge.proxy = RequestHeaders(authority.pem, (), ("x-remote-user",))
    proxied = Credentials([*shown.headers, ("x-remote-user", "john")], certificate)
    assert (await judge.user(proxied)).name == "john"


# --- rights ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "is_allowed"),
    [
        ({"status": {"allowed": True}}, True),
        ({"status": {"allowed": False}}, False),
        ({"status": {}}, False),
        ({"status": None}, False),
        ({}, False),
    ],
)
async def test_only_a_plain_yes_is_one(world, answer, is_allowed):
    metrics = Metrics().access
    judge = Authorizer(AccessOptions(), world.post, metrics)
    world.answers = [(201, answer)]
    assert await judge.may(User("jane"), "get", "/x") is is_allowed
    ((_, review),) = world.asked
    assert review["status"] == {"allowed": False}
    result = "allowed" if is_allowed else "no-opinion"
    assert metrics.authorizations.of(result).value == 1
    assert metrics.authorization.of(result).total == 1.0
    assert metrics.authz_requests.of("201").value == 1
    assert metrics.authz_duration.of("201").total == 1.0


async def test_what_nobody_could_say_is_measured_as_an_error(world):
    metrics = Metrics().access
    judge = Authorizer(AccessOptions(), world.post, metrics)
    world.answers = [(403, {"message": "you may not ask"})]
    with pytest.raises(ReviewError, match="you may not ask"):
        await judge.may(User("jane"), "get", "/x")
    assert metrics.authorization.of("error").total == 1.0


# --- trying again ---------------------------------------------------------------------------------


@pytest.mark.parametrize("code", [200, 201, 299])
async def test_an_answer_is_taken_at_once(world, code):
    seen = []
    world.answers = [(code, {"a": 1})]
    found = await insist(world.post, "/x", {}, lambda *told: seen.append(told))
    assert found == {"a": 1}
    assert seen == [(str(code), 1.0)]
    assert world.waits == []


@pytest.mark.parametrize("code", [199, 300, 400, 403, 428, 430, 499])
async def test_a_refusal_is_not_asked_for_again(world, code):
    for message, why in (({"message": "no"}, "no"), ({}, f"status {code}")):
        world.answers = [(code, message)]
        with pytest.raises(ReviewError, match=why):
            await insist(world.post, "/x", {}, lambda *_: None)
    assert (len(world.asked), world.waits) == (2, [])


@pytest.mark.parametrize("trouble", [(500, {}), (503, {}), (429, {}), ReviewError("no route")])
async def test_trouble_is_tried_again_with_longer_pauses(world, trouble):
    seen = []
    world.answers = [trouble] * (ATTEMPTS - 1) + [(200, {"a": 1})]
    found = await insist(world.post, "/x", {}, lambda *told: seen.append(told))
    assert found == {"a": 1}
    code = "<error>" if isinstance(trouble, Exception) else str(trouble[0])
    assert seen == [(code, 1.0)] * (ATTEMPTS - 1) + [("200", 1.0)]
    pauses = [RETRY_S * RETRY_FACTOR**number for number in range(ATTEMPTS - 1)]
    assert world.waits == pauses

    world.answers, world.waits = [trouble] * ATTEMPTS, []
    with pytest.raises(ReviewError, match=r"no route|does not answer"):
        await insist(world.post, "/x", {}, lambda *_: None)
    assert world.waits == pauses
