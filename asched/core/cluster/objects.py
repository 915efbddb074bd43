"""Objects other than pods and nodes: stored versions from the API, and assumed versions.

An *assumed* version is our own: it replaces the stored one until the watch delivers a newer version
or it is withdrawn. Every change increments its kind's epoch and the common one, and is logged,
unless only the status of a pod group changed: no rule reads it, and each attempt at a group writes
it.
"""

from collections.abc import Mapping
from typing import Any, Final

from asched.core.cluster.change_logs import ObjectLog
from asched.core.model.kinds import COMPOSITE_POD_GROUP, COSCHEDULING_GROUP, POD_GROUP, Kind
from asched.core.model.meta import ObjectMeta, Record

#: Kinds whose status is read by no rule.
RULED_BY_SPEC: Final = frozenset(
    {POD_GROUP.resource, COMPOSITE_POD_GROUP.resource, COSCHEDULING_GROUP.resource}
)


class Objects:
    """Stores by kind and key. Kinds of two API groups may have the same plural: `Kind.resource` is
    unique, and common to all versions of a kind.
    """

    def __init__(self) -> None:
        self._objects: dict[str, dict[str, Record]] = {}  # resource -> key -> object
        self._assumed_objects: dict[str, dict[str, Record]] = {}
        self._epochs: dict[str, int] = {}
        self._served_kinds: dict[str, Kind] = {}  # resource -> the API version received last
        #: grows with every change of any object
        self.epoch = 0
        #: the changed objects, in order
        self.object_log = ObjectLog()
        #: (kind, version before, version now) of answers of the API, until they are processed
        self.answered_changes: list[tuple[Kind, Any, Any]] = []

    def get(self, kind: Kind, key: str) -> Any:
        """The newest version of an object, including an assumed one, or None."""
        assumed = self._assumed_objects.get(kind.resource)
        if assumed and key in assumed:
            return assumed[key]
        return self._objects.get(kind.resource, {}).get(key)

    def stored(self, kind: Kind, key: str) -> Any:
        """The newest version from the API, without assumed versions, or None."""
        return self._objects.get(kind.resource, {}).get(key)

    def all(self, kind: Kind) -> Mapping[str, Any]:
        """All objects of a kind by key, with assumed versions in place of stored ones."""
        stored = self._objects.get(kind.resource, {})
        assumed = self._assumed_objects.get(kind.resource)
        return {**stored, **assumed} if assumed else stored

    def served_kind(self, kind: Kind) -> Kind:
        """The API version in which the API sends a kind, if known."""
        return self._served_kinds.get(kind.resource, kind)

    def epoch_of(self, kind: Kind) -> int:
        """A number that grows with every change of an object of this kind that rules may read."""
        return self._epochs.get(kind.resource, 0)

    # --- stored versions -------------------------------------------------------------------------

    def _stored(self, kind: Kind) -> Mapping[str, Any]:
        return self._objects.get(kind.resource, {})

    def _put_plain(self, kind: Kind, obj: Any) -> bool:
        """Store a version whose changes no rule reads; False if one may."""
        if kind.resource not in RULED_BY_SPEC:
            return False
        key, store = obj.metadata.key, self._objects.get(kind.resource, {})
        old: Any = store.get(key)
        if old is None or _may_matter(old, obj):
            return False
        store[key] = obj
        return True

    def _put_object(self, kind: Kind, obj: Any) -> Any:
        """Store a version; returns the previous one."""
        key = obj.metadata.key
        store = self._objects.setdefault(kind.resource, {})
        old = store.get(key)
        store[key] = obj
        self._settle_assumed(kind, key, obj.metadata)
        self._touch(kind, key)
        return old

    def _drop_object(self, kind: Kind, key: str) -> Any:
        """Drop an object with its assumed version; returns the stored one."""
        old = self._objects.get(kind.resource, {}).pop(key, None)
        self._assumed_objects.get(kind.resource, {}).pop(key, None)
        self._touch(kind, key)
        return old

    def _touch(self, kind: Kind, key: str) -> None:
        self.object_log.add(kind.resource, key)
        self._epochs[kind.resource] = self._epochs.get(kind.resource, 0) + 1
        self.epoch += 1

    # --- assumed versions ------------------------------------------------------------------------

    def assume_object(self, kind: Kind, obj: Record) -> None:
        """Use our own version until the watch delivers a newer one.

        If the watch has delivered a newer one already, that one is used.
        """
        ours = _metadata(obj)
        key = ours.key
        stored = self._objects.get(kind.resource, {}).get(key)
        if stored is not None and _is_over(ours, _metadata(stored)):
            return
        self._assumed_objects.setdefault(kind.resource, {})[key] = obj
        self._touch(kind, key)

    def answered(self, kind: Kind, obj: Record) -> None:
        """The same for a version from an answer of the API: waiting pods are notified of it at
        once, before the watch delivers it.
        """
        before = self.get(kind, _metadata(obj).key)
        self.assume_object(kind, obj)
        if self.get(kind, _metadata(obj).key) is obj and before != obj:
            self.answered_changes.append((kind, before, obj))

    def restore_object(self, kind: Kind, key: str) -> None:
        """Return to the stored version."""
        assumed = self._assumed_objects.get(kind.resource, {}).pop(key, None)
        if assumed is not None:
            self._touch(kind, key)

    def _settle_assumed(self, kind: Kind, key: str, metadata: ObjectMeta) -> None:
        assumed = self._assumed_objects.get(kind.resource, {}).get(key)
        if assumed is None:
            return
        if _is_over(_metadata(assumed), metadata):
            del self._assumed_objects[kind.resource][key]


def _may_matter(old: Any, new: Any) -> bool:
    """Whether more than the status changed."""
    before, now = old.metadata, new.metadata
    return bool(
        old.spec != new.spec
        or before.uid != now.uid
        or before.labels != now.labels
        or before.annotations != now.annotations
        or before.owner_references != now.owner_references
        or before.deletion_timestamp != now.deletion_timestamp
    )


def _metadata(obj: Any) -> ObjectMeta:
    metadata: ObjectMeta = obj.metadata
    return metadata


def _is_over(ours: ObjectMeta, stored: ObjectMeta) -> bool:
    """Whether the API has sent something newer than our own version."""
    return ours.uid != stored.uid or _version(stored) > _version(ours)


def _version(metadata: ObjectMeta) -> int:
    """Resource versions compare as integers (guaranteed by the API since 1.35)."""
    text = metadata.resource_version
    return int(text) if text.isdigit() else 0
