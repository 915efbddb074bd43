"""Who writes a claim that pods of one group share: one pod after the other, since each write is
tied to the version before it, and all but one at a time would be in vain.

Bounds  one entry per claim that is being written; nobody waits longer than TURN_S_MAX.
"""

from collections.abc import Generator
from typing import Final

from asched.core.framework.effects import Effect, WaitFor
from asched.core.model.claim import ResourceClaim
from asched.core.model.kinds import RESOURCE_CLAIM
from asched.core.model.pod import Pod
from asched.core.state.facts import Answer, TimedOut

#: A write takes milliseconds. Who waited so long writes all the same, and meets a conflict.
TURN_S_MAX: Final = 5.0


class Writers:
    """By uid of the claim, the uid of the pod."""

    def __init__(self) -> None:
        self._writing: dict[str, str] = {}

    def begin(self, claim: ResourceClaim, pod: Pod) -> Generator[Effect, Answer, None]:
        """Wait for the turn of a pod."""
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
