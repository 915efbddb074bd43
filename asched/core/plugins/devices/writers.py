"""Serialize writes of a claim that pods of one group share: each write names the version before it,
so that all but one of several concurrent writes would be refused.

Bounds  one entry per claim that is being written; no pod waits longer than TURN_S_MAX.
"""

from collections.abc import Generator
from typing import Final

from asched.core.cluster.facts import Answer, TimedOut
from asched.core.framework.effects import Effect, WaitFor
from asched.core.model.claim import ResourceClaim
from asched.core.model.kinds import RESOURCE_CLAIM
from asched.core.model.pod import Pod

#: A write takes milliseconds. A pod that has waited so long writes all the same, and gets a
#: conflict.
TURN_S_MAX: Final = 5.0


class Writers:
    """Uid of the claim -> uid of the pod that writes it."""

    def __init__(self) -> None:
        self._writing: dict[str, str] = {}

    def begin(self, claim: ResourceClaim, pod: Pod) -> Generator[Effect, Answer, None]:
        """Wait until no other pod writes the claim."""
        while claim.uid in self._writing:
            answer = yield WaitFor(
                ready=lambda: claim.uid not in self._writing,
                timeout_s=TURN_S_MAX,
                on=((RESOURCE_CLAIM.resource, claim.metadata.key),),
            )
            if isinstance(answer, TimedOut):
                break
        self._writing[claim.uid] = pod.uid

    def end(self, claim: ResourceClaim, pod: Pod) -> None:
        if self._writing.get(claim.uid) == pod.uid:
            del self._writing[claim.uid]
