"""Would a pod at rest fit now? Asked about changes that hints overlook, before the pod is woken.

It is the filter half of an attempt and nothing more: kept answers are brought up to date (the
attempt that may follow finds them so), nothing is measured, scored, reserved or written.
"""

from asched.core.framework.runner import Runner
from asched.core.framework.status import Status
from asched.core.model.pod import Pod

NOBODY: frozenset[str] = frozenset()


def blamed(runner: Runner, pod: Pod) -> frozenset[str] | None:
    """The plugins that stand against a pod, nominated pods respected; None if some node is left.

    None, too, where only an attempt can tell: an extender has a say, or a plugin raises.
    """
    if not runner.cluster.nodes.count:
        return NOBODY
    work = runner.cache.work
    meter, work.meter = work.meter, None
    try:
        info = runner.cluster.classes.info_of(pod)
        state = runner.cache.state_of(info)
        told: dict[int, Status] = {}
        if state.update(info).rejection is None and state.feasible_count:
            if runner.consults(info):
                return None
            rows, told = runner.overlay.refused(info, state)
            if len(rows) < state.feasible_count:
                return None
        return runner.rejection(info, state, told).unschedulable_plugins
    except Exception:  # noqa: BLE001 - whatever it is, the attempt reports it where it belongs
        return None
    finally:
        work.meter = meter
