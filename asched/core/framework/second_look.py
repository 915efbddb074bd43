"""Dry runs: whether an unschedulable pod would fit now, for extra events before it is requeued, and
whether an assumed pod would get its node again, before its binding is repeated.

Only the filter half of an attempt (`Fitting`), without measurements.
"""

from asched.core.cluster.pods import PodInfo
from asched.core.framework.results.classes import ClassState
from asched.core.framework.results.nominated import is_plain
from asched.core.framework.runner import Runner
from asched.core.framework.status import MISTAKES
from asched.core.model.pod import Pod

NO_PLUGINS: frozenset[str] = frozenset()


def blamed(runner: Runner, pod: Pod, left: str = "") -> frozenset[str] | None:
    """The plugins that reject a pod, with nominated pods; None if a node is left.

    `left`: the only change since the pod did not fit is that a pod left this node. If pods matter
    by their amounts only, no other node can have become feasible, and only this one is checked.
    Also None if only an attempt can decide: an extender takes part, or a plugin raises.
    """
    if not runner.cluster.nodes.count:
        return NO_PLUGINS
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
        return runner.rejection(info, state, fitting.refused.by_trial).unschedulable_plugins
    except MISTAKES:  # the attempt reports it
        return None
    finally:
        work.meter = meter


def still_takes(runner: Runner, pod: PodInfo) -> bool:
    """Whether the node of an assumed pod would accept it now, its own usage not counted. Promises
    to other pods do not matter: they were made with the pod there.
    """
    row = pod.row
    if row < 0:  # the node was deleted
        return False
    try:
        fitting = runner.fitting(pod, spares=True)
        with runner.cluster.supposing().gone((pod,), row):
            return fitting.status_on(row, heeds_promises=False) is None
    except MISTAKES:  # undecidable: not sent
        return False


def _blamed_at(runner: Runner, pod: PodInfo, state: ClassState, node: str) -> frozenset[str] | None:
    """As `blamed` for one node; a node that PreFilter excluded stays excluded."""
    row = runner.cluster.nodes.row_of.get(node)
    rows = state.outcome.rows
    if row is None or (rows is not None and row not in rows):
        return NO_PLUGINS
    return runner.nominated_pods.blamed_at(pod, state, row)
