"""Extenders for the runner and preemption; `core/extender/consult.py` implements them."""

from collections.abc import Generator, Mapping
from typing import Protocol

import numpy as np
import numpy.typing as npt

from asched.core.cluster.facts import Answer
from asched.core.cluster.pods import PodInfo
from asched.core.framework.effects import Effect
from asched.core.framework.points import BindPlugin
from asched.core.framework.status import Status
from asched.core.framework.trial import Candidate

I64 = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


class ExtenderChain(Protocol):
    """The HTTP extenders of a configuration, in the order of use.

    Their generators raise PointError if an extender fails that must not be ignored.
    """

    has_filter: bool
    has_prioritize: bool
    #: whether any extender takes part in preemption
    has_preempt: bool

    def is_interested(self, pod: PodInfo) -> bool:
        """Whether any extender takes part in the pod's cycle."""

    def filter(
        self, pod: PodInfo, feasible: Mask
    ) -> Generator[Effect, Answer, tuple[Mask, Mapping[int, Status]]]:
        """(rows left by the extenders, statuses of the rejected rows)."""

    def note_in_vain(self, pod: PodInfo) -> None:
        """Record that an extender rejected the node on which room was made for the pod."""

    def objection(self, pod: PodInfo, now_s: float) -> str:
        """Why no pod may be evicted for this pod now; empty if eviction is allowed."""

    def prioritize(self, pod: PodInfo, feasible: Mask) -> Generator[Effect, Answer, I64 | None]:
        """int64[N] to be added to the totals, None if no extender scores."""

    def finds_victims(self, pod: PodInfo) -> bool:
        """Whether an extender may name victims for the pod."""

    def preempt(
        self, pod: PodInfo, candidates: Mapping[str, Candidate]
    ) -> Generator[Effect, Answer, Mapping[str, Candidate]]:
        """The candidates (by node name) that the extenders interested in the pod accept, with
        changed victims or without some nodes; those without victims stay if an extender names some.
        Raises PointError if an extender that must not be ignored fails.
        """

    def binder(self, pod: PodInfo) -> BindPlugin | None:
        """The first extender that binds and is interested in the pod."""
