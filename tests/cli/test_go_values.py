from collections.abc import Callable
from typing import Any

import pytest

from asched.cli.go_values import READERS


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        ("bool", "T", True),
        ("int", "0x10", 16),
        ("int", "010", 8),
        ("int", "-3", -3),
        ("int", "9223372036854775807", 2**63 - 1),
        ("int", "-9223372036854775808", -(2**63)),
        ("int32", "2147483647", 2**31 - 1),
        ("int32", "-2147483648", -(2**31)),
        ("int32", "1_0", 10),
        ("float32", "1e3", 1000.0),
        ("float32", "0x1p4", 16.0),
        ("float32", "1_0.5", 10.5),
        ("Level", "2147483647", 2**31 - 1),
        ("duration", "1m30s", 90.0),
        ("durationNs", "1ms", 1_000_000),
        ("ip", "::1", "::1"),
        ("strings", 'a,"b,c"', ("a", "b,c")),
        ("strings", "", ()),
        ("strings", ",", ("", "")),
        ("strings", 'a,"say ""b"""', ("a", 'say "b"')),
        ("ip", "", ""),
        ("int32Slice", "1, 2", (1, 2)),
        ("stringToString", "a=1,b=2", {"a": "1", "b": "2"}),
        ("stringToString", "m,l=x,y", {"m,l": "x,y"}),
        ("namedCertKey", "a.crt,a.key:one,two", ("a.crt", "a.key", ("one", "two"))),
        ("namedCertKey", "a.crt,a.key", ("a.crt", "a.key", ())),
        ("namedCertKey", " a.crt , a.key : one , two ", ("a.crt", "a.key", ("one", "two"))),
        ("namedCertKey", "a.crt,a.key:one:two", ("a.crt", "a.key", ("one:two",))),
        ("quantity", "64Ki", "64Ki"),
        ("pattern=N,...", "a=1,b*=2", (("a", 1), ("b*", 2))),
        ("version", "true", "true"),
        ("version", "raw", "raw"),
        ("version", "v1.36.3", "false"),
    ],
)
def test_a_value_is_read_as_go_reads_it(kind: str, text: str, value: object) -> None:
    assert READERS[kind](text) == value


@pytest.mark.parametrize(
    ("kind", "text", "words"),
    [
        ("bool", "maybe", 'strconv.ParseBool: parsing "maybe": invalid syntax'),
        ("int", "abc", 'strconv.ParseInt: parsing "abc": invalid syntax'),
        ("int", " 1", 'strconv.ParseInt: parsing " 1": invalid syntax'),
        ("int32", "2147483648", 'strconv.ParseInt: parsing "2147483648": value out of range'),
        ("int32", "-2147483649", 'strconv.ParseInt: parsing "-2147483649": value out of range'),
        (
            "int",
            "9223372036854775808",
            'strconv.ParseInt: parsing "9223372036854775808": value out of range',
        ),
        ("float32", "fast", 'strconv.ParseFloat: parsing "fast": invalid syntax'),
        ("duration", "10", 'time: missing unit in duration "10"'),
        ("float32", "1e40", 'strconv.ParseFloat: parsing "1e40": value out of range'),
        ("float32", "1e400", 'strconv.ParseFloat: parsing "1e400": value out of range'),
        ("float32", "_1", 'strconv.ParseFloat: parsing "_1": invalid syntax'),
        ("Level", "-1", 'strconv.ParseUint: parsing "-1": invalid syntax'),
        ("Level", "0x2", 'strconv.ParseUint: parsing "0x2": invalid syntax'),
        ("Level", "2147483648", 'strconv.ParseUint: parsing "2147483648": value out of range'),
        ("strings", 'a"b', 'parse error on line 1, column 2: bare " in non-quoted-field'),
        (
            "strings",
            '"a',
            'parse error on line 1, column 3: extraneous or missing " in quoted-field',
        ),
        ("ip", "fe80::1%eth0", 'failed to parse IP: "fe80::1%eth0"'),
        ("ip", "nowhere", 'failed to parse IP: "nowhere"'),
        ("stringToString", "a", "a must be formatted as key=value"),
        *(
            ("namedCertKey", text, "expected comma separated certificate and key file paths")
            for text in ("a.crt", "a.crt,", ",a.key", "a.crt,a.key,b", "a.crt:one")
        ),
        ("namedCertKey", "a.crt,a.key:", "empty names list is not allowed"),
        ("namedCertKey", "a.crt: ", "empty names list is not allowed"),
        ("pattern=N,...", "a", '"a" does not have the pattern=N format'),
        ("pattern=N,...", "b=1,a=1=2", '"a=1=2" does not have the pattern=N format'),
        (
            "pattern=N,...",
            "a=x",
            'parsing verbosity in "a=x": strconv.ParseUint: parsing "x": invalid syntax',
        ),
        ("version", "vx", 'could not parse "vx" as version'),
        ("version", "v1.36", 'illegal version string "v1.36"'),
        (
            "version",
            "v1.40.0",
            'version "v1.40.0" must match major/minor/patch of default version "v1.36.3"',
        ),
    ],
)
def test_what_cannot_be_read_has_gos_words(kind: str, text: str, words: str) -> None:
    reader: Callable[[str], Any] = READERS[kind]
    with pytest.raises(ValueError) as caught:
        reader(text)
    assert str(caught.value) == words


def test_a_quantity_needs_a_number() -> None:
    with pytest.raises(ValueError):
        READERS["quantity"]("much")
