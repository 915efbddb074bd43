from asched.core.config.problem import (
    NamedString,
    Problem,
    Severity,
    StartStage,
    as_upstream,
    duplicate,
    forbidden,
    go_json,
    invalid,
    not_supported,
    quoted,
    required,
)


def test_each_kind_of_fault_has_its_words() -> None:
    assert invalid(("a",), 1, "bad").text == "a: Invalid value: 1: bad"
    assert invalid(("a",), "x", "bad").text == 'a: Invalid value: "x": bad'
    assert invalid(("a",), None, "bad").text == "a: Invalid value: null: bad"
    assert invalid(("a",), ["x<"], "bad").text == 'a: Invalid value: ["x\\u003c"]: bad'
    assert required(("a",)).text == "a: Required value"
    assert required(("a",), "why").text == "a: Required value: why"
    assert forbidden((), "why").text == "Forbidden: why"
    assert duplicate(("a",), {}).text == "a: Duplicate value: {}"
    wanted = 'a: Unsupported value: "x": supported values: "b", "c"'
    assert not_supported(("a",), "x", ("b", "c")).text == wanted
    assert not_supported(("a",), "<\a", ()).text.startswith(
        'a: Unsupported value: "\\u003c\\u0007"'
    )
    assert invalid(("a",), NamedString("<"), "bad").text == 'a: Invalid value: "\\u003c": bad'
    assert quoted("<\a\n\x01\x7f\u200b\U0010ffff\\") == (r'"<\a\n\x01\x7f\u200b\U0010ffff\\"')
    assert quoted('a"é') == '"a\\"é"'
    assert go_json({"b": 1, "a": None}) == '{"b":1,"a":null}'


def _load(text: str, severity: Severity = Severity.STRICT, nested: bool = False) -> Problem:
    return Problem(StartStage.LOAD, text, severity=severity, nested=nested)


def test_a_wrong_type_hides_everything_else() -> None:
    found = [_load("a"), _load("type", Severity.SAVED), _load("nested", Severity.ABORT, True)]
    assert as_upstream(found) == ("type",)


def test_a_broken_duration_beats_a_wrong_type_before_it() -> None:
    found = [_load("type", Severity.SAVED), _load("time", Severity.ABORT)]
    assert as_upstream(found) == ("time",)


def test_building_stops_at_the_first_fault_and_validation_does_not() -> None:
    built = [Problem(StartStage.CONSTRUCT, "a"), Problem(StartStage.CONSTRUCT, "b")]
    assert as_upstream(built) == ("a",)
    checked = [Problem(StartStage.VALIDATE, text) for text in ("a", "b", "a")]
    assert as_upstream(checked) == ("a", "b")
    assert as_upstream([]) == ()
