"""Monitor the watches of each kind, and act when changes are not received.

A kind is silent while its streams are not known to be complete (`last_complete_s` of its reflector,
seconds). Readiness fails after SILENT_S. A leader that receives no changes of pods or nodes while
its lease still renews would keep other replicas from scheduling: after HAND_OVER_S it releases the
lease and starts again.

Bounds  a check every CHECK_S; REFUSED_S until a refused first list ends the start.
"""

import asyncio
from collections.abc import Callable, Mapping
from time import monotonic
from typing import Final

from asched.core.model.kinds import NODE, POD, Kind
from asched.kube.errors import ClientError, Forbidden, Unauthorized
from asched.kube.watch import Reflector

#: A kind silent for longer makes the process unready: a working stream delivers every 20 s, a
#: silent one is detected after 25 s.
SILENT_S: Final = 30.0
#: A silent stream and the next one.
HAND_OVER_S: Final = 40.0
CHECK_S: Final = 1.0
#: A starting server refuses every request until it has loaded its RBAC rules.
REFUSED_S: Final = 15.0
#: No decision is possible without these.
CORE: Final = (POD, NODE)


class SilentWatchError(Exception):
    """The leader receives no changes."""


class StartOverError(Exception):
    """The cached state is invalid; the message says why. The lease is released."""


class ReflectorWatchdog:
    """Watches reflectors, whose number may grow."""

    def __init__(
        self, reflectors: Mapping[Kind, Reflector], clock: Callable[[], float] = monotonic
    ) -> None:
        self._reflectors = reflectors
        self._clock = clock
        #: kind -> (time of the first failure, reason); ignored once changes are received
        self._failing: dict[Kind, tuple[float, str]] = {}

    def failed(self, kind: Kind, error: ClientError) -> None:
        """A list failed, or a watch was refused."""
        since_s = self._failing[kind][0] if self.why(kind) else self._clock()
        self._failing[kind] = (since_s, str(error))

    def why(self, kind: Kind) -> str:
        """Why a kind cannot be followed; "" if unknown."""
        since_s, why = self._failing.get(kind, (0.0, ""))
        last_complete_s = self._reflectors[kind].last_complete_s
        return why if last_complete_s is None or last_complete_s <= since_s else ""

    def refusal(self, kind: Kind, error: ClientError, url: str) -> str:
        """One line with the fix if requests are refused for longer than a server takes to start;
        else "", as waiting may help.
        """
        refused = isinstance(error, Unauthorized | Forbidden)
        if not refused or self._clock() - self._failing[kind][0] < REFUSED_S:
            return ""
        if isinstance(error, Unauthorized):
            return (
                f"{url} does not accept the credentials ({error});"
                " renew the token or certificate in the kubeconfig"
            )
        group = kind.group_version.rpartition("/")[0] or "core"
        return (
            f'may not list or watch {kind.plural} (API group "{group}"): {error};'
            " grant the verbs list and watch, as deploy/base/rbac.yaml does"
        )

    def silent_s(self, kind: Kind) -> float:
        """For how long a kind that was complete has received nothing."""
        reflector = self._reflectors[kind]
        if reflector.is_absent or reflector.last_complete_s is None:
            return 0.0
        return max(self._clock() - reflector.last_complete_s, 0.0)

    def readiness_problem(self) -> str:
        """The message for readiness; "" if all kinds are received."""
        for kind in self._reflectors:
            silent_s = self.silent_s(kind)
            if silent_s >= SILENT_S:
                why = self.why(kind)
                return f"no events of {kind.plural} for {silent_s:.0f} s{why and f': {why}'}"
        return ""

    async def watch_over(self, is_leading: Callable[[], bool]) -> None:
        """Raises SilentWatchError when a leader receives nothing of a kind in CORE."""
        while True:
            await asyncio.sleep(CHECK_S)
            for kind in CORE:
                if kind not in self._reflectors or not is_leading():
                    continue
                silent_s = self.silent_s(kind)
                if silent_s >= HAND_OVER_S:
                    raise SilentWatchError(
                        f"the lease renews, but no events of {kind.plural} arrived for"
                        f" {silent_s:.0f} s; another replica may have a working connection"
                    )
