"""The known state of the cluster: the only writer of all columns and stores.

    facts ──> apply ──> ObservedChange(kind, old, new) …   the queue derives changes from these
    assume / forget                                        the cycle reserves, failures release
    holds                                                  reservations for pods to come
    supposing                                              tentative changes, undone at the end

The states of a pod:

    unseen ─Seen, no node─> pending ─assume─> assumed ─Seen, node─> placed ─Gone─> unseen
                               ^                 │
                               └─────forget──────┘

An assumed pod stays until the watch confirms it, it is forgotten, or it is deleted; it does not
expire. A pod on an unknown node is an orphan and counts nowhere until the node appears.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, NamedTuple, TypeVar

from asched import names
from asched.core.cluster.budget import Budget
from asched.core.cluster.consumers import Consumers
from asched.core.cluster.counters import CounterKey, PodCounter
from asched.core.cluster.facts import Fact, Gone, Listed, Seen, WallClock
from asched.core.cluster.holds import HeldAmounts, Holds
from asched.core.cluster.list_parts import ListParts, gone
from asched.core.cluster.nodes import POD_LABELS, PODS_MOVED, NodeTable
from asched.core.cluster.nominated import Nominator
from asched.core.cluster.objects import RULED_BY_SPEC, Objects
from asched.core.cluster.pod_classes import PodClasses
from asched.core.cluster.pod_groups import COSCHEDULING_LABEL, PodGroups, by_age
from asched.core.cluster.pods import PodClass, PodInfo
from asched.core.cluster.refusals import Refusals
from asched.core.cluster.supposition import Supposition
from asched.core.cluster.topology import TopologyCounters
from asched.core.cluster.usage import NamespaceUsage, Occupancy, Priorities
from asched.core.cluster.view import NodeView
from asched.core.cluster.volumes import VolumeIndex
from asched.core.cluster.weakly import weakly
from asched.core.model.kinds import NODE, POD, Kind
from asched.core.model.node import Node
from asched.core.model.pod import Pod
from asched.core.model.storage import NO_STORAGE

C = TypeVar("C")

CAUSE_CHARS_MAX: Final = 500


class InvariantError(BaseException):
    """A broken invariant of the columns, named by the message.

    Not an Exception, so that no handler for exceptions contains it: every later decision would be
    based on wrong sums, while a new process reads everything again.
    """


def broken(invariant: str, cause: BaseException) -> InvariantError:
    """The error for a change of the columns that an exception interrupted."""
    text = f"{type(cause).__name__}: {cause}"[:CAUSE_CHARS_MAX]
    return InvariantError(f"broken invariant of the columns: {invariant} ({text})")


class ObservedChange(NamedTuple):
    """One object's change of version; None where it did not or does not exist."""

    kind: Kind
    old: Any
    new: Any


class CannotAssumeError(Exception):
    """The pod already counts on a node; the message is upstream's."""


