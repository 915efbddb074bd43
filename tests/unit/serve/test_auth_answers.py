"""What the API server says of people: read, tried again, remembered for a while, and measured."""

import pytest

from asched.names import TOKEN_HEADER
from asched.serve.auth import RequestCredentials


def bearer(token):
    return RequestCredentials([("authorization", f"Bearer {token}")])


# --- what is remembered ---------------------------------------------------------------------------


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
    assert RequestCredentials(headers).token == token


# --- rights ---------------------------------------------------------------------------------------


# --- trying again ---------------------------------------------------------------------------------
