"""Would an unschedulable pod fit now? Asked about extra events, before the pod is woken.
And would one that holds a place get it again? Asked before its binding is sent once more.

It is the filter half of an attempt (`Fitting`) and nothing more; nor is it measured.
"""

from asched.core.framework.results.classes import ClassState
from asched.core.framework.results.nominated_filter import is_plain
from asched.core.framework.runner import Runner
from asched.core.framework.status import MISTAKES
from asched.core.model.pod import Pod
from asched.core.state.pods import PodInfo

NOBODY: frozenset[str] = frozenset()


def blamed(runner: Runner, pod: Pod, left: str = "") -> frozenset[str] | None:
    """The plugins that stand against a pod, nominated pods respected; None if some node is left.

    `left`: all that happened since the pod did not fit is that a pod left this node. Where pods
    matter by their amounts alone, no other node can have become fit then, and it is not asked.
    None, too, where only an attempt can tell: an extender has a say, or a plugin raises.
    """
    if not runner.cluster.nodes.count:
        return NOBODY
    work = runner.cache.work
    meter, work.meter = work.meter, None
    try:
        info = runner.cluster.classes.info_of(pod)
        fitting = runner.fitting(info)
        state = fitting.state
        if fitting.rejection is None:
            if state.feasible_count and runner.consults(info):
                return None
            if left and is_plain(info, state):
                return _blamed_at(runner, info, state, left)
            if fitting.count:
                return None
        return runner.rejection(info, state, fitting.refused.told).unschedulable_plugins
    except MISTAKES:  # whatever it is, the attempt reports it where it belongs
        return None
    finally:
        work.meter = meter


def still_takes(runner: Runner, pod: PodInfo) -> bool:
    """Whether the node on which an assumed pod is counted would take it now, its own place left
    out. Promises to others do not matter: they were made with the pod there.
    """
    row = pod.row
    if row < 0:  # the node went
        return False
    try:
        fitting = runner.fitting(pod, spares=True)
        with runner.cluster.supposing().gone((pod,), row):
            return fitting.status_on(row, heeds_promises=False) is None
    except MISTAKES:  # what cannot be judged is not sent
        return False


def _blamed_at(runner: Runner, pod: PodInfo, state: ClassState, node: str) -> frozenset[str] | None:
    """The same for one node alone; a node that PreFilter ruled out is still ruled out."""
    row = runner.cluster.nodes.row_of.get(node)
    rows = state.outcome.rows
    if row is None or (rows is not None and row not in rows):
        return NOBODY
    return runner.nominated_pods.blamed_at(pod, state, row)
