"""A gang: what a PodGroup object says of how its pods start, whichever API tells it."""

from typing import Any

from asched.core.model.kinds import COSCHEDULING_GROUP, POD_GROUP, Kind
from asched.core.state.cluster import Cluster
from asched.core.state.pod_groups import COSCHEDULED, Gang, is_coscheduled


def kind_of(key: str) -> Kind:
    """Of the object that makes a group."""
    return COSCHEDULING_GROUP if is_coscheduled(key) else POD_GROUP


def object_of(cluster: Cluster, key: str) -> Any:
    """The PodGroup of a group; None if nobody knows it."""
    return cluster.get(kind_of(key), key.removeprefix(COSCHEDULED))


def count_missing(cluster: Cluster, key: str) -> int:
    """How many more pods of a gang need places before it starts: negative if more than enough have
    places, 0 if it is no gang.
    """
    gang, pods = gang_of(cluster, key), cluster.pod_groups.get(key)
    if gang is None:
        return 0
    return gang.min_count - (pods.staying if is_coscheduled(key) else len(pods.placed))


def gang_of(cluster: Cluster, key: str) -> Gang | None:
    """None if there is no such object, or if it binds nobody together."""
    return cluster.pod_groups.gangs.get(key)
