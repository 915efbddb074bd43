import pytest

from asched.host.configuration.source import VALUES_MAX, read

GO_MAP = (
    "type: %!s(<nil>), key: <nil>, "
    'value: map[interface {}]interface {}{"b":[]interface {}{1, <nil>, true}}'
)


def test_values_and_their_places() -> None:
    source = read("a: 1\nb:\n- x\n- c: yes\n")
    assert source.document == {"a": 1, "b": ["x", {"c": True}]}
    assert source.place(("b", 1, "c")) == (4, 3)
    assert source.place(("b", 0)) == (3, 3)
    assert source.place(("b", 1, "missing", "deep")) == (4, 3)
    assert source.place(()) == (1, 1)


def test_keys_are_sorted_in_yaml_and_kept_in_json() -> None:
    assert list(read("b: 1\na: 2\n").document) == ["a", "b"]
    assert list(read('{"b": 1, "a": 2}').document) == ["b", "a"]


def test_numbers_are_whole_in_yaml_and_as_written_in_json() -> None:
    assert read("a: 8.0\n").document == {"a": 8}
    assert type(read('{"a": 8.0}').document["a"]) is float


def test_tags_and_quotes_make_texts() -> None:
    assert read('a: "1"\nb: !!str 1\nc: &x 1e2\nd: !!int "7"\ne: \'\'\n').document == {
        "a": "1",
        "b": "1",
        "c": 100,
        "d": 7,
        "e": "",
    }


def test_tabs_between_words_and_foreign_tags_are_read_as_go_reads_them() -> None:
    assert read("a:\t1\t\nb: x\ty\nc: !mine 5\nd: !!binary aGk=\ne: 1e400\n").document == {
        "a": 1,
        "b": "x\ty",
        "c": "5",
        "d": "hi",
        "e": "1e400",
    }


def test_only_the_first_document_counts() -> None:
    assert read("---\na: 1\n---\nb: [\n").document == {"a": 1}
    assert read("").document is None


def test_anchors_work_and_merged_keys_count() -> None:
    assert read("x: &p {a: 1}\nz:\n  <<: *p\n  b: 2\n").document["z"] == {"a": 1, "b": 2}
    source = read("x: &p {a: 1}\nz:\n  <<: *p\n  a: 2\n")
    assert [problem.text for problem in source.problems] == [
        'yaml: line 4: key "a" already set in map'
    ]


def test_a_key_twice_is_found_where_it_stands_again() -> None:
    source = read("a: 1\na: 2\n")
    assert source.place(source.problems[0].path) == (2, 1)
    inner = read('{"a": {"b": 1, "b": 2}}').document["a"]
    assert inner == {"b": 2}
    assert inner.pairs == (("b", 1), ("b", 2))


def test_a_byte_order_mark_is_a_letter_but_at_the_start() -> None:
    assert read("\ufeffa: 1\n").document == {"a": 1}
    assert read("# c\n\ufeffa: 1\nb: x\ufeffy\n").document == {"\ufeffa": 1, "b": "x\ufeffy"}


def test_half_a_letter_in_json_is_replaced() -> None:
    text = r'{"a": "\ud800x", "b": "\ud83d\ude00", "c": "\\ud800"}'
    assert read(text).document == {"a": "\ufffdx", "b": "\U0001f600", "c": "\\ud800"}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("~: x\n", 'type: %!s(<nil>), key: <nil>, value: "x"'),
        ("a:\n  ~: {b: [1, ~, true]}\n", GO_MAP),
        ("9223372036854775808: 1.5\n", "type: uint64, key: 0x8000000000000000, value: 1.5"),
    ],
)
def test_a_key_that_names_no_field_is_shown_as_go_shows_it(text: str, found: str) -> None:
    assert [p.text for p in read(text).problems] == [f"unsupported map key of {found}"]


def test_python_has_numbers_that_json_has_not() -> None:
    assert "NaN is no JSON number" in read('{"a": NaN}').problems[0].text


@pytest.mark.parametrize(
    ("text", "start", "place"),
    [
        ("a: [1\nb: 2\n", "yaml: line 2: ", (2, 2)),
        ("a:\n\tb: 1\n", "yaml: line 2: ", (2, 1)),
        ('{"a": }', "couldn't get version/kind; json parse error: ", (1, 7)),
        ("a: .nan\n", "json: unsupported value: NaN", (1, 4)),
        ("~: 1\n", "unsupported map key", (1, 1)),
        ("a: &x [*x]\n", "yaml: anchor value contains itself", (1, 4)),
        ("a: *nowhere\n", "yaml: line 1: ", (1, 4)),
        ("<<: 3\n", "yaml: map merge requires map", (1, 1)),
        ("a: \x07\n", "yaml: unacceptable character", (1, 1)),
    ],
)
def test_what_cannot_be_read_says_where(text: str, start: str, place: tuple[int, int]) -> None:
    source = read(text)
    assert source.problems[0].text.startswith(start)
    assert source.place(source.problems[0].path) == place


def test_aliases_that_multiply_are_stopped() -> None:
    lines = [
        "a0: &a0 [x, x, x, x, x, x, x, x, x, x]",
        *(f"a{level}: &a{level} [{', '.join([f'*a{level - 1}'] * 10)}]" for level in range(1, 8)),
    ]
    source = read("\n".join(lines))
    assert source.problems[0].text == "yaml: document contains excessive aliasing"
    assert VALUES_MAX < 10**8
