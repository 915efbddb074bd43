"""Extenders as the runner and preemption see them; `core/extender/consult.py` is what they are."""

from collections.abc import Generator, Mapping
from typing import Protocol

import numpy as np
import numpy.typing as npt

from asched.core.framework.effects import Effect
from asched.core.framework.points import BindPlugin
from asched.core.framework.status import Status
from asched.core.framework.trial import Candidate
from asched.core.state.facts import Answer
from asched.core.state.pods import PodInfo

I64 = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


class ExtenderChain(Protocol):
    """The HTTP extenders of a configuration, in the order of use.

    Their generators raise PointError where one fails that must not be ignored.
    """

    has_filter: bool
    has_prioritize: bool
    #: whether anybody wants to hear of preemption
    has_preempt: bool

    def is_interested(self, pod: PodInfo) -> bool:
        """Whether the pod's cycle has anything to ask."""

    def filter(
        self, pod: PodInfo, feasible: Mask
    ) -> Generator[Effect, Answer, tuple[Mask, Mapping[int, Status]]]:
        """(rows left as they are once the answers are in, statuses of the rows refused)."""

    def note_in_vain(self, pod: PodInfo) -> None:
        """Room was made for the pod on a node that an extender has just refused."""

    def objection(self, pod: PodInfo, now_s: float) -> str:
        """Why nobody may be evicted for the pod just now; empty if nothing speaks against it."""

    def prioritize(self, pod: PodInfo, feasible: Mask) -> Generator[Effect, Answer, I64 | None]:
        """int64[N] to be added to the totals, None if nobody had an opinion."""

    def preempt(
        self, pod: PodInfo, candidates: Mapping[str, Candidate]
    ) -> Generator[Effect, Answer, Mapping[str, Candidate]]:
        """What the extenders that are interested in the pod leave of the candidates (by node
        name), victims changed or nodes dropped.

        Raises PointError if one that must not be ignored fails.
        """

    def binder(self, pod: PodInfo) -> BindPlugin | None:
        """The first extender that binds and is interested in the pod."""
