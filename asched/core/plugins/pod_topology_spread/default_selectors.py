"""The selector of a pod's default spread constraints: what selects the pod.

The selectors of all services that select the pod are merged; then the labels of its
ReplicationController, or the selector of its ReplicaSet or StatefulSet. Other owners add nothing.
An empty result means that the pod has no default constraints.

Bounds  services are sorted by namespace once for each version of the services.
Source  kubernetes/kubernetes v1.36 pkg/scheduler/framework/plugins/helper/spread.go
"""

from typing import Final

from asched.core.cluster.cluster import Cluster
from asched.core.model.kinds import REPLICA_SET, REPLICATION_CONTROLLER, SERVICE, STATEFUL_SET, Kind
from asched.core.model.pod import Pod
from asched.core.model.selector import Selector, compile_selector, equality_selector

OWNERS: Final[dict[tuple[str, str], Kind]] = {
    (kind.group_version, kind.name): kind
    for kind in (REPLICATION_CONTROLLER, REPLICA_SET, STATEFUL_SET)
}
SOURCES: Final = (SERVICE, REPLICATION_CONTROLLER, REPLICA_SET, STATEFUL_SET)


class DefaultSelectors:
    """Derives the selector of a pod's default constraints."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._services_epoch = -1
        self._services: dict[str, list[tuple[dict[str, str], Selector]]] = {}

    def epoch(self) -> int:
        """Changes with every change of an object that a selector may come from."""
        return sum(map(self._cluster.epoch_of, SOURCES))

    def may_select(self, pod: Pod) -> bool:
        """Whether any object exists that a selector of this pod could come from."""
        return pod.metadata.controller is not None or bool(
            self._services_in(pod.metadata.namespace)
        )

    def selector_of(self, pod: Pod) -> Selector | None:
        """None if nothing selects the pod."""
        labels: dict[str, str] = {}
        for wanted, selector in self._services_in(pod.metadata.namespace):
            if selector.matches(pod.labels):
                labels.update(wanted)
        added: Selector | None = None
        owner = pod.metadata.controller
        kind = OWNERS.get((owner.api_version, owner.kind)) if owner is not None else None
        if owner is not None and kind is not None:
            found = self._cluster.get(kind, f"{pod.metadata.namespace}/{owner.name}")
            if found is not None and kind is REPLICATION_CONTROLLER:
                labels.update(found.spec.selector or {})
            elif found is not None:
                try:
                    added = compile_selector(found.spec.selector)
                except ValueError:  # an invalid selector adds nothing
                    added = None
        selector = equality_selector(labels)
        if added is not None:
            selector = selector.merged(added)
        return None if selector.is_everything else selector

    def _services_in(self, namespace: str) -> list[tuple[dict[str, str], Selector]]:
        epoch = self._cluster.epoch_of(SERVICE)
        if epoch != self._services_epoch:
            self._services_epoch = epoch
            self._services = {}
            for service in self._cluster.all(SERVICE).values():
                wanted = service.spec.selector
                if wanted:
                    self._services.setdefault(service.metadata.namespace, []).append(
                        (wanted, equality_selector(wanted))
                    )
        return self._services.get(namespace, [])
