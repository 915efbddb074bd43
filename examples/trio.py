"""Pre-filter, filter and pre-bind working together: pods that name a team get a node of that team.

PreFilter reads the pod's label once and stores it in `pod.state`; Filter compares it with the label
of each node; PreBind, a generator that yields an effect, annotates the pod with its team and node
before it is bound.

    asched demo --nodes 50 --pods 200 --plugin examples/trio.py

In the demo no pod names a team, so that all of them pass. `asched.testing` covers the rest:
`tests/examples/test_examples.py`.
"""

from collections.abc import Generator
from typing import Any

from asched.plugin import SKIP, Node, Patch, Pod, Status, failure, kinds, unresolvable
from asched.plugin import Done as Answered

TEAM = "example.com/team"


class TeamNodes:
    # for the annotation below; asched's account lacks this right, and `asched doctor` reports it
    rbac_rules = ({"apiGroups": [""], "resources": ["pods"], "verbs": ["patch"]},)

    def pre_filter(self, pod: Pod) -> Status | None:
        team = pod.labels.get(TEAM)
        if team is None:
            return SKIP  # the filter below is not called for this pod
        pod.state["team"] = team
        return None

    def filter(self, pod: Pod, node: Node) -> Status | None:
        team = pod.state["team"]
        if node.labels.get(TEAM) == team:
            return None
        return unresolvable(f"node(s) do not belong to team {team}")  # preemption cannot help

    def pre_bind(self, pod: Pod, node: Node) -> Generator[Any, Any, Status | None]:
        if "team" not in pod.state:
            return None
        note = {"metadata": {"annotations": {TEAM: f"{pod.state['team']} on {node.name}"}}}
        answer = yield Patch(kind=kinds.POD, namespace=pod.namespace, name=pod.name, body=note)
        return None if isinstance(answer, Answered) else failure(f"no note: {answer.message}")
