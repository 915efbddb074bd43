"""Checks every binding of a simulation against the API objects and what was known.

It shares no code with the scheduler's rules. Bindings of another scheduler count from the moment
the machine had seen them; its own count at once, also those of processes that are dead by then. A
broken rule is recorded, not raised, so that the run goes on and the end reports all of them.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from asched.core.cluster.facts import Answer
from asched.core.framework.effects import Bind
from asched_lab.sim.checker import (
    ANTI_AFFINITY,
    Amounts,
    amount,
    apart,
    is_through,
    requests_of,
    terms_of,
)

Json = dict[str, Any]

BROKEN_MAX: Final = 20


@dataclass(slots=True)
class Sent:
    """An open binding, the node as its decision knew it, and pods of other schedulers there."""

    bind: Bind
    node: Json | None
    known_others: frozenset[str]


class Ledger:
    """`broken` has one line per broken rule."""

    def __init__(self) -> None:
        self.broken: list[str] = []
        self.bound_count = 0
        #: uid -> node, of pods whose binding by this scheduler arrived in time.
        self.ours: dict[str, str] = {}
        self._sent: dict[str, Sent] = {}  # uid -> the last binding sent
        self._last: dict[str, Sent] = {}  # node -> the last binding sent there
        #: Resources that are not counted on nodes.
        self.elsewhere: set[str] = set()
        #: uid -> how often the server accepted a binding of the pod, from any client.
        self.accepted: Counter[str] = Counter()
        self._open: dict[tuple[str, int], str] = {}  # process and effect id -> uid

    def complain(self, text: str) -> None:
        if len(self.broken) < BROKEN_MAX:
            self.broken.append(text)

    def sends(
        self, bind: Bind, *, by: str = "", node: Json | None, placed: Mapping[str, str]
    ) -> None:
        """The machine of a process sends a binding. `node`: as it knows it, None if it knows none;
        `placed`: the pods it has seen on this node, and this pod if it was seen on one, uid to
        node.
        """
        if node is None:
            self.complain(f"pod {bind.pod.key} is to be bound to the unknown node {bind.node}")
        # A process that lost its lease may still wait for an answer to its own binding.
        if any(uid == bind.pod.uid and key[0] == by for key, uid in self._open.items()):
            self.complain(f"pod {bind.pod.key}: a second binding before the first one is settled")
        if bind.pod.uid in placed:
            self.complain(f"pod {bind.pod.key} is to be bound although it was seen on a node")
        others = frozenset(
            uid for uid, node in placed.items() if node == bind.node and uid not in self.ours
        )
        self._sent[bind.pod.uid] = self._last[bind.node] = Sent(bind, node, others)
        self._open[by, bind.id] = bind.pod.uid

    def hears(self, answer: Answer, by: str = "") -> None:
        self._open.pop((by, answer.effect_id), None)

    def open_places(self, process: str) -> dict[str, str]:
        """By uid the nodes of the bindings of a process that are not answered yet."""
        uids = [uid for (sender, _), uid in self._open.items() if sender == process]
        return {uid: self._sent[uid].bind.node for uid in uids}

    def process_died(self) -> None:
        """A new process numbers its effects anew; none of the old one is open any more."""
        self._open.clear()

    def one_died(self, process: str) -> None:
        """As `process_died`, while others go on."""
        for key in [key for key in self._open if key[0] == process]:
            del self._open[key]

    def bound(self, bind: Bind, pods: list[Json], nodes: list[Json], *, is_lie: bool) -> None:
        """The server accepted a binding, maybe long after it was sent; `pods` and `nodes` are its
        current objects. `is_lie`: an extender with a bindVerb denies it, or was asked for another
        node: then it counts as another scheduler's.
        """
        self.bound_count += 1
        self.accepted[bind.pod.uid] += 1
        if self.accepted[bind.pod.uid] > 1:
            self.complain(f"pod {bind.pod.key} was bound twice")
        if is_lie:
            return
        self.ours[bind.pod.uid] = bind.node
        known = self._sent[bind.pod.uid].known_others
        mine = next((pod for pod in pods if pod["metadata"]["uid"] == bind.pod.uid), None)
        is_apart = mine is not None and terms_of(mine, ANTI_AFFINITY)
        counted = [
            pod
            for pod in pods
            if (node := pod["spec"].get("nodeName"))
            and (node == bind.node or is_apart or terms_of(pod, ANTI_AFFINITY))
            and (pod["metadata"]["uid"] in self.ours or pod["metadata"]["uid"] in known)
        ]
        by_name = {node["metadata"]["name"]: node for node in nodes}
        self._check_room(bind, mine, counted)
        for other in counted if bind.node in by_name else ():
            if other is not mine and not is_through(other) and apart(mine, other, by_name):
                name = other["metadata"]["name"]
                self.complain(f"pod {bind.pod.key} on {bind.node} must not be near pod {name}")

    def _check_room(self, bind: Bind, mine: Json | None, counted: list[Json]) -> None:
        """Check the node as it was known to this decision, or to a later one about the node.
        Resources that the pod does not request are not checked.
        """
        own = requests_of(mine) if mine is not None else {}
        known = (self._sent[bind.pod.uid].node, self._last[bind.node].node)
        offers = [node["status"]["allocatable"] for node in known if node is not None]
        used: Amounts = defaultdict(int)
        for pod in counted:
            if pod["spec"]["nodeName"] == bind.node and not is_through(pod):
                for name, requested in requests_of(pod).items():
                    used[name] += requested
        for name, requested in used.items():
            if name in self.elsewhere or not own.get(name):
                continue
            has = max((amount(str(offer.get(name, "0"))) for offer in offers), default=requested)
            if requested > has:
                text = f"{name}: {float(requested)} of {float(has)}"
                self.complain(f"pod {bind.pod.key} overcommits node {bind.node}, {text}")
