import pytest

from asched.core.config.qualified import (
    label_value_faults,
    qualified_name_faults,
    subdomain_faults,
)


@pytest.mark.parametrize("name", ["a", "A.b_c-9", "example.com/x", f"a/{'x' * 63}"])
def test_a_good_name_has_no_faults(name: str) -> None:
    assert qualified_name_faults(name) == []


@pytest.mark.parametrize(
    ("name", "starts"),
    [
        ("", ["name part must be non-empty", "name part must consist of"]),
        ("a/b/c", ["a valid label key must consist of"]),
        ("/x", ["prefix part must be non-empty"]),
        ("UP/x", ["prefix part a lowercase RFC 1123 subdomain must consist of"]),
        ("x" * 64, ["name part must be no more than 63 bytes"]),
        ("-x", ["name part must consist of"]),
    ],
)
def test_each_fault_is_named(name: str, starts: list[str]) -> None:
    faults = qualified_name_faults(name)
    assert len(faults) == len(starts)
    assert all(fault.startswith(start) for fault, start in zip(faults, starts, strict=True))


def test_values_may_be_empty_and_end_after_63_bytes() -> None:
    assert label_value_faults("") == []
    assert label_value_faults("x" * 64) == ["must be no more than 63 bytes"]
    assert len(label_value_faults("bad value!")) == 1


def test_subdomains_end_after_253_bytes() -> None:
    assert subdomain_faults(".".join(["a" * 49] * 5)) == []
    assert subdomain_faults("a" * 254) == ["must be no more than 253 bytes"]
