"""What differs between the minor versions of Kubernetes that asched follows, one rule per
difference.

Rules   code asks for a rule by name (`rules["distinct-attribute-per-device"]`) and never compares
        versions; a rule is in force from `since` on; the state of all rules is part of the
        mapping of feature gates that a configuration has, so that recordings and replays carry
        it; names of rules have hyphens and lower-case letters, which no gate has.
        Differences older than 1.36.3 are not listed: asched decides as the newer version.
Source  release notes of Kubernetes 1.37, CHANGELOG-1.38.md; pull requests as in
        docs/results/versions.md
"""

import re
from collections.abc import Mapping
from functools import cache
from typing import Final, NamedTuple

#: Minor versions with rules of their own, oldest first.
MINORS: Final = ("1.36", "1.37", "1.38")
#: In force where no version is known: without an API server, and in recordings without rules.
BASE: Final = MINORS[0]
#: Not released yet: rules of merged pull requests.
PREVIEW: Final = frozenset({"1.38"})
#: API servers of this version and newer are supported; those before 1.36 get the rules of 1.36.
OLDEST_SERVER: Final = "1.34"

_MINOR: Final = re.compile(r"v?1\.(\d{1,3})(?:[.+-].*)?")


#: From which minor version on each rule is in force.
RULES: Final[Mapping[str, str]] = {
    "all-mode-lists-full-devices": "1.37",
    "budget-with-empty-selector-protects": "1.38",
    "budgets-count-each-pod-of-a-group": "1.37",
    "capacity-out-of-range-is-refused": "1.37",
    "claim-config-once": "1.37",
    "claims-metric-of-all-components": "1.37",
    "composite-groups-form-trees": "1.37",
    "distinct-attribute-per-device": "1.37",
    "extenders-find-the-victims": "1.38",
    "gated-pods-hold-room": "1.37",
    "groups-with-constraints-preempt": "1.37",
    "groups-report-their-minimum": "1.37",
    "image-volumes-raise-the-limit": "1.37",
    "incomplete-pools-reject-a-node": "1.38",
    "metrics-count-queued-entities": "1.37",
    "metrics-count-trees-once": "1.38",
    "metrics-of-informers": "1.37",
    "metrics-of-placements": "1.37",
    "metrics-of-preemption-for-groups": "1.37",
    "metrics-of-plugins-are-beta": "1.37",
    "pods-evict-whole-groups": "1.37",
    "pods-of-groups-skip-post-filter": "1.37",
    "pod-group-post-filter-is-configured": "1.37",
    "pools-of-other-nodes-are-ignored": "1.37",
    "preemption-for-groups-reports-itself": "1.37",
    "preemption-reports-success": "1.37",
    "resizes-count-their-largest-sum": "1.37",
    "selector-errors-name-the-device": "1.37",
    "shares-bar-exclusive-use": "1.38",
    "shares-pay-counters-once": "1.37",
    "streams-leave-out-managed-fields": "1.38",
    "spread-empty-selector-counts-pods": "1.38",
}


class UnknownVersionError(ValueError):
    """A text that names no minor version of Kubernetes 1."""


class VersionChoice(NamedTuple):
    """Whose rules are in force."""

    minor: str
    #: "" if these are the server's own
    warning: str = ""
    #: of the API server at the start; "" if it was not asked, or could not be read
    server: str = ""
    #: chosen by `--emulated-version`
    is_emulated: bool = False


@cache
def rules_of(minor: str) -> Mapping[str, bool]:
    """The state of every rule under a minor version of MINORS."""
    at = MINORS.index(minor)
    return {name: MINORS.index(since) <= at for name, since in RULES.items()}


def minor_of(text: str) -> int:
    """The 36 of `v1.36.3`. Raises UnknownVersionError."""
    found = _MINOR.fullmatch(text.strip())
    if found is None:
        raise UnknownVersionError(f"{text!r} is no version such as 1.36 or v1.36.3")
    return int(found[1])


def for_server(text: str) -> VersionChoice:
    """The rules for an API server of this version. Raises UnknownVersionError."""
    number = minor_of(text)
    shown = f"1.{number}"
    if shown in PREVIEW:
        return VersionChoice(shown, f"the rules of Kubernetes {shown} are a preview")
    if shown in MINORS:
        return VersionChoice(shown)
    if number > minor_of(MINORS[-1]):
        text = f"Kubernetes {shown} is newer than this asched; it decides as {MINORS[-1]}"
        return VersionChoice(MINORS[-1], f"{text} (a preview); upgrade asched")
    if number < minor_of(OLDEST_SERVER):
        text = f"Kubernetes {shown} is older than {OLDEST_SERVER}, the oldest supported"
        return VersionChoice(BASE, f"{text}; asched decides as {BASE}")
    return VersionChoice(BASE)


def emulated(text: str) -> VersionChoice:
    """The rules for `--emulated-version`, which may only name a version with rules, or an older
    supported one. Raises UnknownVersionError.
    """
    number = minor_of(text)
    if not minor_of(OLDEST_SERVER) <= number <= minor_of(MINORS[-1]):
        raise UnknownVersionError(
            f"emulation version {text} is not between [{OLDEST_SERVER}, {MINORS[-1]}]"
        )
    return for_server(text)
