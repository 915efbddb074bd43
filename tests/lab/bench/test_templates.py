"""Templates of workload files: the part of Go's language that they use."""

import pytest

from asched_lab.bench.templates import Template, TemplateError, render

VALUES = {"Index": 7, "Count": 30}

CASES = [
    ("a field", "pod-{{.Index}}", "pod-7"),
    ("white space inside an action does not matter", "{{   .Count }}", "30"),
    ("dashes eat the white space beside an action", "a  {{- .Index -}}  b", "a7b"),
    ("numbers as they are", "{{ 42 }} {{ -3 }}", "42 -3"),
    ("integers are added", "{{AddInt .Index 3}}", "10"),
    ("integers are divided towards zero", "{{DivideInt -7 2}}", "-3"),
    ("the remainder keeps the sign of the dividend", "{{Mod -7 5}}", "-2"),
    ("a remainder", "{{ Mod .Index 4 }}", "3"),
    ("operands nest", "{{ DivideInt 30000 (AddInt .Count 20) }}", "600"),
    ("a pipe hands on the last operand", "{{ .Index | SubtractInt 10 }}", "3"),
    ("many operands fold from the left", "{{ SubtractInt 10 1 2 }}", "7"),
    ("a whole float loses its point", "{{ MultiplyFloat 1.5 2 }}", "3"),
    ("a float keeps its fraction", "{{ DivideFloat 1 4 }}", "0.25"),
    ("comments vanish", "a{{/* why */}}b", "ab"),
]


@pytest.mark.parametrize(
    ("text", "expected"), [case[1:] for case in CASES], ids=[c[0] for c in CASES]
)
def test_render(text: str, expected: str) -> None:
    assert render(text, VALUES) == expected


FAULTS = [
    ("an unknown field", "{{ .Name }}", "no field .Name"),
    ("an unknown function", "{{ Power 2 3 }}", "no function 'Power'"),
    ("a keyword of Go", "{{ range .Items }}", "no function 'range'"),
    ("a missing operand", "{{ AddInt }}", "does not take 0"),
    ("division by zero", "{{ DivideInt 1 0 }}", "division by zero"),
    ("an open parenthesis", "{{ AddInt (AddInt 1 2 }}", "not closed"),
    ("rubbish", "{{ $x := 1 }}", "not understood"),
    ("too much", "{{ .Index .Count }}", "unexpected"),
]


@pytest.mark.parametrize(
    ("text", "words"), [case[1:] for case in FAULTS], ids=[c[0] for c in FAULTS]
)
def test_a_fault_names_its_action(text: str, words: str) -> None:
    with pytest.raises(TemplateError, match=words) as caught:
        render(text, VALUES)
    assert "{{" in str(caught.value)


@pytest.mark.parametrize(
    ("text", "words"),
    [("- a\n- b\n", "holds no object"), ("a: [", "is no YAML"), ("a: {{ .No }}", "no field")],
)
def test_a_bad_file_is_named(tmp_path, text: str, words: str) -> None:
    file = tmp_path / "bad.yaml"
    file.write_text(text)
    with pytest.raises(TemplateError, match=words) as caught:
        Template.read(file).of(0, 1)
    assert "bad.yaml" in str(caught.value)
