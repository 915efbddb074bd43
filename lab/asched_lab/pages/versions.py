"""The page of the differences between minor versions, from the table of rules."""

from collections.abc import Iterator, Mapping
from pathlib import Path

from asched.core.config.gates import HONOURED, table_of
from asched.core.config.versions import BASE, MINORS, RULES, SETTLED, VersionRule
from asched_lab.pages.markdown import code, page, table


def versions_page(_root: Path) -> str:
    """docs/results/versions.md."""
    head = ("Rule", "Source", *MINORS, "Test")
    return page(
        "Rules by minor version",
        [
            (
                "asched decides by the rules of the API server's minor version, or of"
                " `--emulated-version`. Sources are pull requests and commits of"
                " kubernetes/kubernetes. The rules of 1.38 are a preview. Defaults of feature gates"
                " are in [configuration](../configuration.md#feature-gates)."
            ),
            table(head, _rows(RULES)),
            "## Gates whose default changes",
            table(("Gate", *MINORS), _gates()),
            "## Not switched",
            "asched decides as the newer version under each minor version.",
            table(
                ("Rule", "Source", "Since", "kube-scheduler before", "asched", "Test"),
                (
                    (name, rule.source, rule.since, rule.before, rule.after, code(rule.test))
                    for name, rule in sorted(SETTLED.items())
                ),
            ),
        ],
    )


def _rows(rules: Mapping[str, VersionRule]) -> Iterator[tuple[str, ...]]:
    for name, rule in sorted(rules.items(), key=lambda item: (item[1].since, item[0])):
        since = MINORS.index(rule.since)
        before = [rule.before, *(f"as {BASE}" for _ in MINORS[1:since])]
        after = [rule.after, *(f"as {rule.since}" for _ in MINORS[since + 1 :])]
        yield name, rule.source, *before, *after, code(rule.test)


def _gates() -> Iterator[tuple[str, ...]]:
    for name in sorted(HONOURED):
        defaults = [table_of(minor).gates.get(name, ("", None))[1] for minor in MINORS]
        if len(set(defaults)) > 1:
            yield code(name), *("" if on is None else "on" if on else "off" for on in defaults)
