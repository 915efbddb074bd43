"""Rebalance: pods move for a unit that waits, and their new places are held before they leave.

A gang, or a pod by itself, may wait although all free room together would suffice. Then a plan is
searched for: pods that a controller creates again leave their nodes, each has a place elsewhere,
and the unit fits (`batch/rebalance/cycle.py`). No pod is evicted before its place is held.

Rejects   nothing, and runs at no point: it is listed at postFilter.
Retry     the unit is tried again once the pods have left.
Cost      for a pod that fits, nothing before the first unit waits.
Source    our own. Koordinator's PodMigrationJob reserves a place before it evicts a pod, KAI's
          consolidation knows the unit that waits
"""

from collections.abc import Sequence
from typing import ClassVar

from asched import names
from asched.core.config.args import RebalanceArgs
from asched.core.framework.points import Plugin
from asched.core.framework.registrations import Registration
from asched.core.model.kinds import JOB, Kind


class Rebalance(Plugin):
    name = names.REBALANCE
    listed_at: ClassVar[frozenset[str]] = frozenset({"postFilter"})
    kinds: ClassVar[tuple[Kind, ...]] = (JOB,)

    def __init__(self, args: RebalanceArgs | None) -> None:
        self.args = args or RebalanceArgs()

    def registrations(self) -> Sequence[Registration]:
        return ()
