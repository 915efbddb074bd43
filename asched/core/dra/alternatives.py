"""Alternative devices for a pod's claims, for gangs whose placement depends on them.

Of devices that differ only in their names, one is tried.

Bounds  ALTERNATIVES_STEPS devices visited, in one go; evaluating a selector counts for several. The
        results of selectors are cached, so that the next call gets further.
"""

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Final

from asched.core.config.gates import DEFAULT_GATES
from asched.core.dra.allocator import DeviceSearch, OutOfSteps, Solution
from asched.core.dra.effort import Effort
from asched.core.dra.plan import AllocationError, ClaimPlan
from asched.core.dra.pools import Pool
from asched.core.dra.taken import Taken

#: Some 20 ms of search in the worst case.
ALTERNATIVES_STEPS: Final = 5_000


def alternatives(
    pools: tuple[Pool, ...],
    plans: Sequence[ClaimPlan],
    taken: Taken,
    node: tuple[str, Mapping[str, str]],
    effort: Effort,
    most: int,
    rules: Mapping[str, bool] = DEFAULT_GATES,
) -> tuple[list[Solution], bool]:
    """Up to `most` solutions (at least two) on a node (name and labels), that of `allocate` first,
    and whether these are all.
    """
    search = DeviceSearch(pools, plans, taken, node, ALTERNATIVES_STEPS, effort, most, rules)
    try:
        for _ in chain(search.prepare(), search.claim(0)):
            if effort.steps > ALTERNATIVES_STEPS:
                return search.solutions, False
    except (OutOfSteps, AllocationError):
        return search.solutions, False
    finally:
        search.end()
    return search.solutions, len(search.solutions) < most
