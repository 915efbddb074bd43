"""ElasticQuotas as numbers: what a namespace may use, is guaranteed, and uses.

A namespace has one quota, the first by name. It also counts if there is a LocalQueue of Kueue,
which has its own quota: a client that may create LocalQueues is not free of the ElasticQuota. In a
list that is given, a native resource that is missing is 0; an extended one is unlimited in `max`,
and 0 in `min`. A `min` that is not given is 0, a `max` unlimited.

Source  kubernetes-sigs/scheduler-plugins pkg/capacityscheduling/elasticquota.go
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Final, NamedTuple

from asched.core.cluster.cluster import Cluster
from asched.core.model.kinds import ELASTIC_QUOTA
from asched.core.model.pod import ResourceList
from asched.core.model.quantity import QuantityError
from asched.core.model.quotas import ElasticQuota
from asched.core.model.requests import nano, to_units

#: Resources that every list covers; other resources count only if a pod requests them.
NATIVE: Final = ("cpu", "memory", "ephemeral-storage")

Amounts = Mapping[str, int]


class Quota(NamedTuple):
    """`max` None: unlimited."""

    namespace: str
    min: Amounts
    max: Amounts | None


def exceeds(used: Amounts, more: Amounts, limit: Amounts) -> bool:
    """Whether both together exceed the guarantee, in native resources or those in `more`; a
    resource that the limit does not name is 0.
    """
    names = (*NATIVE, *more)
    return any(used.get(r, 0) + more.get(r, 0) > limit.get(r, 0) for r in names)


def exceeds_max(used: Amounts, more: Amounts, limit: Amounts | None) -> bool:
    """The same for the maximum: extended resources that it does not name are unlimited."""
    if limit is None:
        return False
    names = (*NATIVE, *(r for r in more if r in limit))
    return any(used.get(r, 0) + more.get(r, 0) > limit.get(r, 0) for r in names)


def is_borrowing(quota: Quota, used: Amounts) -> bool:
    """Whether a namespace uses more than it is guaranteed."""
    return exceeds({}, used, quota.min)


def add(amounts: dict[str, int], more: Amounts) -> None:
    for name, amount in more.items():
        amounts[name] = amounts.get(name, 0) + amount


def total(parts: Iterable[Amounts]) -> dict[str, int]:
    found: dict[str, int] = {}
    for part in parts:
        add(found, part)
    return found


class Quotas:
    """Quotas in force, by namespace, for `Cluster.singleton`. The sums of guarantees and uses are
    updated with each change: with ten thousand namespaces, a sum for each pod would take too long.
    """

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._usage = cluster.usage
        self._epoch = -1
        self._seen_log = -1
        #: namespace -> key of the object -> its quota
        self._declared: dict[str, dict[str, Quota]] = {}
        self._quotas: dict[str, Quota] = {}
        self._guaranteed: dict[str, int] = {}

    def of(self, namespace: str) -> Quota | None:
        self._catch_up()
        return self._quotas.get(namespace)

    def namespaces(self) -> Collection[str]:
        """Those with a quota."""
        self._catch_up()
        return self._quotas.keys()

    def __iter__(self) -> Iterator[Quota]:
        self._catch_up()
        return iter(sorted(self._quotas.values()))

    @property
    def guaranteed(self) -> Amounts:
        """Sum of all guarantees. A live object: do not store it."""
        self._catch_up()
        return self._guaranteed

    def used(self) -> Amounts:
        """Use of all namespaces with a quota. A live object: do not store it."""
        self._catch_up()
        return self._usage.kept().together

    def _catch_up(self) -> None:
        cluster = self._cluster
        epoch = cluster.epoch_of(ELASTIC_QUOTA)
        if epoch == self._epoch:
            return
        self._epoch = epoch
        log, stored = cluster.object_log, cluster.all(ELASTIC_QUOTA)
        entries = log.since(self._seen_log)
        self._seen_log = log.end
        if entries is None:
            keys = stored.keys() | {key for keys in self._declared.values() for key in keys}
        else:
            keys = {key for resource, key in entries if resource == ELASTIC_QUOTA.resource}
        for key in keys:
            namespace = key.rpartition("/")[0]
            self._take_quota(namespace, key, stored.get(key))
            self._settle(namespace)

    def _take_quota(self, namespace: str, key: str, known: ElasticQuota | None) -> None:
        declared = self._declared.setdefault(namespace, {})
        declared.pop(key, None)
        if known is not None:
            spec = known.spec
            most = None if spec.max is None else _amounts(spec.max)
            declared[key] = Quota(namespace, _amounts(spec.min or {}), most)
        if not declared:
            del self._declared[namespace]

    def _settle(self, namespace: str) -> None:
        """Choose which of its quotas is in force."""
        declared, before = self._declared.get(namespace), self._quotas.get(namespace)
        now = declared[min(declared)] if declared else None
        if now == before:
            return
        for quota, sign in ((before, -1), (now, 1)):
            for name, amount in quota.min.items() if quota is not None else ():
                self._guaranteed[name] = self._guaranteed.get(name, 0) + sign * amount
                if not self._guaranteed[name]:
                    del self._guaranteed[name]
        if now is None:
            del self._quotas[namespace]
        else:
            self._quotas[namespace] = now
        self._usage.kept().count(namespace, counts=now is not None)


def _amounts(resources: ResourceList) -> dict[str, int]:
    """Amounts in the units of the columns, zeros included; a value that cannot be parsed is 0,
    which forbids the resource.
    """
    exact = {}
    for name, quantity in resources.items():
        try:
            exact[name] = nano(quantity)
        except QuantityError:
            exact[name] = 0
    return to_units(exact)
