"""Whatever stands in a configuration file is used, or refused in clear lines, at a bounded cost."""

import json
from pathlib import Path
from typing import Any, Final

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from asched.core.config.gates import DEFAULT_GATES
from asched.host.configuration.file import (
    FILE_BYTES_MAX,
    ConfigError,
    UnreadableFileError,
    load_config,
)
from tests.poison.counted import counted
from tests.poison.made import AMOUNTS, ODD, WORDS

CONFIGS: Final = Path(__file__).parents[2] / "config"
DOCUMENTS: Final = [
    yaml.safe_load(path.read_text()) for path in sorted(CONFIGS.iterdir()) if path.is_file()
]
#: A line that people read.
LINE_MAX: Final = 4_000
LINES_MAX: Final = 101
#: Calls of functions whatever the text, and for a byte of it: several times what is needed, so that
#: only what grows faster than its text goes beyond.
CALLS: Final = 4_000_000
CALLS_PER_BYTE: Final = 60
BYTES_MAX: Final = 512 << 20

NUMBERS: Final = (0, -1, 101, 2**31, 2**63, 2**64, -(2**63) - 1, 10**30, 1e308, 0.5, float("inf"))
VALUES: Final = st.one_of(
    st.sampled_from((*NUMBERS, *AMOUNTS, *ODD, *WORDS)),
    st.none(),
    st.booleans(),
    st.builds(dict),
    st.builds(list),
    st.text(max_size=20),
    st.recursive(
        st.none() | st.integers() | st.text(max_size=3),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
        max_leaves=10,
    ),
)


