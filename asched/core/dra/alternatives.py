"""Other devices for a pod's claims than the first that will do, for gangs to which they matter.

Devices that differ in nothing but their names leave others the same: of these only one is tried at
a time.

Bounds  ALTERNATIVES_STEPS devices looked at, in one go; selectors that have to be run count for
        several. What these said is kept, so that whoever asks again comes further.
"""

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Final

from asched.core.dra.allocator import DeviceSearch, OutOfSteps, Solution
from asched.core.dra.effort import Effort
from asched.core.dra.plan import AllocationError, ClaimPlan
from asched.core.dra.pools import Pool
from asched.core.dra.taken import Taken

#: Some 20 ms of the search at its slowest.
ALTERNATIVES_STEPS: Final = 5_000


def alternatives(
    pools: tuple[Pool, ...],
    plans: Sequence[ClaimPlan],
    taken: Taken,
    node: tuple[str, Mapping[str, str]],
    effort: Effort,
    most: int,
) -> tuple[list[Solution], bool]:
    """Up to `most` solutions (two at least are asked for) on a node (name and labels), that of
    `allocate` first, and whether there are no more.
    """
    search = DeviceSearch(pools, plans, taken, node, ALTERNATIVES_STEPS, effort, most)
    try:
        for _ in chain(search.prepare(), search.claim(0)):
            if effort.steps > ALTERNATIVES_STEPS:
                return search.solutions, False
    except (OutOfSteps, AllocationError):
        return search.solutions, False
    finally:
        search.end()
    return search.solutions, len(search.solutions) < most
