"""Which profile decides for a pod: the one that its pool names, else the one that the pod names.

What a pod names says whether it is ours, and is what events and leases name; what decides are the
plugins, the arguments and the extenders of this profile.
"""

from collections.abc import Callable, Container, Mapping
from operator import attrgetter
from typing import Final

from asched.core.cluster.pools import Pools, deciding_profile, only_node
from asched.core.framework.runner import Runner
from asched.core.model.pod import Pod

#: The name of the profile that decides for a pod; of a pod that is not ours, what it names.
ProfileOf = Callable[[Pod], str]
#: Where no pool names a profile.
BY_SCHEDULER_NAME: Final[ProfileOf] = attrgetter("spec.scheduler_name")
#: Nodes that are awaited. A guess: pods of DaemonSets are made for nodes that exist.
AWAITED_MAX: Final = 10_000


class PoolProfiles:
    """A `ProfileOf` where pools name profiles. `served`: the scheduler names that are ours."""

    def __init__(self, pools: Pools, served: Container[str]) -> None:
        self.pools = pools
        self._served = served
        #: by namespace, until an object changes: asked twice for each attempt
        self._of_namespace: dict[str, str] = {}
        self._epoch = -1
        #: unknown nodes that pods are pinned to, whose pools are not known either
        self.awaited: set[str] = set()

    def __call__(self, pod: Pod) -> str:
        name = pod.spec.scheduler_name
        if name not in self._served:
            return name
        if pod.spec.affinity is not None and (node := only_node(pod)):
            self._note_awaited(node)
            return deciding_profile(pod, self.pools)
        epoch, namespace = self.pools.cluster.epoch, pod.metadata.namespace
        if epoch != self._epoch:
            self._epoch, self._of_namespace = epoch, {}
        profile = self._of_namespace.get(namespace)
        if profile is None:
            profile = self._of_namespace[namespace] = self.pools.profile_of(pod)
        return profile or name

    def _note_awaited(self, node: str) -> None:
        if self.pools.cluster.node_of(node) is None and len(self.awaited) < AWAITED_MAX:
            self.awaited.add(node)


def profile_of(runners: Mapping[str, Runner]) -> ProfileOf:
    """Which of these profiles decides for a pod."""
    pools = next(iter(runners.values())).profile.pools
    if pools is None or not pools.has_profiles:
        return BY_SCHEDULER_NAME
    return PoolProfiles(pools, runners.keys())
