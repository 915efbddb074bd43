"""All extensions of the scheduling cycle, each with the package that does its work."""

from collections.abc import Generator, Iterator, Sequence

from asched.batch.backfill.starts import PromisedStarts
from asched.batch.groups.cycle import GroupUnits
from asched.batch.provisioning.cycle import HeldPlaces
from asched.batch.quota_warnings import QuotaWarnings
from asched.batch.resizes import DeferredResizes
from asched.batch.scale_up import cycle as scale_ups
from asched.core.cluster.facts import Answer
from asched.core.config.args import GroupScaleUpArgs
from asched.core.cycle.context import Attempt
from asched.core.cycle.extension import Extension, Work
from asched.core.framework.effects import Effect


class NewNodes(Extension):
    """GroupScaleUp: nodes are requested for gangs that do not fit."""

    name = "scale-ups"

    def is_used(self) -> bool:
        return bool(self.context.args_by_profile(GroupScaleUpArgs))

    def rejected(self, attempts: Sequence[Attempt]) -> Generator[Effect, Answer, str]:
        return scale_ups.request_nodes(self.context, attempts)

    def begin_turn(self) -> Iterator[Work]:
        return scale_ups.due(self.context)

    def next_deadline_s(self) -> float | None:
        return scale_ups.next_s(self.context.cluster)


EXTENSIONS: tuple[type[Extension], ...] = (
    GroupUnits,
    QuotaWarnings,
    PromisedStarts,
    HeldPlaces,
    DeferredResizes,
    NewNodes,
)
