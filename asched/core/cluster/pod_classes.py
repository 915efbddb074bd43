"""Equal pods: classes and label sets, interned while they are in use, and for a while longer."""

from collections.abc import Hashable, Iterable
from sys import intern
from typing import Final, TypeVar
from weakref import WeakValueDictionary

import msgspec
from msgspec import structs

from asched.core.cluster.nodes import AMOUNTS, START_TIMES
from asched.core.cluster.pods import LabelSet, PodClass, PodInfo
from asched.core.model.footprint import footprint
from asched.core.model.lru import Lru
from asched.core.model.pod import Pod, spec_key
from asched.core.model.requests import pending_resize

#: Bytes of recently used classes ...
RECENT_BYTES_MAX: Final = 2 << 20
#: ... with this size per class, and per byte of its key. Measured with plain pods.
CLASS_BYTES, BYTES_PER_KEY_BYTE = 6 << 10, 8
#: Bytes of keys of waiting pods, each stored once for all equal pods.
KEYS_BYTES_MAX: Final = 1 << 20
#: A key of more bytes takes a noticeable time: that of 1.5 MB up to five milliseconds.
LONG_BYTES: Final = 16 << 10
_encoder: Final = msgspec.msgpack.Encoder(order="deterministic")

T = TypeVar("T")


