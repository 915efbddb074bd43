"""Pods as they are counted: classes of equal pods, and the row of each pod.

Pods with equal scheduling-relevant content share one `PodClass`, and with it all data derived from
that content: requests, ports, compiled affinity terms. A `PodInfo` is one pod with its class and
place.
"""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple, Protocol
from weakref import ref

from asched.core.cluster.affinity_terms import AffinityTerms, compile_terms
from asched.core.model import pod_limits, requests
from asched.core.model.derived import derived
from asched.core.model.pod import Container, Pod, spec_key
from asched.core.model.quantity import QuantityError
from asched.core.model.storage import PodStorage, storage_of


class HostPort(NamedTuple):
    ip: str
    protocol: str
    port: int


class LabelSet:
    """A namespace with a set of labels: everything that selectors of pods can match.

    `topology.py` maintains `counters`: those that count pods with these labels.
    """

    __slots__ = ("__weakref__", "counters", "generation", "labels", "namespace", "number")

    def __init__(self, number: int, namespace: str, labels: dict[str, str]) -> None:
        self.number = number
        self.namespace = namespace
        self.labels = labels
        self.generation = -1
        self.counters: Sequence[object] = ()


def _asks_for_both(container: Container) -> bool:
    """Whether a container has requests for cpu and memory, including zero."""
    requested = container.resources.requests
    return requested is not None and requests.CPU in requested and requests.MEMORY in requested


class Memory(Protocol):
    """A cache with an entry for each of many classes."""

    def forget(self, number: int, /) -> None: ...


class PodClass:
    """Data shared by equal pods. `example` is one of them: only its spec may be read, and those
    annotations that are part of the key (`PodClasses.tell_apart_by`).
    """

    def __init__(
        self,
        number: int,
        key: bytes,
        example: Pod,
        label_set: LabelSet,
        *,
        annotations_key: bytes = b"",
        has_resize: bool = False,
        by_sum: bool = False,
    ) -> None:
        """`annotations_key`: the part of the key for annotations that rules read; `has_resize`: the
        status of such a placed pod influences its usage, `by_sum` as in `accounted_requests`.
        """
        self.number = number
        self.key = key
        #: which limit such a pod exceeds; then it is not scheduled
        self.refusal = pod_limits.exceeded(example, len(key))
        self.annotations_key = annotations_key
        self.has_resize, self._by_sum = has_resize, by_sum
        self.example = example
        self.label_set = label_set
        #: cached keys by number of the profile's cache
        self.keys: dict[int, Any] = {}
        #: caches with an entry for this class, which they drop with the class
        self.known_by: list[ref[Memory]] = []

    def __del__(self) -> None:
        for known_by in self.known_by:
            memory = known_by()
            if memory is not None:
                memory.forget(self.number)

    def is_relabelled(self, other: "PodClass") -> bool:
        """Whether pods of these classes differ only by labels."""
        if self.has_resize or other.has_resize:
            return False
        return self.key == spec_key(other.example, labelled=self.example) + other.annotations_key

    def take_over(self, other: "PodClass") -> None:
        """Reuse all data derived from the equal spec of another class."""
        derived_data = self.__dict__
        for name in _OF_SPEC:
            if name in other.__dict__:
                derived_data.setdefault(name, other.__dict__[name])

    @derived
    def is_simple(self) -> bool:
        """Whether containers alone determine the usage of such a pod, pending or placed."""
        return requests.is_simple(self.example)

    @derived
    def requests(self) -> dict[str, int]:
        """Requests of the spec: resource name -> milli-CPU, bytes or whole devices.

        Zeroes are kept.
        """
        return requests.pod_requests(self.example)

    @derived
    def accounted(self) -> dict[str, int]:
        """The amounts that such a pod uses of a node, including an in-place resize; without
        uncounted resources, and empty if an amount cannot be parsed.
        """
        try:
            if self.has_resize:  # else the example's status is not shared
                amounts = requests.accounted_requests(self.example, by_sum=self._by_sum)
            else:
                amounts = self.requests
        except QuantityError:
            return {}
        fixed = (requests.CPU, requests.MEMORY, requests.EPHEMERAL_STORAGE)
        return {n: a for n, a in amounts.items() if a and (n in fixed or requests.is_scalar(n))}

    @derived
    def accounted_nonzero(self) -> tuple[int, int]:
        """(milli-CPU, bytes) used of a node for scoring, with defaults for missing requests."""
        try:
            if self.is_simple:
                return self.scoring_nonzero
            resized = self.has_resize
            return requests.scoring_requests(
                self.example, pod_level=True, resized=resized, by_sum=self._by_sum
            )
        except QuantityError:
            return 0, 0

    @derived
    def scoring_nonzero(self) -> tuple[int, int]:
        """(milli-CPU, bytes) of such a pending pod for the resource scorers."""
        if self.is_simple and all(map(_asks_for_both, self.example.spec.containers or ())):
            requested = self.requests  # then no defaults apply
            return requested.get(requests.CPU, 0), requested.get(requests.MEMORY, 0)
        return requests.scoring_requests(self.example, pod_level=False, resized=False)

    @derived
    def host_ports(self) -> tuple[HostPort, ...]:
        """Of containers and sidecars; a missing address means any, a missing protocol TCP."""
        spec = self.example.spec
        ports: list[HostPort] = []
        sidecars = [c for c in spec.init_containers or () if c.restart_policy == "Always"]
        for container in (*(spec.containers or ()), *sidecars):
            for port in container.ports or ():
                if port.host_port > 0:
                    ip, protocol = port.host_ip or "0.0.0.0", port.protocol or "TCP"  # noqa: S104
                    ports.append(HostPort(ip, protocol, port.host_port))
        return tuple(ports)

    @derived
    def terms(self) -> AffinityTerms:
        """Compiled affinity terms. Raises ValueError for an invalid selector."""
        return compile_terms(self.example)

    @derived
    def has_affinity(self) -> bool:
        """Whether there is any podAffinity or podAntiAffinity field, even an empty one."""
        affinity = self.example.spec.affinity
        return affinity is not None and (
            affinity.pod_affinity is not None or affinity.pod_anti_affinity is not None
        )

    @derived
    def storage(self) -> PodStorage:
        """Claims and disks of the volumes."""
        return storage_of(self.example)

    @derived
    def claim_names(self) -> tuple[str, ...]:
        """Claims named directly by volumes, in order, as written (without generic ephemeral
        ones).
        """
        return tuple(
            volume.persistent_volume_claim.claim_name
            for volume in self.example.spec.volumes or ()
            if volume.persistent_volume_claim is not None
        )


#: Data derived from the spec only.
_OF_SPEC: Final = tuple(
    name for name, value in vars(PodClass).items() if isinstance(value, derived)
)


class PodInfo:
    """One pod: its newest version, its class, and its node row (-1: none).

    `is_chosen`: this process chose the node. `was_bound`: another client did that has the right to
    bind pods. Otherwise the node may be what the pod's creator wrote, and nothing but its room
    follows from the pod.

    `state` has data of plugins between the points of one attempt; None until it is used.
    """

    __slots__ = ("assumed", "cls", "is_chosen", "node_name", "pod", "row", "state", "was_bound")

    def __init__(self, pod: Pod, cls: PodClass) -> None:
        self.pod = pod
        self.cls = cls
        self.row = -1
        self.node_name = ""
        self.assumed = self.is_chosen = self.was_bound = False
        self.state: dict[str, Any] | None = None

    def __repr__(self) -> str:
        return f"<PodInfo {self.pod.key} on {self.node_name or '-'}{' assumed' * self.assumed}>"
