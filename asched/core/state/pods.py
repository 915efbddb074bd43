"""Pods as the columns count them: classes of equal pods, and which pod is on which row.

Pods whose scheduling-relevant content is equal share one `PodClass`, and with it everything derived
from that content: requests, ports, compiled affinity terms. A `PodInfo` is one pod with its class
and place.
"""

from collections import OrderedDict
from functools import cached_property
from sys import intern
from typing import Any, Final, NamedTuple, Protocol, TypeVar
from weakref import WeakValueDictionary, ref

import msgspec
from msgspec import structs

from asched.core.model import requests
from asched.core.model.pod import Container, Pod, PodAffinityTerm, spec_key
from asched.core.model.quantity import QuantityError
from asched.core.model.selector import Selector, compile_selector
from asched.core.model.storage import PodStorage, storage_of

#: Bytes of classes that nobody uses ...
RECENT_BYTES_MAX: Final = 2 << 20
#: ... at so much for a class, and so much for each byte of its key. Measured with plain pods.
CLASS_BYTES, BYTES_PER_KEY_BYTE = 6 << 10, 8
_encoder: Final = msgspec.msgpack.Encoder(order="deterministic")

T = TypeVar("T")


class HostPort(NamedTuple):
    ip: str
    protocol: str
    port: int


class AffinityTerm(NamedTuple):
    """A compiled (anti-)affinity term of a pod. `selector` None matches nothing.

    `namespaces`: the names given, or the pod's own; `namespace_selector`: None if the term has
    none.
    """

    topology_key: str
    selector: Selector | None
    namespaces: frozenset[str]
    namespace_selector: Selector | None
    weight: int = 0


class AffinityTerms(NamedTuple):
    """All terms of a pod, by kind."""

    required_affinity: tuple[AffinityTerm, ...]
    required_anti_affinity: tuple[AffinityTerm, ...]
    preferred_affinity: tuple[AffinityTerm, ...]
    preferred_anti_affinity: tuple[AffinityTerm, ...]


NO_TERMS: Final = AffinityTerms((), (), (), ())


class LabelSet:
    """A namespace with a set of labels: all that selectors can tell pods apart by.

    `counters` is kept by `state/topology.py`: those that count pods with these labels.
    """

    __slots__ = ("__weakref__", "counters", "generation", "labels", "namespace", "number")

    def __init__(self, number: int, namespace: str, labels: dict[str, str]) -> None:
        self.number = number
        self.namespace = namespace
        self.labels = labels
        self.generation = -1
        self.counters: list[object] = []


def _asks_for_both(container: Container) -> bool:
    """Whether a container asks for cpu and memory, be it for nothing of them."""
    asked = container.resources.requests if container.resources else None
    return asked is not None and requests.CPU in asked and requests.MEMORY in asked


class Memory(Protocol):
    """Keeps something for each of many classes."""

    def forget(self, number: int, /) -> None: ...


