"""Gangs: how the pods of a PodGroup start, by the objects of either API."""

from typing import Any

from asched.core.cluster.cluster import Cluster
from asched.core.cluster.group_trees import COMPOSITE
from asched.core.cluster.pod_groups import COSCHEDULED, Gang, is_coscheduled
from asched.core.model.kinds import COMPOSITE_POD_GROUP, COSCHEDULING_GROUP, POD_GROUP, Kind


def kind_of(key: str) -> Kind:
    """The kind of the object that defines a group."""
    if key.startswith(COMPOSITE):
        return COMPOSITE_POD_GROUP
    return COSCHEDULING_GROUP if is_coscheduled(key) else POD_GROUP


def object_of(cluster: Cluster, key: str) -> Any:
    """The PodGroup of a group, or None."""
    kind = kind_of(key)
    if kind is POD_GROUP:
        return cluster.get(kind, key)
    return cluster.get(kind, key.removeprefix(COSCHEDULED).removeprefix(COMPOSITE))


def count_missing(cluster: Cluster, key: str) -> int:
    """The number of pods that still need nodes before a gang starts: negative beyond the minimum, 0
    if it is not a gang.
    """
    gang, pods = gang_of(cluster, key), cluster.pod_groups.get(key)
    if gang is None:
        return 0
    return gang.min_count - (pods.staying if is_coscheduled(key) else len(pods.placed))


def gang_of(cluster: Cluster, key: str) -> Gang | None:
    """None without such an object, or if it does not require a common start."""
    return cluster.pod_groups.gangs.get(key)
