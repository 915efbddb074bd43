"""Patterns: what they match, checked against Python's engine, and that none takes long."""

import random
import re

import pytest

from asched.core.dra.cel.regex import compile_pattern
from asched.core.dra.cel.values import CelRuntimeError


@pytest.mark.parametrize(
    ("pattern", "text", "expected"),
    [
        ("", "", True),
        ("b", "abc", True),
        ("^b", "abc", False),
        ("c$", "abc", True),
        ("c$", "abc\n", False),
        (r"\Aabc\z", "abc", True),
        ("a|^$", "", True),
        ("^(a|bc)+$", "abcbca", True),
        ("^a{2,3}$", "aaaa", False),
        ("^a{2,}$", "aaaa", True),
        ("^a{2}?b*?$", "aab", True),
        ("^a{,2}$", "a{,2}", True),
        ("^.$", "\n", False),
        ("(?s)^.$", "\n", True),
        ("(?i)GPU", "a gpu", True),
        ("(?i:G)pu", "gPU", False),
        ("(?m)^b$", "a\nb\nc", True),
        (r"\bgpu\b", "my gpu!", True),
        (r"\Bpu", "gpu", True),
        (r"^[\w.-]+$", "nvidia.com-1", True),
        (r"^[^\d\s]+$", "a1", False),
        ("^[[:upper:]][[:^digit:]]$", "Ab", True),
        ("^[]a-]+$", "]-a", True),
        (r"^\x41\x{1F600}$", "A\U0001f600", True),
        (r"^(?P<n>a)(?<m>b)(?:c)$", "abc", True),
        (r"\.\*\\", r".*\ ".strip(), True),
        ("é", "café", True),
        (r"^\pL+$", "café", True),
        (r"^\\C$", r"\C", True),
        (r"^\Qa.b\E$", "a.b", True),
    ],
)
def test_matches(pattern: str, text: str, expected: bool) -> None:
    assert (compile_pattern(pattern).search(text) is not None) is expected


@pytest.mark.parametrize(
    "pattern",
    [
        *("(", ")", "a)", "[a", "*", "a{3,1}", "a{1001}", "(?=a)", "(?<=a)", "(?<!a)", r"\1"),
        *(r"\C", r"a\\\C", "[z-a]", "[[:nope:]]", r"\x{110000}", "\\", "a**", "(" * 60),
        *("((a{100}){100}){100}", r"\p{Nope}"),
    ],
)
def test_what_is_no_pattern_is_refused(pattern: str) -> None:
    with pytest.raises(CelRuntimeError, match="regular expression"):
        compile_pattern(pattern)


def test_no_pattern_takes_long() -> None:
    """Python's own engine would not come back from any of these."""
    text = "a" * 60 + "!"
    for pattern in ("^(a+)+$", "^(a|a)*$", "^(a|aa)+$", "^(.*a){12}$", "^(a*)*b$"):
        assert compile_pattern(pattern).search(text) is None


@pytest.mark.parametrize("pattern", [r"\pL{300}", r"[\pL\pN]{400}", r"(?i)\pL{350}"])
def test_a_short_pattern_with_a_large_automaton_is_refused(pattern: str) -> None:
    """Each took 130 to 200 ms to compile, and 8 to 13 MB for as long as it was kept."""
    with pytest.raises(CelRuntimeError, match="pattern too large"):
        compile_pattern(pattern)


def random_pattern(rng: random.Random, depth: int = 0) -> str:
    match rng.randrange(8 if depth < 3 else 4):
        case 0 | 1:
            return rng.choice("abc.")
        case 2:
            return rng.choice(["[ab]", "[^a]", r"\w", r"\b", "^", "$", r"\s"])
        case 3 | 4:
            return "".join(random_pattern(rng, depth + 1) for _ in range(rng.randint(1, 3)))
        case 5:
            return f"({random_pattern(rng, depth + 1)}|{random_pattern(rng, depth + 1)})"
        case _:
            repeat = rng.choice(["*", "+", "?", "{2}", "{1,2}", "*?"])
            return f"(?:{random_pattern(rng, depth + 1)}){repeat}"


@pytest.mark.parametrize("seed", range(100))
def test_random_patterns_match_what_they_match_elsewhere(seed: int) -> None:
    rng = random.Random(seed)
    pattern = random_pattern(rng)
    for _ in range(10):
        text = "".join(rng.choice("abc ") for _ in range(rng.randint(0, 6)))
        expected = re.compile(pattern, re.ASCII).search(text) is not None
        found = compile_pattern(pattern).search(text) is not None
        assert found is expected, f"seed {seed}: {pattern!r} on {text!r}"
