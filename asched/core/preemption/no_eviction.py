"""Results of plugins that evict no pod, in kube-scheduler's words.

Source  kubernetes/kubernetes v1.36 pkg/scheduler/framework/plugins/defaultpreemption
        (PostFilter, PodEligibleToPreemptOthers)
"""

from typing import Final

from asched.core.framework.points import Nomination, PostFilterResult
from asched.core.framework.status import Status

NEVER: Final = "not eligible due to preemptionPolicy=Never."
VICTIMS_LEAVING: Final = "not eligible due to a terminating pod on the nominated node."


def prefixed(status: Status, nomination: Nomination = Nomination()) -> PostFilterResult:  # noqa: B008
    """The same status with a message that begins with "preemption"."""
    return PostFilterResult(Status(status.code, (f"preemption: {status.message}",)), nomination)
