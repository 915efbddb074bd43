"""Plays an instance: a machine is shown it, and what it does is judged on raw objects."""

import time
from dataclasses import dataclass, field
from typing import Any

from asched.core.cluster.facts import Seen
from asched.core.framework.effects import Bind, Patch
from asched.core.model.decode import decode
from asched.core.model.kinds import NAMESPACE, NODE, POD, POD_GROUP
from asched.core.model.node import Node
from asched.core.model.pod import Pod
from asched.core.model.workload import Namespace, PodGroup
from tests.conformance.twins.gang import can_come_to, claims_broken
from tests.gangs.controllers import Api, complete, seen
from tests.gangs.instances import Instance
from tests.playbook import Play

PROFILE: dict[str, Any] = {
    "schedulerName": "default-scheduler",
    "plugins": {"multiPoint": {"enabled": [{"name": "GangScheduling"}]}},
}
#: Turns an attempt may take: more than its budget has slices.
TURNS_MAX = 2_000


@dataclass
class Played:
    """`result`: "placed", "infeasible" or "unknown"; `broken`: why what was done is wrong.
    `seconds` of processor time: neighbours on a busy computer do not count.
    """

    name: str
    result: str
    said: str
    seconds: float
    expected: str
    places: dict[str, str] = field(default_factory=dict)
    broken: str = ""

    @property
    def is_wrong(self) -> bool:
        if self.broken:
            return True
        wrong = {"feasible": "infeasible", "infeasible": "placed"}
        return self.result == wrong.get(self.expected)


def play(instance: Instance, *, search: bool = True, judge: bool = True) -> Played:
    """One attempt at the gang. `search`: not only one pod after the other."""
    complete(instance)
    table, api = Play(profiles=[PROFILE]), Api(instance)
    if not search:
        table.machine.context.gang_search_steps = 0
    table.turn(*(Seen(NAMESPACE, decode(Namespace, one)) for one in instance.namespaces))
    table.turn(*(seen(one) for one in instance.objects))
    table.turn(*(Seen(NODE, decode(Node, one)) for one in instance.nodes))
    table.turn(*(Seen(POD, decode(Pod, one)) for one in instance.others))
    gang = [decode(Pod, one) for one in instance.gang]
    table.turn(*(Seen(POD, pod) for pod in gang))
    started = time.process_time()
    table.turn(Seen(POD_GROUP, decode(PodGroup, instance.group)))
    effects = list(table.effects)
    answers = api.answers(effects)
    for _ in range(TURNS_MAX):
        if table.machine.next_deadline_s() != 0.0 and not answers:
            break
        more = table.turn(*answers)
        effects += more
        answers = api.answers(more)
    seconds = time.process_time() - started
    places = {e.pod.name: e.node for e in effects if isinstance(e, Bind)}
    said = [
        e.body["status"]["conditions"][0].get("message", "")
        for e in effects
        if isinstance(e, Patch) and e.kind is POD_GROUP
    ]
    text = said[-1] if said else ""
    result = "placed" if places else "infeasible" if "there is no place" in text else "unknown"
    played = Played(instance.name, result, text, seconds, instance.expected, places)
    if places and judge:
        played.broken = _broken(instance, places, list(api.objects.values()))
    return played


def _broken(instance: Instance, places: dict[str, str], objects: list[dict[str, Any]]) -> str:
    if len(places) < instance.needed:
        return f"{len(places)} of {instance.needed} pods were bound"
    put = [(pod, places[n]) for pod in instance.gang if (n := pod["metadata"]["name"]) in places]
    order = list(places)
    put.sort(key=lambda one: order.index(one[0]["metadata"]["name"]))
    stuck = can_come_to(instance.nodes, instance.others, put, instance.namespaces, objects)
    if stuck:
        return f"against the rules: {', '.join(stuck)}"
    return "; ".join(claims_broken(instance.nodes, put, objects))