class PodClass:
    """What equal pods have in common. `example` is one of them: only its spec may be looked at."""

    def __init__(
        self,
        number: int,
        key: bytes,
        example: Pod,
        label_set: LabelSet,
        *,
        tells_of_resize: bool = False,
    ) -> None:
        """`tells_of_resize`: its status has a say in what such a placed pod holds."""
        self.number = number
        self.key = key
        self.tells_of_resize = tells_of_resize
        self.example = example
        self.label_set = label_set
        #: what each profile's cache found this class to have in common with others, and when
        self.keys: dict[int, Any] = {}
        #: whoever keeps something under this class's number, and forgets it with the class
        self.known_by: list[ref[Memory]] = []

    def __del__(self) -> None:
        for known_by in self.known_by:
            memory = known_by()
            if memory is not None:
                memory.forget(self.number)

    def is_relabelled(self, other: "PodClass") -> bool:
        """Whether labels alone tell pods of these classes apart."""
        if self.tells_of_resize or other.tells_of_resize:
            return False
        return self.key == spec_key(other.example, labelled=self.example)

    def take_over(self, other: "PodClass") -> None:
        """Whatever was derived from another's spec, which is equal to this one's."""
        mine = self.__dict__
        for name in _OF_SPEC:
            if name in other.__dict__:
                mine.setdefault(name, other.__dict__[name])

    @cached_property
    def is_simple(self) -> bool:
        """Whether containers alone say what such a pod holds, pending or placed."""
        return requests.is_simple(self.example)

    @cached_property
    def requests(self) -> dict[str, int]:
        """Of the spec alone: resource name to milli-CPU, bytes or whole devices.

        Zeroes are kept.
        """
        return requests.pod_requests(self.example)

    @cached_property
    def accounted(self) -> dict[str, int]:
        """What a node loses to such a pod, a resize in place included; what nobody counts is left
        out, and so is everything if an amount cannot be read.
        """
        simple = self.is_simple
        try:
            amounts = self.requests if simple else requests.accounted_requests(self.example)
        except QuantityError:
            return {}
        fixed = (requests.CPU, requests.MEMORY, requests.EPHEMERAL_STORAGE)
        return {n: a for n, a in amounts.items() if a and (n in fixed or requests.is_scalar(n))}

    @cached_property
    def accounted_nonzero(self) -> tuple[int, int]:
        """(milli-CPU, bytes) a node loses for scoring, with defaults for silent containers."""
        try:
            if self.is_simple:
                return self.scoring_nonzero
            return requests.scoring_requests(self.example, pod_level=True, resized=True)
        except QuantityError:
            return 0, 0

    @cached_property
    def scoring_nonzero(self) -> tuple[int, int]:
        """(milli-CPU, bytes) with which such a pending pod is scored by the resource scorers."""
        if self.is_simple and all(map(_asks_for_both, self.example.spec.containers or ())):
            asked = self.requests  # then there is nothing to be filled in
            return asked.get(requests.CPU, 0), asked.get(requests.MEMORY, 0)
        return requests.scoring_requests(self.example, pod_level=False, resized=False)

    @cached_property
    def host_ports(self) -> tuple[HostPort, ...]:
        """Of containers and sidecars; a missing address is any address, a missing protocol TCP."""
        spec = self.example.spec
        sidecars = (c for c in spec.init_containers or () if c.restart_policy == "Always")
        return tuple(
            HostPort(port.host_ip or "0.0.0.0", port.protocol or "TCP", port.host_port)  # noqa: S104
            for container in (*(spec.containers or ()), *sidecars)
            for port in container.ports or ()
            if port.host_port > 0
        )

    @cached_property
    def terms(self) -> AffinityTerms:
        """Compiled affinity terms. Raises ValueError if a selector makes no sense."""
        affinity = self.example.spec.affinity
        if affinity is None or (
            affinity.pod_affinity is None and affinity.pod_anti_affinity is None
        ):
            return NO_TERMS
        own = self.example.metadata.namespace
        together, apart = affinity.pod_affinity, affinity.pod_anti_affinity
        return AffinityTerms(
            tuple(_term(t, own) for t in (together.required if together else None) or ()),
            tuple(_term(t, own) for t in (apart.required if apart else None) or ()),
            tuple(
                _term(t.pod_affinity_term, own, t.weight)
                for t in (together.preferred if together else None) or ()
            ),
            tuple(
                _term(t.pod_affinity_term, own, t.weight)
                for t in (apart.preferred if apart else None) or ()
            ),
        )

    @property
    def has_affinity(self) -> bool:
        """Whether there is any podAffinity or podAntiAffinity stanza, even an empty one."""
        affinity = self.example.spec.affinity
        return affinity is not None and (
            affinity.pod_affinity is not None or affinity.pod_anti_affinity is not None
        )

    @cached_property
    def storage(self) -> PodStorage:
        """Claims and disks of the volumes."""
        return storage_of(self.example)

    @cached_property
    def claim_names(self) -> tuple[str, ...]:
        """Claims named directly by volumes, in order, as written (generic ephemeral ones left
        out).
        """
        return tuple(
            volume.persistent_volume_claim.claim_name
            for volume in self.example.spec.volumes or ()
            if volume.persistent_volume_claim is not None
        )


