"""/healthz, /livez and /readyz: named checks, each with a page of its own, and their history.

    /readyz              ok, or 500 with the verbose text
    /readyz?verbose      a line per check, including excluded checks
    /readyz/<check>      one check

A failing check logs its reason and shows it on its own page, not in the list.

Source  pages recorded from kube-scheduler 1.36.2 (component-base/metrics/prometheus/slis, apiserver
        pkg/server/healthz)
"""

import logging
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

import msgspec

from asched.serve.pages import NOT_FOUND, Page, PageRequest, text

log = logging.getLogger("asched.serve")

#: Returns what is wrong; an empty text means healthy.
Probe = Callable[[], str]

ROOTS: Final = ("healthz", "livez", "readyz")


class Check(msgspec.Struct, frozen=True):
    name: str
    probe: Probe


PING: Final = Check("ping", str)


class Health:
    """The checks by root. /metrics/slis shows `states` and `counts`."""

    def __init__(self, checks: Mapping[str, Sequence[Check]]) -> None:
        self._checks = {root: {check.name: check for check in checks[root]} for root in ROOTS}
        #: (check, root) -> 1 if it passed the last time
        self.states: dict[tuple[str, str], int] = {}
        #: (check, status, root) -> number of results
        self.counts: Counter[tuple[str, str, str]] = Counter()

    def paths(self) -> Iterator[str]:
        for root, checks in self._checks.items():
            yield f"/{root}"
            yield from (f"/{root}/{name}" for name in checks)

    def page(self, asked: PageRequest) -> Page | None:
        """The page of a health path; None for other paths."""
        _, root, *rest = asked.path.split("/")
        checks = self._checks.get(root)
        if checks is None:
            return None
        if not rest:
            return self._all(root, asked)
        check = checks.get("/".join(rest))
        return NOT_FOUND if check is None else self._one(root, check)

    def _one(self, root: str, check: Check) -> Page:
        problem = self._ask(root, check)
        if problem:
            return text(f"internal server error: {problem}\n", 500, nosniff=True)
        return Page(b"ok")

    def _all(self, root: str, asked: PageRequest) -> Page:
        excluded = dict.fromkeys(name for name in asked.query.get("exclude", ()) if name)
        lines, failed = [], []
        for check in self._checks[root].values():
            if check.name in excluded:
                excluded.pop(check.name)
                lines.append(f"[+]{check.name} excluded: ok")
                continue
            problem = self._ask(root, check)
            if problem:
                lines.append(f"[-]{check.name} failed: reason withheld")
                failed.append(f"{check.name}: {problem}")
            else:
                lines.append(f"[+]{check.name} ok")
        if excluded:
            names = ", ".join(f'"{name}"' for name in sorted(excluded))
            lines.append(f"warn: some health checks cannot be excluded: no matches for {names}")
        if failed:
            log.info("%s check failed: %s", root, "; ".join(failed), extra={"v": 2})
            return text("\n".join([*lines, f"{root} check failed", ""]), 500, nosniff=True)
        if not asked.has("verbose"):
            return text("ok", nosniff=True)
        return text("\n".join([*lines, f"{root} check passed", ""]), nosniff=True)

    def _ask(self, root: str, check: Check) -> str:
        problem = check.probe()
        self.states[check.name, root] = int(not problem)
        self.counts[check.name, "error" if problem else "success", root] += 1
        return problem
