"""Which pods are equal: classes and label sets, interned while somebody uses them, and for a while
longer.
"""

from collections import OrderedDict
from collections.abc import Hashable, Iterable
from sys import intern
from typing import Final, TypeVar
from weakref import WeakValueDictionary

import msgspec
from msgspec import structs

from asched.core.model.footprint import footprint
from asched.core.model.pod import Pod, spec_key
from asched.core.model.vast import VAST_BYTES
from asched.core.state.budget import Budget
from asched.core.state.nodes import AMOUNTS, START_TIMES
from asched.core.state.pods import LARGE_BYTES, LabelSet, PodClass, PodInfo

#: Bytes of classes that nobody uses, and of large ones, which else would take the others' room ...
RECENT_BYTES_MAX: Final = 2 << 20
RECENT_LARGE_BYTES_MAX: Final = 16 << 20
#: ... at so much for a class, and so much for each byte of its key. Measured with plain pods.
CLASS_BYTES, BYTES_PER_KEY_BYTE = 6 << 10, 8
#: Bytes of keys of large classes that are held for their pods.
LARGE_KEYS_BYTES_MAX: Final = 32 << 20
#: ... and of waiting pods, held once for all who have an equal one, if they come soon enough.
KEYS_BYTES_MAX: Final = 1 << 20
_encoder: Final = msgspec.msgpack.Encoder(order="deterministic")

T = TypeVar("T")


