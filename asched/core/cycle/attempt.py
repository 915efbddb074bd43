"""An attempt at one pod."""

import msgspec

from asched.core.cluster.pods import PodInfo
from asched.core.cycle.history import StoredEntry
from asched.core.cycle.hypothetical_gang import HypotheticalGang
from asched.core.framework.effects import EmitEvent, PodRef, ref_of
from asched.core.framework.points import PreBindPlugin
from asched.core.framework.runner import Runner
from asched.core.model.kinds import POD
from asched.core.model.pod import Pod
from asched.core.queue.queued import QueuedPod


class Attempt(msgspec.Struct):
    """One attempt at one pod. The id seeds its tie-breaks; times are in seconds."""

    id: int
    queued: QueuedPod
    info: PodInfo
    runner: Runner
    started_s: float  # of the duration counter
    evaluated: int = 0  # nodes that were filtered
    feasible: int = 0  # nodes that the pod fits on
    slices: int = 0  # slices of the budget that are used up
    pre_binds: tuple[PreBindPlugin, ...] = ()  # plugins that may have work to do
    #: None for a real pod. A ProvisioningRequest is tried with pods that do not exist: they
    #: are never obsolete and never bound, and this gang permits them.
    hypothetical_gang: HypotheticalGang | None = None
    history_entry: StoredEntry | None = None  # its newest entry in the history

    @property
    def pod(self) -> Pod:
        return self.info.pod

    @property
    def profile(self) -> str:
        return self.runner.profile.scheduler_name

    @property
    def consults(self) -> bool:
        """Whether extenders are called for the pod."""
        return self.runner.consults(self.info)

    @property
    def is_measured(self) -> bool:
        """Whether its plugins are timed."""
        meter = self.runner.cache.work.meter
        return meter is not None and meter.is_sampled

    @property
    def ref(self) -> PodRef:
        return ref_of(self.info.pod)

    def emit(self, type_: str, reason: str, action: str, note: str) -> EmitEvent:
        """An event about the attempt's pod."""
        return EmitEvent(
            regarding=POD.reference(self.info.pod.metadata),
            type=type_,
            reason=reason,
            action=action,
            note=note,
            reporting_controller=self.info.pod.spec.scheduler_name,
        )
