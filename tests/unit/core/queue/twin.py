"""The twin of the queue: the rules over one plain list, without heaps, groups or classes."""

from collections.abc import Callable
from dataclasses import dataclass, field
from math import floor

from asched.core.cluster.changes import UNSCHEDULABLE_POD, Change, Trigger, pod_actions
from asched.core.framework.registrations import Hint, Registration
from asched.core.model.pod import Pod

#: What the twin returns from a walk: place -> names, as `waiting.Scene.names` tells them.
Names = dict[str, list[str]]


@dataclass(eq=False)
class Waiting:
    pod: Pod
    timestamp_s: float
    place: str = ""
    unschedulable: int = 0
    errors: int = 0
    until_s: float = -1.0
    plugins: set[str] = field(default_factory=set)
    pending: set[str] = field(default_factory=set)
    gate: str = ""


@dataclass
class Twin:
    registrations: dict[str, list[Registration]]
    gates: list[str]
    may_enter: Callable[[Pod, str], bool]
    initial_s: float
    max_s: float
    rest_s: float
    waiting: list[Waiting] = field(default_factory=list)
    log: list[Waiting | Change] = field(default_factory=list)

    # --- what happens -----------------------------------------------------------------------------

    def add(self, pod: Pod, now_s: float) -> None:
        self.waiting = [w for w in self.waiting if w.pod.key != pod.key or w.place == "flight"]
        self.enter(Waiting(pod, now_s), now_s)

    def update(self, old: Pod, new: Pod, now_s: float) -> None:
        changes = [
            Change(Trigger(UNSCHEDULABLE_POD, action), old, new)
            for action in pod_actions(old, new, scaled_down=False)
        ]
        if self.find(new, "flight"):
            self.log += changes
            return
        found = self.find(new)
        if found is None:
            self.enter(Waiting(new, now_s), now_s)
            return
        found.pod = new
        if found.place == "rest":
            for change in changes:
                self.send(found, self.judge(found, change), now_s)
                if found.place != "rest":
                    break

    def delete(self, pod: Pod) -> None:
        self.waiting = [w for w in self.waiting if w.pod.key != pod.key or w.place == "flight"]

    def move(self, change: Change, now_s: float) -> None:
        if not any(self.asked(plugin, change) for plugin in self.registrations):
            return
        for one in self.at("rest"):
            limit = change.priority_at_most
            heard = limit is None or one.pod.priority <= limit
            if heard and (not one.gate or self.asked(one.gate, change)):
                self.send(one, self.judge(one, change), now_s)
        self.keep(change)

    def pop(self) -> Waiting | None:
        heads = sorted(self.at("active"), key=self.queue_sort) or sorted(
            self.at("backoff"), key=lambda w: (w.until_s, self.queue_sort(w))
        )
        if not heads:
            return None
        head = heads[0]
        head.place, head.until_s = "flight", -1.0
        self.log.append(head)
        return head

    def fail(
        self, one: Waiting, pod: Pod, plugins: set[str], pending: set[str], now_s: float
    ) -> None:
        missed = [entry for entry in self.log[self.log.index(one) :] if isinstance(entry, Change)]
        self.done(one)
        if self.find(pod):
            self.waiting.remove(one)
            return
        one.pod, one.plugins, one.pending, one.timestamp_s = pod, plugins, pending, now_s
        if plugins or pending:
            one.unschedulable, one.errors = one.unschedulable + 1, 0
        else:
            one.errors += 1
        failures = one.errors or one.unschedulable
        one.until_s = floor(now_s + min(self.initial_s * 2 ** (failures - 1), self.max_s))
        worths = [self.judge(one, change) for change in missed]
        self.send(one, max(worths, default=0) if plugins or pending else 1, now_s)

    def activate(self, pod: Pod) -> None:
        found = self.find(pod)
        if found is None:
            return
        if found.place in ("backoff", "error_backoff") or (
            found.place == "rest" and self.passes(found)
        ):
            found.place = "active"

    def flush_backoff(self, now_s: float) -> None:
        for one in self.at("backoff") + self.at("error_backoff"):
            if one.until_s < floor(now_s):
                one.place = "active"

    def flush_rest(self, now_s: float) -> None:
        for one in self.at("rest"):
            if now_s - one.timestamp_s > self.rest_s and not one.gate:
                self.send(one, 1, now_s)

    # --- the rules --------------------------------------------------------------------------------

    def enter(self, one: Waiting, now_s: float) -> None:
        self.waiting.append(one)
        self.send(one, 2, now_s)

    def send(self, one: Waiting, worth: int, now_s: float) -> None:
        """0 rest, 1 after backoff, 2 at once."""
        if worth == 0 or not self.passes(one):
            one.place = "rest"
        elif worth == 1 and one.until_s >= floor(now_s):
            one.place = "backoff" if one.plugins or one.pending else "error_backoff"
        else:
            one.place = "active"

    def passes(self, one: Waiting) -> bool:
        order = [one.gate, *self.gates] if one.gate else self.gates
        for gate in order:
            if not self.may_enter(one.pod, gate):
                one.gate = gate
                one.plugins = one.plugins | {gate}
                return False
        one.gate = ""
        return True

    def judge(self, one: Waiting, change: Change) -> int:
        willing = {
            plugin
            for plugin in one.plugins | one.pending
            for hint in self.asked(plugin, change)
            if hint is None or hint(one.pod, change.old, change.new) is Hint.QUEUE
        }
        return 2 if willing & one.pending else 1 if willing else 0

    def asked(self, plugin: str, change: Change) -> list:  # type: ignore[type-arg]
        registrations = self.registrations.get(plugin, [])
        return [r.hint for r in registrations if r.trigger.matches(change.trigger)]

    def keep(self, change: Change) -> None:
        if self.at("flight"):
            self.log.append(change)

    def done(self, one: Waiting) -> None:
        self.log.remove(one)
        one.place = ""

    def queue_sort(self, one: Waiting) -> tuple[int, float]:
        return -one.pod.priority, one.timestamp_s

    def at(self, place: str) -> list[Waiting]:
        return [one for one in self.waiting if one.place == place]

    def find(self, pod: Pod, place: str = "") -> Waiting | None:
        """The pod of this key at a place, by default anywhere in the queue but not in flight."""
        for one in self.waiting:
            here = one.place == place if place else one.place not in ("", "flight")
            if one.pod.key == pod.key and here:
                return one
        return None

    def names(self) -> Names:
        """Who stands where, unschedulable pods by name, the others as they would be taken."""
        orders = {
            "active": sorted(self.at("active"), key=self.queue_sort),
            "backoff": sorted(self.at("backoff"), key=lambda w: (w.until_s, self.queue_sort(w))),
            "error_backoff": sorted(self.at("error_backoff"), key=lambda w: w.until_s),
            "unschedulable": [w for w in self.by_name() if not w.gate],
            "gated": [w for w in self.by_name() if w.gate],
        }
        told = {place: [w.pod.metadata.name for w in order] for place, order in orders.items()}
        return {place: names for place, names in told.items() if names}

    def by_name(self) -> list[Waiting]:
        return sorted(self.at("rest"), key=lambda w: w.pod.key)