#: What a class derives from the spec alone.
_OF_SPEC: Final = tuple(
    name for name, value in vars(PodClass).items() if isinstance(value, cached_property)
)


class PodInfo:
    """One pod: its newest version, its class, and the node row it counts on (-1: none).

    `state` is what plugins note between the points of one attempt; None while nobody did.
    """

    __slots__ = ("assumed", "cls", "node_name", "pod", "row", "state")

    def __init__(self, pod: Pod, cls: PodClass) -> None:
        self.pod = pod
        self.cls = cls
        self.row = -1
        self.node_name = ""
        self.assumed = False
        self.state: dict[str, Any] | None = None

    def __repr__(self) -> str:
        return f"<PodInfo {self.pod.key} on {self.node_name or '-'}{' assumed' * self.assumed}>"


def _term(term: PodAffinityTerm, own_namespace: str, weight: int = 0) -> AffinityTerm:
    names = frozenset(term.namespaces or ())
    if not names and term.namespace_selector is None:
        names = frozenset((own_namespace,))
    return AffinityTerm(
        term.topology_key,
        compile_selector(term.label_selector),
        names,
        compile_selector(term.namespace_selector),
        weight,
    )


class PodClasses:
    """Interns classes and label sets. They go when the last pod that uses them goes, but for the
    classes asked for last: where pods come one by one, each would else be the first.
    """

    def __init__(self) -> None:
        self._classes: WeakValueDictionary[bytes, PodClass] = WeakValueDictionary()
        self._recent: OrderedDict[PodClass, None] = OrderedDict()
        self._recent_bytes = 0
        self._label_sets: WeakValueDictionary[bytes, LabelSet] = WeakValueDictionary()
        self._classes_made = 0
        self._label_sets_made = 0

    def class_of(self, pod: Pod) -> PodClass:
        """The class of a pod; a placed pod whose status tells of resources has one of its own
        kind.
        """
        key = spec_key(pod)
        resize = _resize_key(pod) if pod.spec.node_name else b""
        key += resize
        known = self._classes.get(key)
        if known is None:
            self._classes_made += 1
            known = PodClass(
                self._classes_made, key, pod, self.label_set_of(pod), tells_of_resize=bool(resize)
            )
            self._classes[key] = known
        recent = self._recent
        if known in recent:
            recent.move_to_end(known)
            return known
        recent[known] = None
        self._recent_bytes += _bytes_of(known)
        while self._recent_bytes > RECENT_BYTES_MAX and len(recent) > 1:
            self._recent_bytes -= _bytes_of(recent.popitem(last=False)[0])
        return known

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

    def info_of(self, pod: Pod) -> PodInfo:
        return PodInfo(pod, self.class_of(pod))


def _one_of(own: T, known: T) -> T:
    """What is known already, if it is equal."""
    return known if own == known else own


def _bytes_of(cls: PodClass) -> int:
    return CLASS_BYTES + BYTES_PER_KEY_BYTE * len(cls.key)


def _resize_key(pod: Pod) -> bytes:
    """What of the status decides how much a placed pod holds; empty for most pods."""
    status = pod.status
    if not (status.resources or status.container_statuses or status.init_container_statuses):
        return b""
    told = [
        (s.name, s.resources, s.allocated_resources)
        for s in (*(status.container_statuses or ()), *(status.init_container_statuses or ()))
        if s.resources is not None or s.allocated_resources is not None
    ]
    if not told and status.resources is None:
        return b""
    pending = pod.condition("PodResizePending")
    return _encoder.encode(
        (told, status.resources, status.allocated_resources, pending.reason if pending else "")
    )
