from asched.core.config.problem import (
    duplicate,
    forbidden,
    invalid,
    not_supported,
    path_text,
    quoted,
    required,
)


def test_each_kind_of_error_has_its_form() -> None:
    assert invalid(("a",), 1, "bad").text == "a: Invalid value: 1: bad"
    assert invalid(("a",), "x", "bad").text == 'a: Invalid value: "x": bad'
    assert invalid(("a",), None, "bad").text == "a: Invalid value: null: bad"
    assert invalid(("a",), ["x"], "bad").text == 'a: Invalid value: ["x"]: bad'
    assert required(("a",)).text == "a: Required value"
    assert required(("a",), "why").text == "a: Required value: why"
    assert forbidden((), "why").text == "Forbidden: why"
    assert duplicate(("a",), "b").text == 'a: Duplicate value: "b"'
    wanted = 'a: Unsupported value: "x": supported values: "b", "c"'
    assert not_supported(("a",), "x", ("b", "c")).text == wanted


def test_invisible_letters_are_shown_by_their_number() -> None:
    assert quoted("<\n\x01\x7f\u200b\U0010ffff\\") == r'"<\n\u0001\u007f\u200b\udbff\udfff\\"'
    assert quoted('a"é') == '"a\\"é"'


def test_a_path_has_the_form_of_kubernetes() -> None:
    assert path_text(("profiles", 0, "plugins", "score")) == "profiles[0].plugins.score"
