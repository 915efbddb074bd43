"""All extensions of the scheduling cycle, each with the package that does its work."""

from asched.batch.backfill.starts import PromisedStarts
from asched.batch.groups.cycle import GroupUnits
from asched.batch.provisioning.cycle import HeldPlaces
from asched.batch.rebalance.cycle import NodesToDrain, PodMoves, UnitsThatWait
from asched.batch.resizes import DeferredResizes
from asched.batch.scale_up.cycle import NewNodes
from asched.core.cycle.extension import Extension

EXTENSIONS: tuple[type[Extension], ...] = (
    GroupUnits,
    PromisedStarts,
    HeldPlaces,
    DeferredResizes,
    NewNodes,
    UnitsThatWait,
    NodesToDrain,
    PodMoves,
)
