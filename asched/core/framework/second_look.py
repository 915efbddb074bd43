"""Whether an assumed pod would get its node again, before its binding is repeated: the filter half
of an attempt (`Fitting`).
"""

from asched.core.cluster.pods import PodInfo
from asched.core.framework.runner import Runner
from asched.core.framework.status import MISTAKES


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