class PodClasses:
    """Interns classes and label sets. They are freed with the last pod that uses them, except for
    recently used classes: without these, pods that come one by one would each make a new one.
    """

    def __init__(self) -> None:
        self._classes: WeakValueDictionary[bytes, PodClass] = WeakValueDictionary()
        self._recent: Lru[int, PodClass] = Lru(RECENT_BYTES_MAX)
        self._last: tuple[Pod, PodClass] | None = None
        #: of classes that do not exist yet: many waiting pods share a key
        self._keys: dict[bytes, bytes] = {}
        self._keys_bytes = 0
        #: bytes of long keys that were made; the intake takes them as work
        self.long_bytes = 0
        self._label_sets: WeakValueDictionary[bytes, LabelSet] = WeakValueDictionary()
        self._classes_made = 0
        self._label_sets_made = 0
        self._annotations_read: frozenset[str] = frozenset()
        self._amount_annotations: tuple[str, ...] = ()
        self._deadlines_read = False
        #: a resize counts as `requests.accounted_requests` says of `by_sum`
        self.sums_resizes = False

    def tell_apart_by(self, annotations: Iterable[str]) -> None:
        """From now on pods with different values of these annotations are not equal: a rule reads
        them from the example of a class.
        """
        self._annotations_read = self._annotations_read.union(annotations)
        self._forget_pods()

    def declare_amount_annotations(self, annotations: Iterable[str]) -> None:
        """From now on a placed pod's use of its node depends on these annotations: a rule reads
        them from each pod.
        """
        self._amount_annotations = tuple({*self._amount_annotations, *annotations})

    def moved(self, old: Pod, new: Pod) -> int:
        """The aspects of its node's row that change with a new version of a placed pod that
        requests the same.
        """
        moved = START_TIMES if old.status.start_time != new.status.start_time else 0
        if self._amount_annotations:
            before, now = old.metadata.annotations or {}, new.metadata.annotations or {}
            if any(before.get(name) != now.get(name) for name in self._amount_annotations):
                moved |= AMOUNTS
        return moved

    def tell_apart_by_deadlines(self) -> None:
        """From now on pods with different deadlines are not equal."""
        self._deadlines_read = True
        self._forget_pods()

    def _forget_pods(self) -> None:
        """Drop cached pods: their classes may change."""
        self._last = None

    def class_of(self, pod: Pod, key: bytes = b"") -> PodClass:
        """The class of a pod; a placed pod whose status has resources may have a class of its
        own. `key`: what `key_of` returned for the pod; encoding a spec again takes 5 us.
        """
        last = self._last
        if last is not None and last[0] is pod:
            return last[1]
        annotations_key, resize = self._key_parts(pod)
        suffix = annotations_key + resize
        if not (key and key.endswith(suffix)):  # rules may read more annotations by now
            key = spec_key(pod) + suffix
        known = self._classes.get(key)
        if known is None:
            self._classes_made += 1
            known = PodClass(
                self._classes_made,
                key,
                pod,
                self.label_set_of(pod),
                annotations_key=annotations_key,
                has_resize=bool(resize),
                by_sum=self.sums_resizes,
            )
            self._classes[key] = known
        if self._recent.get(known.number) is None:
            self._recent.put(known.number, known, _bytes_of(known))
        self._last = pod, known
        return known

    def key_of(self, pod: Pod) -> bytes:
        """The key of the pod's class, without making the class."""
        last = self._last
        if last is not None and last[0] is pod:
            return last[1].key
        annotations_key, resize = self._key_parts(pod)
        key = spec_key(pod) + annotations_key + resize
        if len(key) > LONG_BYTES:
            self.long_bytes += len(key)
        known = self._classes.get(key)
        return self._held_once(key) if known is None else known.key

    def _held_once(self, key: bytes) -> bytes:
        held = self._keys.setdefault(key, key)
        if held is key:
            self._keys_bytes += len(key)
            if self._keys_bytes > KEYS_BYTES_MAX:
                self._keys.clear()
                self._keys_bytes = 0
        return held

    def _key_parts(self, pod: Pod) -> tuple[bytes, bytes]:
        """The parts of a key from annotations, and from a status with resources."""
        annotations_key = (
            self._annotations_key(pod) if self._annotations_read or self._deadlines_read else b""
        )
        return annotations_key, _resize_key(pod) if pod.spec.node_name else b""

    def _annotations_key(self, pod: Pod) -> bytes:
        """The annotations and deadlines that rules read, encoded; empty for most pods."""
        annotations, read, spec = pod.metadata.annotations, self._annotations_read, pod.spec
        parts: list[tuple[str, object]] = []
        if annotations:
            parts += sorted((name, text) for name, text in annotations.items() if name in read)
        if self._deadlines_read and spec.active_deadline_seconds is not None:
            parts.append(("", spec.active_deadline_seconds))
        if self._deadlines_read and spec.termination_grace_period_seconds is not None:
            parts.append(("grace", spec.termination_grace_period_seconds))
        return _encoder.encode(parts) if parts else b""

    def lean(self, pod: Pod, cls: PodClass) -> Pod:
        """The same pod, sharing data with the other pods of its class: about half the memory of a
        record as decoded.
        """
        like, own, status = cls.example, pod.metadata, pod.status
        if pod is like:
            return pod
        known, spec, seen = like.metadata, pod.spec, like.status
        if status == seen:
            status = seen
        elif status.container_statuses or status.init_container_statuses:
            status = structs.replace(
                status,
                container_statuses=_one_of(status.container_statuses, seen.container_statuses),
                init_container_statuses=_one_of(
                    status.init_container_statuses, seen.init_container_statuses
                ),
            )
        return Pod(
            structs.replace(
                known,
                name=own.name,
                uid=own.uid,
                resource_version=own.resource_version,
                generation=own.generation,
                annotations=own.annotations and _one_of(own.annotations, known.annotations),
                owner_references=own.owner_references
                and _one_of(own.owner_references, known.owner_references),
                creation_timestamp=_one_of(own.creation_timestamp, known.creation_timestamp),
                deletion_timestamp=own.deletion_timestamp,
                finalizers=own.finalizers,
            ),
            structs.replace(
                like.spec,
                node_name=intern(spec.node_name),
                scheduler_name=intern(spec.scheduler_name),
                priority_class_name=intern(spec.priority_class_name),
                volumes=spec.volumes and _one_of(spec.volumes, like.spec.volumes),
                scheduling_gates=spec.scheduling_gates,
                scheduling_group=spec.scheduling_group
                and _one_of(spec.scheduling_group, like.spec.scheduling_group),
                active_deadline_seconds=spec.active_deadline_seconds,
                termination_grace_period_seconds=spec.termination_grace_period_seconds,
            ),
            status,
        )

    def label_set_of(self, pod: Pod) -> LabelSet:
        key = _encoder.encode((pod.metadata.namespace, pod.metadata.labels))
        known = self._label_sets.get(key)
        if known is None:
            self._label_sets_made += 1
            known = LabelSet(self._label_sets_made, pod.metadata.namespace, pod.labels)
            self._label_sets[key] = known
        return known

    def info_of(self, pod: Pod, key: Hashable = None) -> PodInfo:
        """`key`: the cached key of its class, alone or as the first of a tuple; other values are
        ignored.
        """
        own = key[0] if type(key) is tuple else key
        known = self._classes.get(own) if type(own) is bytes else None
        if known is None:
            return PodInfo(pod, self.class_of(pod, own if type(own) is bytes else b""))
        if self._recent.get(known.number) is None:
            self._recent.put(known.number, known, _bytes_of(known))
        return PodInfo(pod, known)


def _one_of(own: T, known: T) -> T:
    """The known value if it is equal, to share it."""
    return known if own == known else own


def _bytes_of(cls: PodClass) -> int:
    own = cls.example.metadata
    uncounted = (own.annotations, own.finalizers, own.owner_references)
    extra = footprint(uncounted) if any(uncounted) else 0
    return CLASS_BYTES + BYTES_PER_KEY_BYTE * len(cls.key) + extra


def _resize_key(pod: Pod) -> bytes:
    """The parts of the status that determine a placed pod's usage; empty for most pods."""
    status = pod.status
    if not (status.resources or status.container_statuses or status.init_container_statuses):
        return b""
    allocated = [
        (s.name, s.resources, s.allocated_resources)
        for s in (*(status.container_statuses or ()), *(status.init_container_statuses or ()))
        if s.resources is not None or s.allocated_resources is not None
    ]
    if not allocated and status.resources is None:
        return b""
    return _encoder.encode(
        (
            allocated,
            status.resources,
            status.allocated_resources,
            pending_resize(pod),
        )
    )
