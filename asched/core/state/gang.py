"""A gang: what a PodGroup object says of how its pods start, whichever API tells it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from asched.core.model.kinds import COSCHEDULING_GROUP, POD_GROUP, Kind
from asched.core.model.quantity import Quantity
from asched.core.model.workload import CoschedulingGroup, PodGroup
from asched.core.state.cluster import Cluster
from asched.core.state.pod_groups import COSCHEDULED, is_coscheduled


@dataclass(frozen=True, slots=True)
class Gang:
    """`min_count` of the pods start together. `min_resources` are promised to all of them, and
    `timeout_s` is how long they wait for each other at most, where the object says so.
    """

    min_count: int
    min_resources: Mapping[str, Quantity] | None = None
    timeout_s: int | None = None


def kind_of(key: str) -> Kind:
    """Of the object that makes a group."""
    return COSCHEDULING_GROUP if is_coscheduled(key) else POD_GROUP


def object_of(cluster: Cluster, key: str) -> Any:
    """The PodGroup of a group; None if nobody knows it."""
    return cluster.get(kind_of(key), key.removeprefix(COSCHEDULED))


def gang_of(cluster: Cluster, key: str) -> Gang | None:
    """None if there is no such object, or if it binds nobody together."""
    found: PodGroup | CoschedulingGroup | None = object_of(cluster, key)
    if isinstance(found, CoschedulingGroup):
        spec = found.spec
        return Gang(max(spec.min_member, 1), spec.min_resources, spec.schedule_timeout_seconds)
    policy = found.spec.scheduling_policy.gang if found is not None else None
    return Gang(policy.min_count) if policy is not None else None
