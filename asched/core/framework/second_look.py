"""Would a pod at rest fit now? Asked about changes that hints overlook, before the pod is woken.

It is the filter half of an attempt and nothing more: kept answers are brought up to date (the
attempt that may follow finds them so), nothing is measured, scored, reserved or written.
"""

import numpy as np

from asched.core.framework.runner import Runner
from asched.core.model.pod import Pod


def fits(runner: Runner, pod: Pod) -> bool:
    """Whether some node passes every filter, nominated pods respected.

    True where only an attempt can tell: an extender has a say, or a plugin raises.
    """
    if not runner.cluster.nodes.count:
        return False
    work = runner.cache.work
    meter, work.meter = work.meter, None
    try:
        info = runner.cluster.classes.info_of(pod)
        state = runner.cache.state_of(info)
        if state.update(info).rejection is not None or not state.feasible_count:
            return False
        if runner.consults(info):
            return True
        refused = runner.overlay.judge(info, state)
        left = state.feasible.copy()
        left[list(refused)] = False
        return bool(np.any(left))
    except Exception:  # noqa: BLE001 - whatever it is, the attempt reports it where it belongs
        return True
    finally:
        work.meter = meter
