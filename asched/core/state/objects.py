"""Objects that are neither pods nor nodes: as the API told them, and as we take them to be.

An *assumed* version is one of ours: it stands in for the stored one until the watch delivers a
newer version, or it is taken back. Every change moves its kind's epoch and that of all, and is
noted in the log, save where no more than the status of a pod group is new: no rule reads it, and
each attempt at a group writes it.
"""

from collections.abc import Mapping
from typing import Any, Final

from asched.core.model.kinds import COSCHEDULING_GROUP, POD_GROUP, Kind
from asched.core.model.meta import ObjectMeta, Record
from asched.core.state.change_log import ObjectLog
from asched.core.state.journal import Journal

#: Kinds of whose status no rule reads anything.
RULED_BY_SPEC: Final = frozenset({POD_GROUP.resource, COSCHEDULING_GROUP.resource})


class Objects:
    """Stores by kind and key. Two API groups may have kinds of one plural: `Kind.resource` tells
    all apart, and is one for all versions of a kind.
    """

    def __init__(self) -> None:
        self._objects: dict[str, dict[str, Record]] = {}  # resource -> key -> object
        self._assumed_objects: dict[str, dict[str, Record]] = {}
        self._epochs: dict[str, int] = {}
        self._spoken: dict[str, Kind] = {}  # resource -> the version that the API told of last
        #: moves with every change of any of them
        self.epoch = 0
        self.journal = Journal()
        #: which of them changed, in order
        self.object_log = ObjectLog()
        #: (kind, version before, version now) of what the API answered with, until all have heard
        self.news: list[tuple[Kind, Any, Any]] = []

    def get(self, kind: Kind, key: str) -> Any:
        """The newest version of an object, an assumed one included; None if there is none."""
        assumed = self._assumed_objects.get(kind.resource)
        if assumed and key in assumed:
            return assumed[key]
        return self._objects.get(kind.resource, {}).get(key)

    def told(self, kind: Kind, key: str) -> Any:
        """The newest version the API told, whatever is assumed; None if there is none."""
        return self._objects.get(kind.resource, {}).get(key)

    def all(self, kind: Kind) -> Mapping[str, Any]:
        """All objects of a kind by key, assumed versions in place of those they replace."""
        stored = self._objects.get(kind.resource, {})
        assumed = self._assumed_objects.get(kind.resource)
        return {**stored, **assumed} if assumed else stored

    def spoken(self, kind: Kind) -> Kind:
        """The version in which the API tells of a kind, as far as it did."""
        return self._spoken.get(kind.resource, kind)

    def epoch_of(self, kind: Kind) -> int:
        """A number that moves with every change of an object of this kind that a rule may read."""
        return self._epochs.get(kind.resource, 0)

    # --- what the API told -----------------------------------------------------------------------

    def _stored(self, kind: Kind) -> Mapping[str, Any]:
        return self._objects.get(kind.resource, {})

    def _put_plain(self, kind: Kind, obj: Any) -> bool:
        """Store a version of which no rule reads what is new; False if one may."""
        if kind.resource not in RULED_BY_SPEC:
            return False
        key, store = obj.metadata.key, self._objects.get(kind.resource, {})
        old: Any = store.get(key)
        if old is None or _may_matter(old, obj):
            return False
        store[key] = obj
        return True

    def _put_object(self, kind: Kind, obj: Any) -> Any:
        """Store a version; returns the one before it."""
        key = obj.metadata.key
        self.journal.note(kind, key, self.get(kind, key))
        store = self._objects.setdefault(kind.resource, {})
        old = store.get(key)
        store[key] = obj
        self._settle_assumed(kind, key, obj.metadata)
        self._touch(kind, key)
        return old

    def _drop_object(self, kind: Kind, key: str) -> Any:
        """Forget an object with its assumed version; returns what was stored."""
        self.journal.note(kind, key, self.get(kind, key))
        old = self._objects.get(kind.resource, {}).pop(key, None)
        self._assumed_objects.get(kind.resource, {}).pop(key, None)
        self._touch(kind, key)
        return old

    def _touch(self, kind: Kind, key: str) -> None:
        self.object_log.add(kind.resource, key)
        self._epochs[kind.resource] = self._epochs.get(kind.resource, 0) + 1
        self.epoch += 1

    # --- what we assume --------------------------------------------------------------------------

    def assume_object(self, kind: Kind, obj: Record) -> None:
        """Take a version of ours for the truth until the watch delivers a newer one.

        The watch may have overtaken our own answer: then it is right.
        """
        ours = _metadata(obj)
        key = ours.key
        told = self._objects.get(kind.resource, {}).get(key)
        if told is not None and _is_over(ours, _metadata(told)):
            return
        self.journal.note(kind, key, self.get(kind, key))
        self._assumed_objects.setdefault(kind.resource, {})[key] = obj
        self._touch(kind, key)

    def answered(self, kind: Kind, obj: Record) -> None:
        """The same of a version that the API has answered with: those who wait are to hear of it
        now, however late the watch is.
        """
        before = self.get(kind, _metadata(obj).key)
        self.assume_object(kind, obj)
        if self.get(kind, _metadata(obj).key) is obj and before != obj:
            self.news.append((kind, before, obj))

    def restore_object(self, kind: Kind, key: str) -> None:
        """Go back to the version the API told."""
        assumed = self._assumed_objects.get(kind.resource, {}).pop(key, None)
        if assumed is not None:
            self.journal.note(kind, key, assumed)
            self._touch(kind, key)

    def _settle_assumed(self, kind: Kind, key: str, metadata: ObjectMeta) -> None:
        assumed = self._assumed_objects.get(kind.resource, {}).get(key)
        if assumed is None:
            return
        if _is_over(_metadata(assumed), metadata):
            del self._assumed_objects[kind.resource][key]


def _may_matter(old: Any, new: Any) -> bool:
    """Whether more than the status is new."""
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


def _is_over(ours: ObjectMeta, told: ObjectMeta) -> bool:
    """Whether the API has told of something newer than a version of ours."""
    return ours.uid != told.uid or _version(told) > _version(ours)


def _version(metadata: ObjectMeta) -> int:
    """Resource versions compare as integers (since 1.35 the API promises it)."""
    text = metadata.resource_version
    return int(text) if text.isdigit() else 0
