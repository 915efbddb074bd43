"""What the embedded server answers differently from the recorded one, each with its reason.

An entry covers a difference if its scenario, its path and (where given) the recorded text match.
Nothing else may differ. A new entry needs a reason that holds for users, not for the test.
"""

import re
from dataclasses import dataclass
from fnmatch import fnmatch
from typing import Final

from asched_lab.record.transcripts.replay import Difference


@dataclass(frozen=True)
class Allowed:
    """One kind of difference: `path` is searched as a regular expression, `scenario` a glob."""

    reason: str
    path: str
    scenario: str = "*"
    recorded: str = ""

    def covers(self, difference: Difference) -> bool:
        return (
            fnmatch(difference.scenario, self.scenario)
            and re.search(self.path, difference.path) is not None
            and re.search(self.recorded, str(difference.recorded), re.DOTALL) is not None
        )


ALLOWED: Final = (
    Allowed(
        "Column descriptions are sentences of Kubernetes' own documentation; ours are"
        " empty. kubectl does not show them.",
        path=r"columnDefinitions\[\d+\]\.description$",
    ),
    Allowed(
        "Protobuf is neither written nor offered. A client that also takes JSON gets JSON, as"
        " kubectl and client-go do.",
        path=r"^content_type$",
        recorded=r"protobuf",
    ),
    Allowed(
        "A client that takes nothing but protobuf is told 406; no everyday client is like that.",
        path=r"^status$",
        scenario="discovery",
        recorded=r"^200$",
    ),
    Allowed(
        "The same for single objects: protobuf alone is 406.",
        path=r"^status$",
        scenario="shapes",
        recorded=r"^200$",
    ),
    Allowed(
        "A refused pod update names the rule, but without the diff of Go's internal struct that the"
        " real server appends; nobody can act on it.",
        path=r"message$",
        recorded=r"pod updates may not change fields other than .*\n@@",
    ),
    Allowed(
        "A patch whose result cannot be decoded is quoted back. The real server also quotes"
        " managedFields, in Go's order of keys; the complaint after the quotation is the same.",
        path=r"message$",
        recorded=r"^(\W+is invalid: patch: )?Invalid value: ",
    ),
    Allowed(
        "Dropping a field of a disabled feature leaves a trace in managedFields there, and so a new"
        " version; here nothing changed, so the version stays.",
        path=r"^order$",
        scenario="leader_election",
    ),
    Allowed(
        "The day on which the server was set up.",
        path=r"data\.since$",
        recorded=r"^\d{4}-\d\d-\d\d$",
    ),
    Allowed(
        "What is forgotten is forgotten for watches as well: there is one memory here, not etcd's"
        " and a cache of watches beside it. A client answers 410 with a new list in either case.",
        path=r"^events\b",
        scenario="compacted",
    ),
)


def unexplained(found: list[Difference]) -> list[Difference]:
    """The differences no entry covers."""
    return [d for d in found if not any(allowed.covers(d) for allowed in ALLOWED)]
