"""The status controller of ElasticQuotas, as in scheduler-plugins: `status.used`.

    ElasticQuotas and pods, from the scheduler's watches ─> changed namespaces ─> PATCH

Used is the sum of the requests of the namespace's running pods, for every resource that `min`,
`max` or a pod names, zero included. (Finished pods are not watched and do not count.) Runs with
--status-controllers, where the controller of scheduler-plugins does not; `statusController: false`
in the args of CapacityScheduling turns this one off. Only a leader writes.

Bounds  an entry per running pod of a namespace with a quota; a namespace is written at most once
        every PERIOD_S; one request at a time; RETRY_S after failures.
Source  kubernetes-sigs/scheduler-plugins pkg/controllers/elasticquota_controller.go
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Final

from asched.core.cluster.cluster import Cluster
from asched.core.cluster.facts import Fact, Gone, Listed, Seen
from asched.core.config.args import CapacitySchedulingArgs
from asched.core.model.kinds import ELASTIC_QUOTA
from asched.core.model.pod import Pod, ResourceList
from asched.core.model.quantity import QuantityError
from asched.core.model.quotas import ElasticQuota
from asched.core.model.requests import accounted_requests, nano, to_units, written
from asched.kube.session import Session
from asched.ops.status_patch import RETRY_S, StatusController

#: A guess: users and dashboards read less often, and pods change more often.
PERIOD_S: Final = 1.0
#: All pods are counted again at this interval: a list does not name deleted pods, and the machine
#: may process it late.
SWEEP_S: Final = 60.0

Amounts = dict[str, int]


class QuotaStatus(StatusController):
    """Spawn `run`; observes facts about ElasticQuotas and pods."""

    def __init__(
        self,
        session: Session,
        cluster: Cluster,
        *,
        args: Callable[[], Mapping[str, CapacitySchedulingArgs]],
        may_act: Callable[[], bool],
        written: Callable[[str], None],
    ) -> None:
        """`written` is called with "success" for each successful write."""
        super().__init__(session, ELASTIC_QUOTA, args, may_act, written)
        self._cluster = cluster
        #: namespaces with quotas, with the requests of their running pods by uid
        self._running: dict[str, dict[str, Amounts]] = {}
        #: namespaces whose pods have not been counted
        self._new: dict[str, None] = {}

    # --- input -----------------------------------------------------------------------------------

    def observing(self, put: Callable[[Fact], None]) -> Callable[[Fact], None]:
        """Wrap a receiver of facts about quotas and mark namespaces."""

        def hear(fact: Fact) -> None:
            put(fact)
            objects = fact.objects if isinstance(fact, Listed) else ()
            if isinstance(fact, Seen | Gone):
                objects = (fact.obj,)
            for obj in objects:
                self._meet(obj.metadata.namespace)  # type: ignore[attr-defined]

        return hear

    def observing_pods(self, put: Callable[[Fact], None]) -> Callable[[Fact], None]:
        """Wrap a receiver of facts about pods and count those in namespaces with quotas."""

        def hear(fact: Fact) -> None:
            put(fact)
            if not self._running:
                return
            match fact:
                case Seen(obj=Pod() as pod):
                    self._take(pod)
                case Gone(obj=Pod() as pod):
                    self._drop(pod)
                case Listed():  # missing pods are dropped once the machine has processed it
                    for obj in fact.objects:
                        assert isinstance(obj, Pod)
                        self._take(obj)

        return hear

    def _meet(self, namespace: str) -> None:
        if namespace not in self._running:
            self._running[namespace] = {}
            self._new[namespace] = None
        self._mark(namespace)

    def _take(self, pod: Pod) -> None:
        pods = self._running.get(pod.metadata.namespace)
        if pods is None:
            return
        if pod.status.phase != "Running":
            self._drop(pod)
            return
        asked = _asked(pod)
        if pods.get(pod.uid) != asked:
            pods[pod.uid] = asked
            self._mark(pod.metadata.namespace)

    def _drop(self, pod: Pod) -> None:
        pods = self._running.get(pod.metadata.namespace)
        if pods is not None and pods.pop(pod.uid, None) is not None:
            self._mark(pod.metadata.namespace)

    # --- output ----------------------------------------------------------------------------------

    async def run(self) -> None:
        clock = asyncio.get_running_loop().time
        swept_s = clock()
        while True:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._woken.wait(), SWEEP_S)
            if clock() >= swept_s + SWEEP_S:
                swept_s = clock()
                self._new.update(dict.fromkeys(self._running))
                self._due.update(self._new)
            await asyncio.sleep(PERIOD_S)  # the machine has processed the facts by then
            if not await self._may_write():
                continue
            self._woken.clear()
            self._count_new()
            due, self._due = self._due, {}
            if not await self._write_all(due):
                await asyncio.sleep(RETRY_S)

    def _count_new(self) -> None:
        """Count the pods of all new namespaces in one pass."""
        new, self._new = self._new, {}
        if not new:
            return
        for pod in list(self._cluster.pods_seen.values()):
            if pod.metadata.namespace in new:
                self._take(pod)

    async def _write_all(self, due: Iterable[str]) -> bool:
        """Write the quotas of these namespaces; whether all writes succeeded."""
        quotas: dict[str, list[ElasticQuota]] = {namespace: [] for namespace in due}
        for quota in self._cluster.all(ELASTIC_QUOTA).values():
            if quota.metadata.namespace in quotas:
                quotas[quota.metadata.namespace].append(quota)
        is_done, placed = True, self._cluster.placed
        for namespace, of_namespace in quotas.items():
            pods = self._running.get(namespace, {})
            for uid in [uid for uid in pods if uid not in placed]:
                del pods[uid]
            if not of_namespace:
                self._running.pop(namespace, None)
            asked = Counter[str]()
            for of_pod in pods.values():
                asked.update(of_pod)
            for quota in of_namespace:
                if not await self.is_done(self._write(quota, asked), quota.metadata.key):
                    is_done = False
                    self._mark(namespace)
            await asyncio.sleep(0)
        return is_done

    async def _write(self, quota: ElasticQuota, asked: Mapping[str, int]) -> None:
        named = (*(quota.spec.min or {}), *(quota.spec.max or {}))
        used = {**dict.fromkeys(named, 0), **asked}
        before = quota.status.used or {}
        if used == _exact(before):
            return
        fields: dict[str, str | None] = {name: written(name, used[name]) for name in used}
        fields.update({name: None for name in before if name not in used})
        await self._patch(quota.metadata, {"used": fields})
        self._written("success")


def _asked(pod: Pod) -> Amounts:
    try:
        return {name: amount for name, amount in accounted_requests(pod).items() if amount}
    except QuantityError:
        return {}


def _exact(resources: ResourceList) -> Amounts | None:
    """In the units of `written`; None if an amount cannot be parsed: then it is written again."""
    try:
        return to_units({name: nano(amount) for name, amount in resources.items()})
    except QuantityError:
        return None
