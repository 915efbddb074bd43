"""How many tests may skip for want of what.

The limits are those of a machine that has Python, make, the locked tools and Debian's package
prometheus alone. `.ci/run` sets ASCHED_SKIPS=limited: a run then fails if more tests skip for a
reason than its limit, or for a reason that is not listed. A test that needs a program which most
machines lack raises a limit here, or gets a variant that runs everywhere.
"""

from collections import Counter
from collections.abc import Iterable
from typing import Any, Final, NamedTuple


class Limit(NamedTuple):
    """`word` is a part of the reason that a test gives."""

    word: str
    tests: int
    missing: str


LIMITS: Final = (
    Limit("KUBEBUILDER_ASSETS", 65, "a real control plane (KUBEBUILDER_ASSETS names its folder)"),
    Limit("kubectl is not", 0, "kubectl (a development dependency)"),
    Limit("SCHEDULER_PERF", 1, "Kubernetes' workload files (SCHEDULER_PERF names their folder)"),
    Limit("promtool is not", 0, "promtool (Debian's package prometheus has it)"),
    Limit("prometheus is not", 0, "prometheus (Debian's package has it)"),
    Limit("no browser is", 6, "a browser"),
    Limit("fish is not", 2, "fish"),
    Limit("zsh is not", 1, "zsh"),
    Limit("no other Python", 1, "another Python (make test-pythons installs them)"),
    Limit("one set of feasible nodes", 5, "a cached result that outlasts one set of nodes"),
)


def counted(reports: Iterable[Any]) -> Counter[Limit]:
    """Skipped tests by limit; a reason that is not listed has the limit 0."""
    return Counter(
        next((limit for limit in LIMITS if limit.word in reason), Limit(reason, 0, reason))
        for reason in map(_reason, reports)
    )


def beyond(reports: Iterable[Any]) -> list[str]:
    """A line for each limit that is exceeded."""
    return [
        f"{count} tests skipped for want of {limit.missing}: tests/skips.py allows {limit.tests}"
        for limit, count in counted(reports).items()
        if count > limit.tests
    ]


def summary(reports: Iterable[Any]) -> list[str]:
    """What a run did not check, in one line, and the limits that it exceeds."""
    counts = counted(reports)
    texts = sorted(f"{count} for want of {limit.missing}" for limit, count in counts.items())
    return [*([f"skipped: {'; '.join(texts)}"] if texts else ()), *beyond(reports)]


def _reason(report: Any) -> str:
    text = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    return str(text).removeprefix("Skipped: ")
