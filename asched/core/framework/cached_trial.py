"""Trials of PostFilter plugins on the cached results of a class."""

from asched.core.cluster.pods import PodInfo
from asched.core.framework.preemption_trial import Trial
from asched.core.framework.results.class_state import ClassState
from asched.core.framework.results.nominated import NominatedPods
from asched.core.framework.status import Status


class CachedTrial(Trial, frozen=True, kw_only=True):
    """`state`: the verdicts of the pod's class."""

    state: ClassState
    nominated_pods: NominatedPods

    def status_of(self, pod: PodInfo, row: int) -> Status | None:
        return self.nominated_pods.status_with(pod, self.state, row)


def cached(trial: Trial) -> CachedTrial:
    """The trial as the framework made it; it makes no other kind."""
    assert isinstance(trial, CachedTrial)
    return trial
