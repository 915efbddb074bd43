"""The extenders of a configuration: HTTP client, chain for the runners, and whole objects.

    prepare ─> whole objects that were not stored so far are listed ─> adopt, between two turns

Running scheduling cycles end with the extenders they began with; the client calls those, too.
"""

from collections.abc import Sequence

from asched.core.cluster.cluster import Cluster
from asched.core.config.construct import in_order_of_use
from asched.core.config.v1 import Extender
from asched.core.extender.consult import Chain, wants_victims, whole_kinds
from asched.core.model.kinds import Kind
from asched.kube.extenders import ExtenderObserver, Extenders, observe_nothing
from asched.kube.raw_objects import RawObjects


class Consultants:
    """The current extenders. Create it inside the loop, and close it.

    Raises ConnectError if TLS files of an extender cannot be used.
    """

    def __init__(
        self,
        extenders: Sequence[Extender],
        cluster: Cluster,
        observe: ExtenderObserver = observe_nothing,
    ) -> None:
        self._cluster = cluster
        self._extenders = tuple(extenders)
        self._chain = _chain_of(self._extenders, cluster)
        self.raw_objects = RawObjects()
        _want(self.raw_objects, self._extenders)
        self.client = Extenders(in_order_of_use(extenders), self.raw_objects, observe=observe)

    def chain(self, extenders: Sequence[Extender]) -> Chain | None:
        """The chain for the runners. It is the same object while the configuration is unchanged,
        since it remembers failed preemptions.
        """
        if tuple(extenders) == self._extenders:
            return self._chain
        return _chain_of(extenders, self._cluster)

    def prepare(self, extenders: Sequence[Extender]) -> tuple[Kind, ...]:
        """Store the whole objects that these extenders and the current ones need; returns the kinds
        that must be listed again. Raises ConnectError.
        """
        Extenders.check(extenders)
        return _want(self.raw_objects, (*self._extenders, *extenders))

    def adopt(self, extenders: Sequence[Extender], chain: Chain | None) -> None:
        """Call these extenders from now on, through `chain`. Raises ConnectError."""
        self.client.adopt(in_order_of_use(extenders))
        self._extenders, self._chain = tuple(extenders), chain

    def settle(self) -> None:
        """Stop storing objects that only former extenders needed; call it when none of their cycles
        is running.
        """
        _want(self.raw_objects, self._extenders)

    async def close(self) -> None:
        await self.client.close()


def _chain_of(extenders: Sequence[Extender], cluster: Cluster) -> Chain | None:
    return Chain(in_order_of_use(extenders), cluster) if extenders else None


def _want(raw_objects: RawObjects, extenders: Sequence[Extender]) -> tuple[Kind, ...]:
    kinds = whole_kinds(extenders)
    return raw_objects.want(kinds, with_placed_pods=wants_victims(extenders))
