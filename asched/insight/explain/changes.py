"""Find the smallest change of each kind that makes a pod fit. Each is verified by the filters.

    kind         what is changed                                  smallest is
    toleration   tolerations are added to the pod                 the fewest
    request      the pod asks for less of one resource            the least less
    device       one of its claims asks for fewer devices         the fewest fewer
    cordon       one node is uncordoned                           -
    maxSkew      one spread constraint of the pod is loosened     the least looser
    label        labels of one node are set or taken away         the fewest
    node         one more node like one that is there, empty      the least cpu, then memory
    eviction     pods up to a priority leave one node             the lowest priority

Left out are kinds that cannot help by themselves, and kinds whose smallest change was not found
within the bounds. No smaller change of a reported kind suffices. If further pods wait for the same
(equal pods, a gang), each change also has the number of these pods that would fit with it, tried
one after the other.

Bounds  those of `Deciding`, for each kind anew; TAKES_MAX further pods for each change.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Final

from asched.core.cluster.budget import OutOfTurn
from asched.core.cluster.nominated import Nominator
from asched.core.framework.runner import Runner
from asched.core.framework.status import PointError
from asched.core.model.pod import Pod
from asched.insight.explain.deciding import Deciding
from asched.insight.explain.of_nodes import cordons, evictions, labels, nodes
from asched.insight.explain.of_pod import devices, requests, skews, tolerations
from asched.insight.explain.suggestions import Kind, SuggestedChange, Way

KINDS: Final[tuple[Kind, ...]] = (
    tolerations,
    cordons,
    requests,
    devices,
    skews,
    labels,
    nodes,
    evictions,
)
#: Further pods that are tried. Each costs a decision for each change.
TAKES_MAX: Final = 32


def changes(
    runner: Runner, nominator: Nominator, pod: Pod, others: Sequence[Pod] = (), needed: int = 1
) -> list[SuggestedChange]:
    """The smallest change of each kind that makes a waiting pod fit. `others`: pods that wait for
    the same; with `needed` above 1, its gang, of which `needed` pods must fit.
    """
    return list(chain.from_iterable(in_parts(runner, nominator, pod, others, needed)))


def in_parts(
    runner: Runner, nominator: Nominator, pod: Pod, others: Sequence[Pod] = (), needed: int = 1
) -> Iterator[list[SuggestedChange]]:
    """Yield the changes of one kind after the other. Between two kinds the cluster may change; each
    kind is decided by the state at that time.
    """
    gang = others if needed > 1 else ()
    deciding = Deciding(runner, nominator, pod, gang, needed)
    try:
        with deciding.within_budget():
            if deciding.fits():
                return
    except (OutOfTurn, PointError):
        return
    for kind in KINDS:
        yield []
        found: list[SuggestedChange] = []
        try:
            with deciding.within_budget():
                some = others[:TAKES_MAX]
                found.extend(_with_others(deciding, way, some) for way in kind(deciding))
        except (OutOfTurn, PointError):
            pass
        yield found


def _with_others(deciding: Deciding, way: Way, others: Iterable[Pod]) -> SuggestedChange:
    """The change, with the number of further pods that fit; without it if that takes too long."""
    waiting = [way.of_pod(other) for other in others]
    if not waiting:
        return way.change
    try:
        with deciding.cluster.supposing() as suppose:
            way.of_cluster(suppose)
            takes = deciding.takes([way.of_pod(deciding.pod), *waiting])
    except OutOfTurn:
        return way.change
    return way.change._replace(takes=takes, of=1 + len(waiting))