def paths(value: Any, here: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every place in a document."""
    found = [here]
    inside = value.items() if isinstance(value, dict) else ()
    inside = enumerate(value) if isinstance(value, list) else inside
    for key, one in inside:
        found += paths(one, (*here, key))
    return found


def changed(value: Any, path: tuple[Any, ...], what: str, new: Any) -> Any:
    """A document with one place replaced, doubled, taken away, or given another key."""
    if path:
        copy = dict(value) if isinstance(value, dict) else list(value)
        key = path[0]
        if len(path) > 1 or what in {"replaced", "another key"}:
            copy[key] = changed(value[key], path[1:], what, new)
        elif what == "gone":
            del copy[key]
        elif isinstance(copy, list):
            copy += [copy[key]] * 3
        return copy
    if what == "another key" and isinstance(value, dict):
        return {**value, str(new): new}
    return new if what in {"replaced", "another key"} else value


@st.composite
def documents(draw: st.DrawFn) -> Any:
    document = draw(st.sampled_from(DOCUMENTS))
    for _ in range(draw(st.integers(1, 3))):
        path = draw(st.sampled_from(paths(document)))
        what = draw(st.sampled_from(("replaced", "replaced", "another key", "gone", "doubled")))
        document = changed(document, path, what, draw(VALUES))
    return document


def load(text: str) -> str:
    """What is said of a text; "" if it is used. Raises whatever else is raised."""
    try:
        load_config(text=text, gates=DEFAULT_GATES)
    except (ConfigError, UnreadableFileError) as error:
        return str(error)
    return ""


def is_clear(said: str) -> None:
    lines = said.split("\n") if said else []
    assert len(lines) <= LINES_MAX
    for line in lines:
        assert line.startswith("<text>:"), line[:200]
        assert "sys." not in line
        assert "Traceback" not in line
        assert "object at 0x" not in line, line[:200]
        assert len(line) <= LINE_MAX, line[:200]


@settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
@given(document=documents(), as_json=st.booleans())
def test_changed_documents_are_used_or_refused_in_clear_lines(
    document: Any, *, as_json: bool
) -> None:
    is_clear(load(json.dumps(document, default=str) if as_json else yaml.safe_dump(document)))


@settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    document=st.sampled_from(DOCUMENTS),
    at=st.floats(0, 1),
    cut=st.integers(0, 40),
    put=st.one_of(
        st.text(max_size=8),
        st.sampled_from(("{", "[", "&a ", "*a", "<<: ", "!!binary ", "\t", "\x00", "---\n", "? ")),
    ),
)
def test_torn_texts_are_used_or_refused_in_clear_lines(
    document: Any, at: float, cut: int, put: str
) -> None:
    text = yaml.safe_dump(document)
    place = int(at * len(text))
    is_clear(load(text[:place] + put + text[place + cut :]))


HEAD: Final = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"


def bomb(levels: int, width: int) -> str:
    """Lists of aliases of lists of aliases."""
    lines = ["a0: &a0 [x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * width)}]" for n in range(1, levels)]
    return HEAD + "\n".join(lines) + "\n"


def nested(opening: str, closing: str, depth: int) -> str:
    return HEAD + "profiles: " + opening * depth + closing * depth + "\n"


HUGE: Final = {
    "aliases that multiply": bomb(30, 9),
    "an alias of itself": HEAD + "profiles: &a [*a]\n",
    "a merge key that multiplies": HEAD
    + "".join(
        f"m{n}: &m{n} {{<<: [{', '.join([f'*m{n - 1}'] * 9)}]}}\n" if n else "m0: &m0 {a: b}\n"
        for n in range(25)
    ),
    "lists in lists": nested("[", "]", 20_000),
    "mappings in mappings": nested("{a: ", "}", 20_000),
    "lists in lists, by their indentation": HEAD + "profiles:\n" + "- " * 10_000 + "x\n",
    "JSON in JSON": '{"a":' * 20_000 + "1" + "}" * 20_000,
    "JSON lists in lists": '{"profiles":' + "[" * 40_000 + "]" * 40_000 + "}",
    "a number of many digits": HEAD + "parallelism: " + "9" * 40_000 + "\n",
    "a JSON number of many digits": '{"parallelism": ' + "9" * 40_000 + "}",
    "a JSON number of a great power": '{"parallelism": 1e999999999}',
    "a number of a great power": HEAD + "parallelism: 1e999999999\n",
    "a number to the base of 60": HEAD + "parallelism: " + ":".join(["59"] * 20_000) + "\n",
    "a duration of many parts": HEAD + "leaderElection: {leaseDuration: " + "1h" * 4_000 + "}\n",
    "many profiles": HEAD + "profiles:\n" + "".join(f"- schedulerName: p{n}\n" for n in range(100)),
    "many plugins": HEAD
    + "profiles:\n- plugins:\n    filter:\n      enabled:\n"
    + "".join(f"      - name: p{n}\n" for n in range(400)),
    "a plugin many times": HEAD
    + "profiles:\n- plugins:\n    filter:\n      enabled:\n"
    + "      - name: NodeName\n" * 1_000,
    "many extenders": HEAD
    + "extenders:\n"
    + "".join(f"- urlPrefix: http://e{n}\n  filterVerb: f\n" for n in range(500)),
    "many unknown fields": HEAD + "".join(f"x{n}: 1\n" for n in range(800)),
    "a key that occurs often": HEAD + "parallelism: 1\n" * 2_000,
    "a long name": HEAD + "profiles:\n- schedulerName: " + "a" * 60_000 + "\n",
    "a long line of words": HEAD + "profiles:\n- schedulerName: " + "a " * 30_000 + "\n",
    "nothing but blanks": " " * 200_000,
    "nothing but new lines": "\n" * 200_000,
    "nothing but anchors": "".join(f"&a{n} " for n in range(20_000)),
    "nothing but quotes": '"' * 20_001,
    "nothing but tags": "!" * 20_000,
}


@pytest.mark.parametrize("name", HUGE)
def test_large_and_deep_texts_end_in_clear_lines_and_in_time(name: str) -> None:
    text = HUGE[name]
    assert len(text) <= 2 * FILE_BYTES_MAX
    with counted() as cost:
        said = load(text)
    is_clear(said)
    assert cost.calls <= CALLS + CALLS_PER_BYTE * len(text)
    assert cost.bytes_max <= BYTES_MAX
