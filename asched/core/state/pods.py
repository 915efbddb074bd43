"""Pods as the columns count them: classes of equal pods, and which pod is on which row.

Pods whose scheduling-relevant content is equal share one `PodClass`, and with it everything derived
from that content: requests, ports, compiled affinity terms. A `PodInfo` is one pod with its class
and place.
"""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple, Protocol
from weakref import ref

from asched.core.model import requests
from asched.core.model.derived import derived
from asched.core.model.pod import Container, Pod, spec_key
from asched.core.model.quantity import QuantityError
from asched.core.model.storage import PodStorage, storage_of
from asched.core.model.vast import VAST_BYTES
from asched.core.state.affinity_terms import AffinityTerms, TermsOf
from asched.core.state.budget import Budget

#: A pod of so many bytes counts as a large one, which is looked at piece by piece: one piece of it
#: costs a step of the budget for each so many bytes. Measured with pods of 1.5 MB.
LARGE_BYTES, BYTES_PER_STEP = 64 << 10, 3_000


class HostPort(NamedTuple):
    ip: str
    protocol: str
    port: int


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
        self.counters: Sequence[object] = ()


def _asks_for_both(container: Container) -> bool:
    """Whether a container asks for cpu and memory, be it for nothing of them."""
    asked = container.resources.requests
    return asked is not None and requests.CPU in asked and requests.MEMORY in asked


class Memory(Protocol):
    """Keeps something for each of many classes."""

    def forget(self, number: int, /) -> None: ...


class PodClass:
    """What equal pods have in common. `example` is one of them: only its spec may be looked at, and
    those annotations that `PodClasses` was asked to tell them apart by.
    """

    def __init__(
        self,
        number: int,
        key: bytes,
        example: Pod,
        label_set: LabelSet,
        *,
        budget: Budget,
        told: bytes = b"",
        tells_of_resize: bool = False,
    ) -> None:
        """`told`: what of the key says which of the annotations that rules read the pods have;
        `tells_of_resize`: its status has a say in what such a placed pod holds.
        """
        self.number = number
        self.budget = budget
        self.key = key
        #: whether everything that is done with such a pod takes long
        self.is_large = len(key) > LARGE_BYTES
        #: whether an attempt at one does: until what is made once of a vast one is made
        self.takes_long = len(key) > VAST_BYTES
        self.told = told
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
        return self.key == spec_key(other.example, labelled=self.example) + other.told

    def take_over(self, other: "PodClass") -> None:
        """Whatever was derived from another's spec, which is equal to this one's."""
        mine = self.__dict__
        for name in _OF_SPEC:
            if name in other.__dict__:
                mine.setdefault(name, other.__dict__[name])

    @derived
    def is_simple(self) -> bool:
        """Whether containers alone say what such a pod holds, pending or placed."""
        return requests.is_simple(self.example)

    @derived
    def requests(self) -> dict[str, int]:
        """Of the spec alone: resource name to milli-CPU, bytes or whole devices.

        Zeroes are kept.
        """
        return requests.pod_requests(self.example)

    @derived
    def accounted(self) -> dict[str, int]:
        """What a node loses to such a pod, a resize in place included; what nobody counts is left
        out, and so is everything if an amount cannot be read.
        """
        resized = self.tells_of_resize  # else the status of the example is its own affair
        try:
            amounts = requests.accounted_requests(self.example) if resized else self.requests
        except QuantityError:
            return {}
        fixed = (requests.CPU, requests.MEMORY, requests.EPHEMERAL_STORAGE)
        return {n: a for n, a in amounts.items() if a and (n in fixed or requests.is_scalar(n))}

    @derived
    def accounted_nonzero(self) -> tuple[int, int]:
        """(milli-CPU, bytes) a node loses for scoring, with defaults for silent containers."""
        try:
            if self.is_simple:
                return self.scoring_nonzero
            resized = self.tells_of_resize
            return requests.scoring_requests(self.example, pod_level=True, resized=resized)
        except QuantityError:
            return 0, 0

    @derived
    def scoring_nonzero(self) -> tuple[int, int]:
        """(milli-CPU, bytes) with which such a pending pod is scored by the resource scorers."""
        if self.is_simple and all(map(_asks_for_both, self.example.spec.containers or ())):
            asked = self.requests  # then there is nothing to be filled in
            return asked.get(requests.CPU, 0), asked.get(requests.MEMORY, 0)
        return requests.scoring_requests(self.example, pod_level=False, resized=False)

    @derived
    def host_ports(self) -> tuple[HostPort, ...]:
        """Of containers and sidecars; a missing address is any address, a missing protocol TCP."""
        spec, found = self.example.spec, list[HostPort]()
        sidecars = [c for c in spec.init_containers or () if c.restart_policy == "Always"]
        for container in (*(spec.containers or ()), *sidecars):
            for port in container.ports or ():
                if port.host_port > 0:
                    ip, protocol = port.host_ip or "0.0.0.0", port.protocol or "TCP"  # noqa: S104
                    found.append(HostPort(ip, protocol, port.host_port))
        return tuple(found)

    @derived
    def terms_of(self) -> TermsOf:
        """The affinity terms, compiled as far as there was time."""
        return TermsOf(self.example, self.budget)

    @derived
    def terms(self) -> AffinityTerms:
        """Compiled affinity terms. Raises ValueError if a selector makes no sense, OutOfTurn if
        there are too many for one turn.
        """
        return self.terms_of.all()

    def charge(self) -> None:
        """Before one piece of a large pod is looked at as a whole. Raises OutOfTurn: what was
        learnt of other pieces has to be kept by then.
        """
        if self.is_large:
            self.budget.charge(len(self.key) / BYTES_PER_STEP)

    @property
    def has_affinity(self) -> bool:
        """Whether there is any podAffinity or podAntiAffinity stanza, even an empty one."""
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
    name for name, value in vars(PodClass).items() if isinstance(value, derived)
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