class PodClasses:
    """Interns classes and label sets. They go when the last pod that uses them goes, but for the
    classes asked for last: where pods come one by one, each would else be the first.
    """

    def __init__(self, budget: Budget | None = None) -> None:
        """Without a budget nobody counts what large pods cost."""
        self._budget = budget or Budget()
        self._classes: WeakValueDictionary[bytes, PodClass] = WeakValueDictionary()
        self._recent = _Recent(RECENT_BYTES_MAX)
        self._recent_large = _Recent(RECENT_LARGE_BYTES_MAX)
        self._large_keys = _LargeKeys()
        self._last: tuple[Pod, PodClass] | None = None
        #: of classes that are not made yet: many who wait hold the same one
        self._keys: dict[bytes, bytes] = {}
        self._keys_bytes = 0
        #: how many keys of waiting pods were long: who takes pods in looks out for more then
        self.long_keys = 0
        self._label_sets: WeakValueDictionary[bytes, LabelSet] = WeakValueDictionary()
        self._classes_made = 0
        self._label_sets_made = 0
        self._annotations_read: frozenset[str] = frozenset()
        self._amounts_told: tuple[str, ...] = ()
        self._deadlines_read = False

    def tell_apart_by(self, annotations: Iterable[str]) -> None:
        """From now on pods with different values of these annotations are no equals: some rule
        reads them, of the example of a class.
        """
        self._annotations_read = self._annotations_read.union(annotations)
        self._forget_pods()

    def amounts_are_told_by(self, annotations: Iterable[str]) -> None:
        """From now on a placed pod with other values of these holds another part of its node: some
        rule reads them, of each pod.
        """
        self._amounts_told = tuple({*self._amounts_told, *annotations})

    def moved(self, old: Pod, new: Pod) -> int:
        """Aspects of its node's row in which a placed pod counts as another than before, though it
        asks for the same.
        """
        moved = START_TIMES if old.status.start_time != new.status.start_time else 0
        if self._amounts_told:
            before, now = old.metadata.annotations or {}, new.metadata.annotations or {}
            if any(before.get(name) != now.get(name) for name in self._amounts_told):
                moved |= AMOUNTS
        return moved

    def tell_apart_by_deadlines(self) -> None:
        """The same of how long pods may run."""
        self._deadlines_read = True
        self._forget_pods()

    def _forget_pods(self) -> None:
        """They may be of other classes now."""
        self._last = None
        self._large_keys = _LargeKeys()

    def gone(self, pod: Pod) -> None:
        """It will not be asked for any more."""
        self._large_keys.drop(pod)

    def class_of(self, pod: Pod) -> PodClass:
        """The class of a pod; a placed pod whose status tells of resources has one of its own
        kind.
        """
        last = self._last
        if last is not None and last[0] is pod:
            return last[1]
        cls = self._class_of(pod)
        self._last = pod, cls
        return cls

    def key_of(self, pod: Pod) -> bytes:
        """The key of the pod's class, which is not made for that."""
        key = self._key(pod, *self._told_of(pod))
        known = self._classes.get(key)
        if known is not None:
            key = known.key
        elif len(key) <= LARGE_BYTES:
            key = self._held_once(key)
        if len(key) > VAST_BYTES:
            self.long_keys += 1
            if len(key) > LARGE_BYTES:
                self._large_keys.keep(pod, key)
        return key

    def _held_once(self, key: bytes) -> bytes:
        held = self._keys.setdefault(key, key)
        if held is key:
            self._keys_bytes += len(key)
            if self._keys_bytes > KEYS_BYTES_MAX:
                self._keys.clear()
                self._keys_bytes = 0
        return held

    def _key(self, pod: Pod, told: bytes, resize: bytes) -> bytes:
        return self._large_keys.of(pod) or spec_key(pod) + told + resize

    def _told_of(self, pod: Pod) -> tuple[bytes, bytes]:
        """What a key has of annotations, and of a status that tells of resources."""
        told = self._told_by(pod) if self._annotations_read or self._deadlines_read else b""
        return told, _resize_key(pod) if pod.spec.node_name else b""

    def _class_of(self, pod: Pod) -> PodClass:
        told, resize = self._told_of(pod)
        key = self._key(pod, told, resize)
        known = self._classes.get(key)
        if known is None:
            self._classes_made += 1
            known = PodClass(
                self._classes_made,
                key,
                pod,
                self.label_set_of(pod),
                budget=self._budget,
                told=told,
                tells_of_resize=bool(resize),
            )
            self._classes[key] = known
        if known.is_large:
            self._large_keys.keep(pod, known.key)
            self._recent_large.keep(known)
        else:
            self._recent.keep(known)
        return known

    def _told_by(self, pod: Pod) -> bytes:
        """What the annotations, and deadlines, say that rules read; empty for most pods."""
        annotations, read, spec = pod.metadata.annotations, self._annotations_read, pod.spec
        told: list[tuple[str, object]] = []
        if annotations:
            told += sorted((name, text) for name, text in annotations.items() if name in read)
        if self._deadlines_read and spec.active_deadline_seconds is not None:
            told.append(("", spec.active_deadline_seconds))
        if self._deadlines_read and spec.termination_grace_period_seconds is not None:
            told.append(("grace", spec.termination_grace_period_seconds))
        return _encoder.encode(told) if told else b""

    def lean(self, pod: Pod, cls: PodClass) -> Pod:
        """The same pod, with what it has in common with others of its class held once for all of
        them: half of its memory, as the records of a list are decoded.
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
                annotations=_one_of(own.annotations, known.annotations),
                owner_references=_one_of(own.owner_references, known.owner_references),
                creation_timestamp=_one_of(own.creation_timestamp, known.creation_timestamp),
                deletion_timestamp=own.deletion_timestamp,
                finalizers=own.finalizers,
            ),
            structs.replace(
                like.spec,
                node_name=intern(spec.node_name),
                scheduler_name=_one_of(spec.scheduler_name, like.spec.scheduler_name),
                volumes=_one_of(spec.volumes, like.spec.volumes),
                scheduling_gates=spec.scheduling_gates,
                scheduling_group=_one_of(spec.scheduling_group, like.spec.scheduling_group),
                active_deadline_seconds=spec.active_deadline_seconds,
                termination_grace_period_seconds=spec.termination_grace_period_seconds,
            ),
            status,
        )

    def record_of(self, info: PodInfo) -> Pod:
        """What rules read of a pod, with what it has in common with others held once: to be kept
        when the pod is gone.
        """
        pod, like = info.pod, info.cls.example
        if pod.spec.containers is not like.spec.containers:
            pod = self.lean(pod, info.cls)
        own = pod.metadata
        if not (own.annotations or own.finalizers):
            return pod
        annotations, said = {}, own.annotations or {}
        for name in (*self._annotations_read, *self._amounts_told):
            if name in said:
                annotations[name] = said[name]
        metadata = structs.replace(own, annotations=annotations or None, finalizers=None)
        return Pod(metadata, pod.spec, pod.status)

    def label_set_of(self, pod: Pod) -> LabelSet:
        key = _encoder.encode((pod.metadata.namespace, pod.metadata.labels))
        known = self._label_sets.get(key)
        if known is None:
            self._label_sets_made += 1
            known = LabelSet(self._label_sets_made, pod.metadata.namespace, pod.labels)
            self._label_sets[key] = known
        return known

    def info_of(self, pod: Pod, key: Hashable = None) -> PodInfo:
        """`key`: that of its class, if somebody remembers it, alone or before others; anything else
        says nothing.
        """
        own = key[0] if type(key) is tuple else key
        known = self._classes.get(own) if type(own) is bytes else None
        if known is None or known.is_large:
            return PodInfo(pod, self.class_of(pod))
        self._recent.keep(known)
        return PodInfo(pod, known)


class _Recent:
    """Classes that were asked for last, up to so many bytes of them."""

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._bytes = 0
        self._classes: OrderedDict[PodClass, int] = OrderedDict()  # with its bytes

    def __len__(self) -> int:
        return len(self._classes)

    def keep(self, cls: PodClass) -> None:
        recent = self._classes
        if cls in recent:
            recent.move_to_end(cls)
            return
        recent[cls] = _bytes_of(cls)
        self._bytes += recent[cls]
        while self._bytes > self._bytes_max and len(recent) > 1:
            self._bytes -= recent.popitem(last=False)[1]


class _LargeKeys:
    """Of pods with large ones, which take milliseconds to make: of each as it was asked for last,
    until it goes, up to so many bytes.
    """

    def __init__(self) -> None:
        self._bytes = 0
        self._keys: OrderedDict[str, tuple[Pod, bytes]] = OrderedDict()  # by uid

    def of(self, pod: Pod) -> bytes | None:
        found = self._keys.get(pod.metadata.uid)
        return found[1] if found is not None and found[0] is pod else None

    def keep(self, pod: Pod, key: bytes) -> None:
        self.drop(pod)
        self._keys[pod.metadata.uid] = pod, key
        self._bytes += len(key)
        while self._bytes > LARGE_KEYS_BYTES_MAX and len(self._keys) > 1:
            self._bytes -= len(self._keys.popitem(last=False)[1][1])

    def drop(self, pod: Pod) -> None:
        found = self._keys.pop(pod.metadata.uid, None)
        if found is not None:
            self._bytes -= len(found[1])


def _one_of(own: T, known: T) -> T:
    """What is known already, if it is equal."""
    return known if own == known else own


def _bytes_of(cls: PodClass) -> int:
    own = cls.example.metadata
    beside = footprint((own.annotations, own.finalizers, own.owner_references))
    return CLASS_BYTES + BYTES_PER_KEY_BYTE * len(cls.key) + beside


def _resize_key(pod: Pod) -> bytes:
    """What of the status decides how much a placed pod holds; empty for most pods."""
    status = pod.status
    if not (status.resources or status.container_statuses or status.init_container_statuses):
        return b""
    told = [
        (s.name, s.resources, s.allocated_resources)
        for s in (*(status.container_statuses or ()), *(status.init_container_statuses or ()))
        if s.resources is not None  # without these, nobody counts what is allocated
    ]
    if not told and status.resources is None:
        return b""
    pending = pod.condition("PodResizePending")
    return _encoder.encode(
        (told, status.resources, status.allocated_resources, pending.reason if pending else "")
    )