class Cluster(Objects):
    """The whole state. Rules read; only the machine calls methods that change something."""

    def __init__(self) -> None:
        super().__init__()
        self.budget = Budget()
        self.nodes = NodeTable()
        self.classes = PodClasses()
        self.topology = TopologyCounters(self.nodes, self.budget)
        self.occupancy = Occupancy()
        self.refusals = Refusals(self.nodes)
        self.volumes = VolumeIndex(self.nodes, weakly(self.stored))
        self.pod_groups = PodGroups()
        self.consumers = Consumers()  # placed pods that use a ProvisioningRequest
        self.holds = Holds(self.nodes, weakly(self._count_held))  # weakly: no circle of references
        self.pods_seen: dict[str, Pod] = {}  # "namespace/name" -> newest version, placed or not
        self.nominator = Nominator(self.pods_seen.get)  # shared by cycles and plugins
        self.placed: dict[str, PodInfo] = {}  # uid -> placed or assumed pods, orphans too
        self.priorities = Priorities()  # counts of pods on known nodes by priority
        self.usage = NamespaceUsage(self.placed, self.holds.pods)
        self._rows: list[dict[str, PodInfo]] = []  # row -> uid -> pod
        self._orphans: dict[str, dict[str, PodInfo]] = {}  # node name -> uid -> pod
        #: They grow when a pod comes, goes or moves that has more than amounts, such as labels of a
        #: term, ports or volumes. A result made from such counts is stale once its value of
        #: `counts` is another one; `counts_outside_trials` does not grow by suppositions.
        self.counts = self.counts_outside_trials = 0
        #: whether a supposition that lasts several turns has removed existing pods
        self.is_supposed = False
        #: time of the machine's last turn, for what lasts for seconds; unaffected by clock changes
        self.steady_s = 0.0
        #: the same since 1970, for dates that other processes write or read; 0: unknown
        self.wall_clock_s = 0.0
        self.wall_ahead_s = 0.0
        #: ignored objects, whose derived data cannot be computed, with the error
        self.unreadable: list[tuple[str, Exception]] = []
        self._list_parts = ListParts()
        self._broken: InvariantError | None = None
        self._singletons: dict[Any, Any] = {}

    # --- for readers -----------------------------------------------------------------------------

    def view(self) -> NodeView:
        return NodeView(self.nodes)

    def singleton(self, make: Callable[["Cluster"], C]) -> C:
        """Data that a rule derives from the cluster for all profiles, made on first use."""
        instance = self._singletons.get(make)
        if instance is None:
            instance = self._singletons[make] = make(self)
        return instance

    def pods_on(self, row: int) -> dict[str, PodInfo]:
        """Uid -> pod on a row, the newest last, including assumed and terminating ones."""
        return self._rows[row]

    def node_of(self, name: str) -> Node | None:
        row = self.nodes.row_of.get(name)
        return None if row is None else self.nodes.node_at[row]

    def counter(self, key: CounterKey) -> PodCounter:
        """Counts of the pods that match a key, made on first use."""
        return self.topology.counter(key)

    # --- facts -----------------------------------------------------------------------------------

    def begin_turn(self, now_s: float, *, is_quiet: bool) -> None:
        """`is_quiet`: no attempt is open, so that rows may be given back. Raises InvariantError,
        also for an invariant broken between two turns.
        """
        if self._broken is not None:
            raise self._broken
        if self.topology.on_trial:
            raise InvariantError("broken invariant of the columns: a trial ends before its turn")
        self.steady_s, self.wall_clock_s = now_s, now_s + self.wall_ahead_s
        if is_quiet and self.nodes.cut():
            del self._rows[self.nodes.height :]

    def apply(self, fact: Fact) -> list[ObservedChange]:
        """Apply a watch fact to the columns; returns changes that rules may read."""
        match fact:
            case Seen():
                return self._see(fact.kind, fact.obj)
            case Gone():
                return self._lose(fact.kind, fact.obj)
            case Listed():
                return [change for change in self.relist(fact) if change is not None]
            case WallClock():
                self.wall_clock_s += fact.ahead_s - self.wall_ahead_s
                self.wall_ahead_s = fact.ahead_s
        return []

    def _see(self, kind: Kind, obj: Any) -> list[ObservedChange]:
        cls = None
        if kind is POD and obj.spec.node_name:
            try:  # nothing has been written yet
                cls = self.classes.class_of(obj)
                obj = self.classes.lean(obj, cls)  # shares data with its class: half the memory
                _derive(cls)
            except Exception as error:  # noqa: BLE001 - reported by the machine
                self.unreadable.append((f"pod {obj.key}", error))
                return []
        try:
            if kind is POD:
                return self._see_pod(obj, cls)
            if kind is NODE:
                return [self._see_node(obj)]
            if self._put_plain(kind, obj):
                return []
            return [ObservedChange(kind, self._put_object(kind, obj), obj)]
        except Exception as e:
            raise self._incomplete(f"{kind.resource} {obj.metadata.key} is wholly known", e) from e

    def _lose(self, kind: Kind, obj: Any) -> list[ObservedChange]:
        try:
            return self._lose_object(kind, obj)
        except Exception as e:
            raise self._incomplete(f"{kind.resource} {obj.metadata.key} is wholly gone", e) from e

    def _incomplete(self, invariant: str, cause: Exception) -> InvariantError:
        """The error for an incomplete change; each later turn raises it, too."""
        self._broken = self._broken or broken(invariant, cause)
        return self._broken

    def _lose_object(self, kind: Kind, obj: Any) -> list[ObservedChange]:
        if kind is POD:
            known = self.pods_seen.get(obj.key)
            if known is None or known.uid != obj.uid:
                return []
            return [self._lose_pod(known, obj)]
        if kind is NODE:
            return self._lose_node(obj)
        old = self._drop_object(kind, obj.metadata.key)
        return [ObservedChange(kind, old, None)] if old is not None else []

    def relist(self, fact: Listed) -> Iterator[ObservedChange | None]:
        """Apply a list, or a part of one, one object per step, also for unchanged ones (None).
        Nothing else of its kind may be applied until its end. Waiting pods come last, by age.
        """
        kind = fact.kind
        self._served_kinds[kind.resource] = kind
        listed, staying = yield from self._list_parts.take(fact)
        known: Mapping[str, Any] = self.pods_seen if kind is POD else self._stored(kind)
        if kind is NODE:
            known = {n.name: n for _, n in self.nodes.nodes()}
        if staying is not None:
            for obj in gone(known, staying):
                yield from self._lose(kind, obj) if obj is not None else (None,)
        for step in by_age(listed) if kind is POD else listed.items():
            if step is None:  # a step of sorting
                yield None
                continue
            key, obj = step
            old: Any = known.get(key)
            same = old is not None and old.metadata.uid == obj.metadata.uid
            if same and old.metadata.resource_version == obj.metadata.resource_version != "":
                yield None
                continue
            if old is not None and not same:
                yield from self._lose(kind, old)
            yield from self._see(kind, obj)

    def _touch(self, kind: Kind, key: str) -> None:
        super()._touch(kind, key)
        if kind.resource in RULED_BY_SPEC:  # kinds whose status is read by no rule
            self.pod_groups.object_moved(kind, key, self.get(kind, key))
        self.volumes.touch(kind, key)

    # --- nodes -----------------------------------------------------------------------------------

    def _see_node(self, node: Node) -> ObservedChange:
        old = self.node_of(node.name)
        row, is_new = self.nodes.put(node)
        while len(self._rows) <= row:
            self._rows.append({})
        if is_new:
            self.volumes.node_came(node.name, row)
            for info in self._orphans.pop(node.name, {}).values():
                self._place(info, row)
        elif old is not None and old.labels != node.labels:
            changed = {key for key, _ in old.labels.items() ^ node.labels.items()}
            self.topology.relabel(row, changed)
        if row in self.holds.by_row:
            self.holds.row_moved(row)
        return ObservedChange(NODE, old, node)

    def _lose_node(self, node: Node) -> list[ObservedChange]:
        old = self.node_of(node.name)
        row = self.nodes.row_of.get(node.name)
        if old is None or row is None:
            return []
        stranded = dict(self._rows[row])
        for info in stranded.values():
            self._displace(info)
            info.row = -1
        if stranded:
            self._orphans[node.name] = stranded
        self.holds.node_goes(row, node.name)
        self.volumes.node_goes(node.name, row)
        self.nodes.remove(node.name)
        self.topology.forget_uncarried(old.labels)
        return [ObservedChange(NODE, old, None)]

    # --- pods ------------------------------------------------------------------------------------

    def _see_pod(self, pod: Pod, cls: PodClass | None) -> list[ObservedChange]:
        key, changes = pod.key, []
        old = self.pods_seen.get(key)
        if old is not None and old.metadata.uid != pod.metadata.uid:
            changes.append(self._lose_pod(old, old))
            old = None
        self.pods_seen[key] = pod
        labels, group = pod.metadata.labels, pod.spec.scheduling_group
        names_group = group is not None or (labels and COSCHEDULING_LABEL in labels)
        if names_group or pod.metadata.uid in self.pod_groups.of_pod:
            self.pod_groups.see(pod, old)
        if cls is not None:
            was_waiting = old is not None and not old.spec.node_name
            changes += self._place_seen(pod, cls, was_waiting=was_waiting)
        elif old is not None and old.spec.node_name and pod.metadata.uid in self.placed:
            self._unplace(self.placed[pod.metadata.uid])  # no API server does that
        return [*changes, ObservedChange(POD, old, pod)]

    def _place_seen(self, pod: Pod, cls: PodClass, *, was_waiting: bool) -> list[ObservedChange]:
        """Apply the node of a pod from the API, which replaces an assumed node: the returned change
        says that the place there is free. `was_waiting`: the version before had no node. The pod's
        room counts in any case. Further conclusions, such as that its node is avoided after its
        kubelet refused the pod, depend on who chose the node (`PodInfo`).
        """
        info = self.placed.get(pod.metadata.uid)
        gives_way: list[ObservedChange] = []
        is_chosen, was_bound = False, was_waiting
        if info is not None:
            stays = info.node_name == pod.spec.node_name and (
                info.pod.metadata.deletion_timestamp is None
            ) == (pod.metadata.deletion_timestamp is None)
            if stays and (
                info.cls is cls or _holds_as_much(info.cls, cls) or self._relabel(info, cls)
            ):
                if info.row >= 0 and (moved := self.classes.moved(info.pod, pod)):
                    self.nodes.log.add(info.row, moved)
                info.pod, info.assumed = pod, False
                return []
            is_chosen = info.is_chosen and info.node_name == pod.spec.node_name
            was_bound |= info.was_bound
            if info.assumed:
                gives_way.append(ObservedChange(POD, info.pod.on(info.node_name), None))
            self._unplace(info)
        fresh = PodInfo(pod, cls)
        fresh.is_chosen, fresh.was_bound = is_chosen, was_bound or _is_bound(pod)
        self._put(fresh, pod.spec.node_name)
        return gives_way

    def _relabel(self, info: PodInfo, cls: PodClass) -> bool:
        """Count a placed pod by other labels if nothing else changed, as after each binding."""
        old = info.cls
        if not old.is_relabelled(cls):
            return False
        cls.take_over(old)
        info.cls = cls
        if info.row >= 0:
            self.nodes.log.add(info.row, POD_LABELS)
            if self.topology.relabel_pod(info, old.label_set):
                self.note_counts()
        return True

    def _lose_pod(self, known: Pod, last: Pod) -> ObservedChange:
        self.pods_seen.pop(known.key, None)
        info = self.placed.get(known.uid)
        if info is not None and (not info.assumed or last.spec.node_name):
            self._unplace(info)
        self.pod_groups.lose(known)
        # The last version may have a placement that the watch did not deliver.
        return ObservedChange(POD, last if last.spec.node_name else known, None)

    def assume(self, info: PodInfo, node_name: str) -> None:
        """Count a pod on a node before the API does. Raises CannotAssumeError."""
        if info.pod.metadata.uid in self.placed:
            raise CannotAssumeError(
                f"pod {info.pod.uid}({info.pod.key}) is in the cache, so can't be assumed"
            )
        _derive(info.cls)
        info.assumed = info.is_chosen = True
        self._put(info, node_name)

    def forget(self, info: PodInfo) -> bool:
        """Release an assumed pod's place. False if it is not assumed (any more)."""
        held = self.placed.get(info.pod.uid)
        if held is None or not held.assumed:
            return False
        self._unplace(held)
        held.assumed = False
        return True

    def renew(self, info: PodInfo, pod: Pod) -> bool:
        """Continue with a newer version of an assumed pod; whether what decides about it changed:
        then the pod counts by its newest version.
        """
        cls = self.classes.class_of(pod)
        info.pod = pod
        if cls is info.cls:
            return False
        _derive(cls)
        if not self._relabel(info, cls):
            node = info.node_name
            self._unplace(info)
            info.cls = cls
            self._put(info, node)
        return True

    def has_chosen(self, uid: str) -> bool:
        """Whether this process chose the node of a placed pod."""
        info = self.placed.get(uid)
        return info is not None and info.is_chosen

    def is_assumed(self, uid: str) -> bool:
        info = self.placed.get(uid)
        return info is not None and info.assumed

    def _put(self, info: PodInfo, node_name: str) -> None:
        uid, info.node_name = info.pod.metadata.uid, node_name
        try:
            self.placed[uid] = info
            if uid in self.pod_groups.of_pod:
                self.pod_groups.place(info.pod)
            if info.pod.metadata.annotations:
                self.consumers.place(info)
            if self.usage.is_kept:  # a profile has quotas
                self.usage.move(info, 1)
            row = self.nodes.row_of.get(node_name)
            if row is None:
                self._orphans.setdefault(node_name, {})[uid] = info
            else:
                self._place(info, row)
        except Exception as e:
            raise self._incomplete(f"pod {info.pod.key} counts wholly on {node_name}", e) from e

    def _unplace(self, info: PodInfo) -> None:
        try:
            self._take_away(info)
        except Exception as e:
            raise self._incomplete(f"pod {info.pod.key} counts nowhere any more", e) from e

    def _take_away(self, info: PodInfo) -> None:
        if self.placed.pop(info.pod.uid, None) is not None:
            self.usage.move(info, -1)
        self.pod_groups.displace(info.pod)
        self.consumers.displace(info.pod.uid)
        if info.row >= 0:
            self._displace(info)
        else:
            lost = self._orphans.get(info.node_name)
            if lost is not None:
                lost.pop(info.pod.uid, None)
                if not lost:
                    del self._orphans[info.node_name]
        info.row, info.node_name = -1, ""

    def _place(self, info: PodInfo, row: int) -> None:
        info.row = row
        self.priorities[info.pod.priority] += 1
        self._count(info, row, 1)
        self.nodes.log.add(row, PODS_MOVED)
        if row in self.holds.by_row:
            self.holds.row_moved(row)

    def _displace(self, info: PodInfo) -> None:
        self.priorities.down(info.pod.priority)
        self._count(info, info.row, -1)
        self.nodes.log.add(info.row, PODS_MOVED)

    def _count(self, info: PodInfo, row: int, sign: int) -> None:
        """Update every column and index that depends on pods, by one pod."""
        try:
            if sign > 0:
                self._rows[row][info.pod.metadata.uid] = info
            else:
                del self._rows[row][info.pod.metadata.uid]
            self._count_unlisted(info, row, sign)
        except Exception as e:
            raise self._incomplete(f"row {row} counts pod {info.pod.key} wholly or not", e) from e

    def _count_unlisted(self, info: PodInfo, row: int, sign: int) -> None:
        cls = info.cls
        self.nodes.pod_amounts.move(cls, row, sign)
        self.nodes.columns.write["pod_count"][row] += sign
        if cls.host_ports or cls.claim_names:
            self.occupancy.move(info, row, sign, on_trial=bool(self.topology.on_trial))
            self.note_counts()
        if cls.storage is not NO_STORAGE:
            self.volumes.move(info, row, sign, on_trial=bool(self.topology.on_trial))
        if self.topology.move(info, row, sign):
            self.note_counts()

    def note_counts(self) -> None:
        self.counts += 1
        if not self.topology.on_trial:
            self.counts_outside_trials += 1

    def _count_held(self, what: HeldAmounts | PodInfo, row: int, sign: int) -> None:
        """As for pods, but no pod can be found there and evicted."""
        try:
            if isinstance(what, HeldAmounts):
                self.nodes.pod_amounts.move(what, row, sign)
                self.nodes.columns.write["pod_count"][row] += sign * what.pods
            else:
                self._count_unlisted(what, row, sign)
                self.usage.move(what, sign)
            self.nodes.log.add(row, PODS_MOVED)
        except Exception as e:
            raise self._incomplete(f"row {row} counts what is held there wholly or not", e) from e

    # --- suppositions ----------------------------------------------------------------------------

    def supposing(self) -> Supposition:
        """A block of tentative changes, which are undone at its end."""
        return Supposition(self, self._count, self._put, self._unplace)


def _is_bound(pod: Pod) -> bool:
    """Whether a binding has set the pod's node, as far as this version shows. The API server sets
    the condition at a binding, and ignores the status of a pod that is created; a kubelet sets it
    only with a start time.
    """
    condition = None if pod.status.start_time else pod.condition(names.POD_SCHEDULED)
    return condition is not None and condition.status == "True"


def _derive(cls: PodClass) -> None:
    """Compute a pod's derived data first, so that errors occur before anything is counted."""
    _ = cls.accounted, cls.accounted_nonzero, cls.host_ports, cls.claim_names, cls.storage


def _holds_as_much(old: PodClass, new: PodClass) -> bool:
    """Whether a pod that changed its class counts as before. A key ends with what a status says
    of a resize. Where only one of the two has that, the other is its beginning.
    """
    return (
        (old.key.startswith(new.key) or new.key.startswith(old.key))
        and old.annotations_key == new.annotations_key
        and old.accounted == new.accounted
        and old.accounted_nonzero == new.accounted_nonzero
    )
