"""A machine that lives among such objects, beside pods of people who mean well.

Poison is never of higher priority, names nobody outside of its namespaces in required
anti-affinity, and brings no taints, cordons or deletions to the nodes of the others: that would be
their right. Whatever else it is must not keep a single one of the others from its node.
"""

from collections.abc import Iterator
from random import Random
from typing import Any, Final

from asched.core.cluster.facts import (
    Answer,
    Bound,
    Done,
    Fact,
    Gone,
    ReadPending,
    Refused,
    Seen,
    Unknown,
)
from asched.core.framework.effects import (
    AskExtender,
    Bind,
    CallPlugin,
    Effect,
    ReadPod,
)
from asched.core.model.kinds import (
    KINDS,
    POD,
    POD_GROUP,
    Kind,
)
from asched.core.model.pod import Pod
from tests.builders import a_node, a_pod
from tests.playbook import Play
from tests.poison.made import Maker, read
from tests.support import plugins_along

POISON: Final = (*KINDS, POD_GROUP, POD, POD, POD)
GATES: Final = {"GenericWorkload": True, "GangScheduling": True}
ALL_GATES: Final = {
    **GATES,
    "WorkloadAwarePreemption": True,
    "TopologyAwareWorkloadScheduling": True,
}
#: Every plugin for groups, quotas, held places and shared devices, open as far as arguments allow.
ALL_PLUGINS: Final = {
    "profiles": [
        {
            "schedulerName": "default-scheduler",
            "plugins": {
                "multiPoint": {
                    "enabled": [
                        {"name": name}
                        for name in (
                            "Coscheduling",
                            "Backfill",
                            "CheckAndHold",
                            "CapacityScheduling",
                            "HamiVGPU",
                            "VolcanoVGPU",
                            "GpuShare",
                            "GpuFractions",
                            "GpuSharing",
                            "NetworkTopology",
                        )
                    ],
                    "disabled": [{"name": "PrioritySort"}, {"name": "TopologyPlacementGenerator"}],
                },
            },
            "pluginConfig": [
                {
                    "name": "Backfill",
                    "args": {"reservations": 8, "softEnds": True, "learnDurations": True},
                },
                {"name": "CapacityScheduling", "args": {"guaranteesMin": True}},
                {
                    "name": "NetworkTopology",
                    "args": {"source": "Labels", "levels": ["example.com/block"]},
                },
            ],
        }
    ]
}
CALM_NODES: Final = 6
#: So many of the others' pods run at a time, and so many bad objects are there, so that all of
#: them have room.
RUNNING_MAX: Final = 300
SHOWN_MAX: Final = 300
#: Turns without a look at the rest: more of them and it never ends.
TURNS_MAX: Final = 3_000


class Life:
    """`step` shows some poison and one pod that means well; `others` are those."""

    def __init__(self, seed: int, crowd: int = 40, *, all_plugins: bool = False) -> None:
        """`all_plugins`: with ALL_PLUGINS in place of the default ones."""
        more: dict[str, Any] = {"gates": GATES}
        if all_plugins:
            more = {"gates": ALL_GATES, "installed": plugins_along(), **ALL_PLUGINS}
        self._random = Random(seed)
        self._maker = Maker(self._random, crowd)
        self.play = Play(
            *(
                a_node(f"calm{n}").labels(calm="y").allocatable(cpu="64", memory="64Gi", pods="110")
                for n in range(CALM_NODES)
            ),
            **more,
        )
        self.shown: dict[str, tuple[Kind, Any]] = {}
        self.others: dict[str, str] = {}
        self._running: dict[str, Pod] = {}
        self.malformed = 0
        self.bound_poison = 0
        self.turns = 0

    def step(self, poison: int = 5) -> None:
        facts = list(self._poison(poison))
        name = f"other-{len(self.others)}"
        self.others[name] = ""
        pod = a_pod(name, "others").priority(1_000_000).requests(cpu="100m").selects(calm="y")
        built = pod.spec(schedulerName="default-scheduler").build()
        self._running[name] = built
        if len(self._running) > RUNNING_MAX:
            oldest = next(iter(self._running))
            facts.append(Gone(POD, self._running.pop(oldest).on(self.others[oldest])))
        self._go([*facts, Seen(POD, built)])

    def end(self) -> None:
        """All poison goes, and time passes."""
        self._go([Gone(kind, obj) for kind, obj in self.shown.values()])
        self.shown.clear()
        for _ in range(5):
            self._go([], after_s=60.0)

    @property
    def waiting(self) -> list[str]:
        return [name for name, node in self.others.items() if not node]

    def _poison(self, count: int) -> Iterator[Fact]:
        random = self._random
        for _ in range(count):
            if len(self.shown) > SHOWN_MAX or (self.shown and random.random() < 0.15):
                uid = random.choice(sorted(self.shown))
                yield Gone(*self.shown.pop(uid))
                continue
            kind = random.choice(POISON)
            document = tamed(random, kind, self._maker.document(kind))
            obj = read(kind, document)
            if obj is None:
                self.malformed += 1
                continue
            self.shown[obj.metadata.uid] = (kind, obj)
            yield Seen(kind, obj)

    def _go(self, facts: list[Fact], after_s: float = 1.0) -> None:
        self.play.turn(*facts, after_s=after_s)
        for _ in range(TURNS_MAX):
            self.turns += 1
            answers = [answer for effect in self.play.effects for answer in self._answer(effect)]
            if not answers and self.play.machine.next_deadline_s() != 0.0:
                return
            self.play.turn(*answers)
        raise AssertionError("it never comes to rest")

    def _answer(self, effect: Effect) -> Iterator[Fact]:
        random = self._random
        if not effect.answers:
            return
        if isinstance(effect, Bind):
            if effect.pod.namespace == "others":
                self.others[effect.pod.name] = effect.node
                yield Bound(effect.id)
            else:
                self.bound_poison += 1
                yield random.choice([Bound(effect.id), Refused(effect.id, 404, "gone")])
            return
        yield self._outcome(effect)

    def _outcome(self, effect: Effect) -> Answer:
        random = self._random
        match effect:
            case ReadPod():
                return ReadPending(effect.id)
            case CallPlugin() | AskExtender():
                return Unknown(effect.id, "nobody is there")
            case _:
                answers = (Refused(effect.id, 409, "Conflict"), Unknown(effect.id, "lost"))
                return random.choice((Done(effect.id), *answers))


def tamed(random: Random, kind: Kind, document: dict[str, Any]) -> dict[str, Any]:
    """Without what would be its right against others (see above); mostly for us to place."""
    if kind is not POD or not isinstance(document.get("spec"), dict):
        return document
    spec = document["spec"]
    spec["priority"] = -abs(hash(document["metadata"]["name"])) % 1000 * -1
    if random.random() < 0.8:
        spec.update(schedulerName="default-scheduler", nodeName="", schedulingGates=None)
        document["metadata"].pop("deletionTimestamp", None)
        document["status"] = {}
    anti = spec.get("affinity") or {}
    anti = anti.get("podAntiAffinity") if isinstance(anti, dict) else None
    if isinstance(anti, dict):
        anti.pop("requiredDuringSchedulingIgnoredDuringExecution", None)
    return document
