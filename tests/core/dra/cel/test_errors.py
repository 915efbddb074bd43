"""Errors name the expression and the place."""

from asched.core.dra.cel.errors import SHOWN_MAX, CelSyntaxError


def test_the_place_is_a_line_and_a_column() -> None:
    assert str(CelSyntaxError("a + $", 4, "oops")) == (
        "compilation failed: 'a + $', line 1 column 5: oops"
    )
    assert "line 2 column 1: oops" in str(CelSyntaxError("a\n$", 2, "oops"))
    assert "line 3 column 2: oops" in str(CelSyntaxError("a\n\nb$", 4, "oops"))
    assert CelSyntaxError("a", 1, "x").position == 1


def test_a_long_expression_is_shown_in_part() -> None:
    whole, longer = "a" * SHOWN_MAX, "a" * (SHOWN_MAX + 1)
    assert f"{whole!r}," in str(CelSyntaxError(whole, 0, "x"))
    assert f"'{whole}...'," in str(CelSyntaxError(longer, 0, "x"))
