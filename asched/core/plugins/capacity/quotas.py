"""ElasticQuotas as numbers: what a namespace may use, is guaranteed, and uses.

A namespace has one quota, by name the first; none if it has a LocalQueue of Kueue, which keeps its
own. In a list that is given, a native resource that is missing is 0; an extended one is unlimited
in `max`, and 0 in `min`. A `min` that is not given is 0, a `max` unlimited.

Source  kubernetes-sigs/scheduler-plugins pkg/capacityscheduling/elasticquota.go
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple

from asched.core.model.kinds import ELASTIC_QUOTA, LOCAL_QUEUE
from asched.core.model.pod import ResourceList
from asched.core.model.quantity import QuantityError
from asched.core.model.quota import ElasticQuota
from asched.core.model.requests import nano, to_units
from asched.core.state.cluster import Cluster

#: Resources that every list speaks of; of the others only those that a pod asks for matter.
NATIVE: Final = ("cpu", "memory", "ephemeral-storage")

Amounts = Mapping[str, int]


class Quota(NamedTuple):
    """`max` None: unlimited."""

    namespace: str
    min: Amounts
    max: Amounts | None


def exceeds(used: Amounts, more: Amounts, limit: Amounts) -> bool:
    """Whether both together are more than is guaranteed, in what is native or asked for as `more`:
    what the limit does not name is 0.
    """
    asked = (*NATIVE, *more)
    return any(used.get(r, 0) + more.get(r, 0) > limit.get(r, 0) for r in asked)


def exceeds_max(used: Amounts, more: Amounts, limit: Amounts | None) -> bool:
    """The same for the most there may be: extended resources that it does not name are free."""
    if limit is None:
        return False
    asked = (*NATIVE, *(r for r in more if r in limit))
    return any(used.get(r, 0) + more.get(r, 0) > limit.get(r, 0) for r in asked)


def is_borrowing(quota: Quota, used: Amounts) -> bool:
    """Whether a namespace uses more than it is guaranteed."""
    return exceeds({}, used, quota.min)


def total(parts: Iterable[Amounts]) -> dict[str, int]:
    found: dict[str, int] = {}
    for part in parts:
        for name, amount in part.items():
            found[name] = found.get(name, 0) + amount
    return found


class Quotas:
    """Those in force, by namespace: for `Cluster.singleton`."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._epochs = (-1, -1)
        self._quotas: dict[str, Quota] = {}
        self._guaranteed: dict[str, int] = {}
        #: namespaces whose quota gives way to Kueue's
        self.left_to_kueue: frozenset[str] = frozenset()

    def of(self, namespace: str) -> Quota | None:
        self._catch_up()
        return self._quotas.get(namespace)

    def __iter__(self) -> Iterator[Quota]:
        self._catch_up()
        return iter(self._quotas.values())

    @property
    def guaranteed(self) -> Amounts:
        """The sum of all that is guaranteed."""
        self._catch_up()
        return self._guaranteed

    def used(self) -> dict[str, int]:
        """What namespaces with a quota use together."""
        usage = self._cluster.usage.kept()
        return total(usage.of(quota.namespace) for quota in self)

    def _catch_up(self) -> None:
        cluster = self._cluster
        epochs = cluster.epoch_of(ELASTIC_QUOTA), cluster.epoch_of(LOCAL_QUEUE)
        if epochs == self._epochs:
            return
        self._epochs = epochs
        queues = {queue.metadata.namespace for queue in cluster.all(LOCAL_QUEUE).values()}
        objects: Mapping[str, ElasticQuota] = cluster.all(ELASTIC_QUOTA)
        self._quotas, left = {}, set()
        for key in sorted(objects):
            namespace, spec = objects[key].metadata.namespace, objects[key].spec
            if namespace in queues:
                left.add(namespace)
            elif namespace not in self._quotas:
                most = None if spec.max is None else _amounts(spec.max)
                self._quotas[namespace] = Quota(namespace, _amounts(spec.min or {}), most)
        self.left_to_kueue = frozenset(left)
        self._guaranteed = total(quota.min for quota in self._quotas.values())


def _amounts(resources: ResourceList) -> dict[str, int]:
    """In the units of the columns, zeros too; what cannot be read is 0, as if it was forbidden."""
    exact = {}
    for name, quantity in resources.items():
        try:
            exact[name] = nano(quantity)
        except QuantityError:
            exact[name] = 0
    return to_units(exact)
