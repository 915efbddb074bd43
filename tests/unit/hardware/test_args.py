"""Args may say of what kind they are; those of another kind are refused by name."""

import pytest

from asched.hardware.koordinator.load_aware import LoadAwareSchedulingArgs
from asched.hardware.rows import API_VERSION

KIND = "LoadAwareSchedulingArgs"


@pytest.mark.parametrize("version", ["", API_VERSION])
@pytest.mark.parametrize("kind", ["", KIND])
def test_args_of_this_kind_are_taken(version: str, kind: str) -> None:
    args = LoadAwareSchedulingArgs(api_version=version, kind=kind)
    assert (args.api_version, args.kind) == (version, kind)


@pytest.mark.parametrize(
    ("version", "kind", "named"),
    [
        ("", "NodeResourcesFitArgs", f"{API_VERSION} NodeResourcesFitArgs"),
        (API_VERSION, "NodeResourcesFitArgs", f"{API_VERSION} NodeResourcesFitArgs"),
        ("example.com/v2", "", f"example.com/v2 {KIND}"),
        ("example.com/v2", KIND, f"example.com/v2 {KIND}"),
        ("example.com/v2", "Other", "example.com/v2 Other"),
    ],
)
def test_args_of_another_are_refused_by_name(version: str, kind: str, named: str) -> None:
    with pytest.raises(ValueError, match="these are args of") as refused:
        LoadAwareSchedulingArgs(api_version=version, kind=kind)
    assert str(refused.value) == f"these are args of {named}, not of {API_VERSION} {KIND}"
