from asched.core.config.problem import (
    Key,
    NamedString,
    Problem,
    Severity,
    StartStage,
    as_upstream,
    did_you_mean,
    duplicate,
    forbidden,
    go_json,
    invalid,
    message,
    not_supported,
    path_text,
    quoted,
    required,
)


def test_a_path_prints_as_upstream_prints_it() -> None:
    assert path_text(("profiles", 0, "plugins", "score")) == "profiles[0].plugins.score"
    assert path_text(("values", 2, Key("pool"))) == "values[2][pool]"
    assert path_text(()) == ""


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


def test_unknown_fields_add_up() -> None:
    assert as_upstream([_load("a"), _load("b", nested=True)]) == ("a", "b")


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


def test_one_text_stands_alone_and_several_in_brackets() -> None:
    assert message(["a"]) == "a"
    assert message(["a", "b"]) == "[a, b]"


def test_a_hint_prefers_the_right_letters_in_the_wrong_case() -> None:
    assert did_you_mean("Parallelism", ["parallelism", "profiles"]) == 'did you mean "parallelism"?'
    assert did_you_mean("paralellism", ["parallelism"]) == 'did you mean "parallelism"?'
    assert did_you_mean("zzz", ["parallelism"]) == ""
