"""The open requests for new nodes, by gang."""

import math
from collections import Counter
from typing import Any

import msgspec

from asched.batch.groups.attempt import GroupPauses
from asched.core.cluster.cluster import Cluster
from asched.core.model.kinds import PROVISIONING_REQUEST


class ScaleUp(msgspec.Struct, eq=False):
    """One request. `uid` is the group's, `until_s` since 1970. `bodies` are not created yet."""

    key: str
    uid: str
    namespace: str
    name: str
    profile: str
    new_nodes: str
    until_s: float
    templates: int
    bodies: tuple[dict[str, Any], ...] = ()
    write_s: float = -math.inf
    is_writing: bool = False
    #: whether the watch has shown it; whether its end was seen, or it was refused
    is_seen: bool = False
    is_over: bool = False
    #: whether the autoscaler ended it: it failed, or its nodes were not used in time
    is_unfulfilled: bool = False

    @property
    def object_key(self) -> str:
        return f"{self.namespace}/{self.name}"

    @property
    def text(self) -> str:
        """What the conditions of the gang say about it."""
        what = f"{self.new_nodes} (ProvisioningRequest {self.name})"
        return f"; new nodes are requested for the gang: {what}"

    @property
    def end_text(self) -> str:
        """What the conditions of the gang say until the next request. Empty: autoscalers may add
        nodes for single pods, since none has handled the request.
        """
        what = f"{self.new_nodes} were requested without success"
        return f"; {what}; the next request follows a pause" if self.is_unfulfilled else ""


class ScaleUps:
    """Times of turns, if not stated otherwise."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self.by_group: dict[str, ScaleUp] = {}
        self.by_object: dict[str, ScaleUp] = {}
        #: to be deleted, by object
        self.unwanted: dict[str, ScaleUp] = {}
        self.by_namespace = Counter[str]()
        #: gangs for which no request is made, with the text why new nodes do not help it now
        self.pauses = GroupPauses()
        self.next_check_s = -math.inf
        self.was_refused = False
        self._cursor = -2

    def add(self, scale_up: ScaleUp) -> None:
        self.by_group[scale_up.key] = self.by_object[scale_up.object_key] = scale_up
        self.by_namespace[scale_up.namespace] += 1
        self.next_check_s = -math.inf

    def remove(self, scale_up: ScaleUp) -> None:
        del self.by_group[scale_up.key], self.by_object[scale_up.object_key]
        self.by_namespace[scale_up.namespace] -= 1
        self.by_namespace += Counter()  # drops a namespace without requests
        self.delete(scale_up)

    def delete(self, scale_up: ScaleUp) -> None:
        """Delete its objects, once no write of theirs is under way."""
        self.unwanted.setdefault(scale_up.object_key, scale_up)
        self.next_check_s = -math.inf

    def changed(self) -> list[str]:
        """Keys of requests that changed since the last call; all of them in the first."""
        log = self._cluster.object_log
        entries = log.since(self._cursor)
        self._cursor = log.end
        if entries is None:
            return [*self._cluster.all(PROVISIONING_REQUEST), *self.by_object]
        resource = PROVISIONING_REQUEST.resource
        return list(dict.fromkeys(key for changed, key in entries if changed == resource))
