"""Types as Go's messages print them."""

import pytest

from asched.core.config.schema import ListOf, MapOf, Scalar, type_name


def test_scalars_of_their_own_name_are_texts() -> None:
    assert Scalar.STRING.is_text
    assert Scalar.STRATEGY_TYPE.is_text
    assert not Scalar.BOOL.is_text


@pytest.mark.parametrize(
    ("declared", "name"),
    [
        (Scalar.STRING, "string"),
        (ListOf(Scalar.STRING), "[]string"),
        (ListOf(ListOf(Scalar.STRING)), "[][]string"),
        (MapOf(Scalar.STRING), "map[string]string"),
        (MapOf(ListOf(Scalar.STRING)), "map[string][]string"),
    ],
)
def test_types_are_printed_as_go_does(declared: object, name: str) -> None:
    assert type_name(declared) == name  # type: ignore[arg-type]


def test_pointers_are_printed_without_their_star() -> None:
    assert all(not type_name(scalar).startswith("*") for scalar in Scalar)
