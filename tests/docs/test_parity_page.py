"""docs/parity.md says what asched refuses and what it accepts: each is tried."""

import re

import pytest

from asched.cli.flags import UsageError, parse
from asched.core.config.versions import MINORS, OLDEST_SERVER, PREVIEW, RULES
from tests.support import ROOT

PAGE = (ROOT / "docs/parity.md").read_text("utf-8")
CODE = re.compile(r"`([^`]+)`")


def table_after(text: str) -> list[list[str]]:
    """The rows of the first table after a text, without its head."""
    lines = PAGE[PAGE.index(text) :].splitlines()
    first = next(number for number, line in enumerate(lines) if line.startswith("|"))
    rows = []
    for line in lines[first + 2 :]:
        if not line.startswith("|"):
            return rows
        rows.append([cell.strip() for cell in line.strip("|").split(" | ")])
    return rows


REFUSED = table_after("asched refuses them:")
#: A row of gates: what the page says -> the value that is refused, and the one that is not.
TURNED = {"turning off is refused": False, "turning on is refused": True}
GATES = [
    (gate, turned, "of 1.37" in gates)
    for gates, said in table_after("Gates of kube-scheduler:")
    for words, turned in TURNED.items()
    if words in said
    for gate in CODE.findall(gates)
]


@pytest.mark.parametrize(("words", "instead"), REFUSED, ids=[row[0] for row in REFUSED])
def test_what_the_page_calls_refused_is_refused(words: str, instead: str) -> None:
    (flags,) = CODE.findall(words)
    with pytest.raises(UsageError):
        parse(flags.split())
    for other in CODE.findall(instead):
        parse(other.split())


@pytest.mark.parametrize(("gate", "turned", "is_of_1_37"), GATES)
def test_gates_that_are_refused(gate: str, turned: bool, is_of_1_37: bool) -> None:
    version = ["--emulated-version=1.37"] if is_of_1_37 else []
    with pytest.raises(UsageError):
        parse([*version, f"--feature-gates={gate}={str(turned).lower()}"])
    parse([*version, f"--feature-gates={gate}={str(not turned).lower()}"])


def test_gates_as_upstream_can_be_turned() -> None:
    """At least one way: some need another gate for the other way, or are locked upstream, too."""
    rows = [row[0] for row in table_after("Gates of kube-scheduler:") if row[1] == "as upstream"]
    gates = re.findall(r"`(\w+)`(?: \((1\.\d+)\))?", ", ".join(rows))
    assert len(gates) > 15
    assert [gate for gate, minor in gates if not is_accepted(gate, minor)] == []


def is_accepted(gate: str, minor: str) -> bool:
    version = [f"--emulated-version={minor}"] if minor else []
    for value in ("true", "false"):
        try:
            parse([*version, f"--feature-gates={gate}={value}"])
        except UsageError:
            continue
        return True
    return False


def test_supported_versions() -> None:
    """The row of each API server has its rules, and how many of them upstream's changes gave."""
    rows = {row[0]: row for row in table_after("## Versions")}
    oldest = int(OLDEST_SERVER.removeprefix("1."))
    newest = int(MINORS[-1].removeprefix("1."))
    assert list(rows) == [f"1.{minor}" for minor in range(oldest, newest + 1)]
    for version, (_, decides, _, _, derived, _) in rows.items():
        rules = version if version in MINORS else MINORS[0]
        assert decides == rules + ", a preview" * (rules in PREVIEW)
        count = sum(since == version for since in RULES.values())
        assert (re.findall(r"(\d+) (?:further )?\[?rules", derived) or ["0"]) == [str(count)]


def test_tables_are_found() -> None:
    assert len(REFUSED) > 5
    assert len(GATES) > 12
