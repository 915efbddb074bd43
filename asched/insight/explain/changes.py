"""The smallest change of each kind that makes a pod fit, found by deciding and never by guessing.

    kind         what is changed                                  smallest is
    toleration   tolerations are added to the pod                 the fewest
    request      the pod asks for less of one resource            the least less
    device       one of its claims asks for fewer devices         the fewest fewer
    maxSkew      one spread constraint of the pod is loosened     the least looser
    volume       volumes it is bound to reach another place       the fewest
    label        labels of one node are set or taken away         the fewest
    node         one more node like one that is there, empty      the least cpu, then memory
    eviction     pods up to a priority leave one node             the lowest priority

A kind that cannot help by itself is left out, and so is one whose smallest change was not found
within the bounds: whatever is told was decided, and nothing smaller of its kind does. Where others
wait for the same (equal pods, a gang), each change also tells how many of them would fit with it,
tried one after the other.

Bounds  those of `Deciding`, for each kind anew; TAKES_MAX of the others for each change.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Final

from asched.core.framework.runner import Runner
from asched.core.framework.status import PointError
from asched.core.model.pod import Pod
from asched.core.state.budget import OutOfTurn
from asched.core.state.nominated import Nominator
from asched.insight.explain.deciding import Deciding
from asched.insight.explain.of_nodes import evictions, labels, nodes
from asched.insight.explain.of_pod import devices, requests, skews, tolerations
from asched.insight.explain.of_volumes import volumes
from asched.insight.explain.ways import Kind, SuggestedChange, Way

KINDS: Final[tuple[Kind, ...]] = (
    tolerations,
    requests,
    devices,
    skews,
    volumes,
    labels,
    nodes,
    evictions,
)
#: Pods that are tried beside the one that is asked about. Each costs a decision for each change.
TAKES_MAX: Final = 32


def changes(
    runner: Runner, nominator: Nominator, pod: Pod, others: Sequence[Pod] = (), needed: int = 1
) -> list[SuggestedChange]:
    """The smallest change of each kind that makes a waiting pod fit. `others` wait for the same;
    with more than one `needed`, they are its gang, and so many of them must fit.
    """
    return list(chain.from_iterable(in_parts(runner, nominator, pod, others, needed)))


def in_parts(
    runner: Runner, nominator: Nominator, pod: Pod, others: Sequence[Pod] = (), needed: int = 1
) -> Iterator[list[SuggestedChange]]:
    """The same, one kind after the other. In between nothing is supposed, and the cluster may
    move: each kind is decided about as things stand then.
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
    """The change, and how many of the others fit besides; that is not told if it takes too long."""
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
