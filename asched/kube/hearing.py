"""How well the cluster is heard, kind by kind, and what follows if it is not.

A kind is deaf for as long as its streams were not known to tell everything (`heard_s` of its
reflector, seconds). Readiness tells of it after DEAF_S. A leader that does not hear of pods or
nodes while its lease still renews would keep everybody else from scheduling: after HAND_OVER_S it
gives the lease away and begins anew.

Bounds  a look every LOOK_S; REFUSED_S until a refused first list ends the start.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping
from time import monotonic
from typing import Final

from asched.core.model.kinds import NODE, POD, Kind
from asched.kube.errors import ClientError, Forbidden, Unauthorized
from asched.kube.watch import Reflector

log = logging.getLogger("asched.host")

#: As long may a kind be deaf before we no longer call ourselves ready: a sound stream speaks every
#: 20 s, a silent one is found out after 25 s.
DEAF_S: Final = 30.0
#: A silent stream and the one after it.
HAND_OVER_S: Final = 40.0
LOOK_S: Final = 1.0
#: A server that starts refuses everybody until it has read its own rules.
REFUSED_S: Final = 15.0
#: Without these nothing can be decided.
CORE: Final = (POD, NODE)


class DeafError(Exception):
    """We lead and do not hear."""


class StartOverError(Exception):
    """What is known of the cluster is worth nothing; the message says why. The lease is free."""


class ReflectorWatchdog:
    """Watches over reflectors, which may become more."""

    def __init__(
        self, reflectors: Mapping[Kind, Reflector], clock: Callable[[], float] = monotonic
    ) -> None:
        self._reflectors = reflectors
        self._clock = clock
        #: kind -> (since when it fails, why); what was heard of since does not count
        self._failing: dict[Kind, tuple[float, str]] = {}

    def failed(self, kind: Kind, error: ClientError) -> None:
        """A list failed, or a watch was refused."""
        since_s = self._failing[kind][0] if self.why(kind) else self._clock()
        self._failing[kind] = (since_s, str(error))

    def why(self, kind: Kind) -> str:
        """What keeps us from following a kind; "" if nothing is known."""
        since_s, why = self._failing.get(kind, (0.0, ""))
        heard_s = self._reflectors[kind].heard_s
        return why if heard_s is None or heard_s <= since_s else ""

    def refusal(self, kind: Kind, error: ClientError, url: str) -> str:
        """One line with its cure if we are refused for longer than a server takes to start; else
        "": waiting may help.
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

    def deaf_s(self, kind: Kind) -> float:
        """For how long nothing is known of a kind that was known once."""
        reflector = self._reflectors[kind]
        if reflector.is_absent or reflector.heard_s is None:
            return 0.0
        return max(self._clock() - reflector.heard_s, 0.0)

    def trouble(self) -> str:
        """What readiness says of it; "" if all kinds are heard."""
        for kind in self._reflectors:
            deaf_s = self.deaf_s(kind)
            if deaf_s >= DEAF_S:
                why = self.why(kind)
                return f"not heard of {kind.plural} for {deaf_s:.0f} s{why and f': {why}'}"
        return ""

    async def watch_over(self, is_leading: Callable[[], bool]) -> None:
        """Raises DeafError once we lead and hear nothing of a kind that decisions rest on."""
        while True:
            await asyncio.sleep(LOOK_S)
            for kind in CORE:
                if kind not in self._reflectors or not is_leading():
                    continue
                deaf_s = self.deaf_s(kind)
                if deaf_s >= HAND_OVER_S:
                    raise DeafError(
                        f"the lease renews, but nothing was heard of {kind.plural} for"
                        f" {deaf_s:.0f} s; somebody else may hear better"
                    )
