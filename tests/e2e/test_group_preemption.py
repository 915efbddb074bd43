"""Room for pod groups: on a real API server asched and kube-scheduler play the same stories, and
which pods go and come and every message are the same; on the embedded server asched plays them.
"""

import asyncio
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest

from tests.e2e.control_plane import SERVERS, Plane, a_plane, refusal
from tests.e2e.group_plane import GROUP_VERSION, condition_of, theirs
from tests.e2e.inside import a_node
from tests.e2e.outside import a_process

Json = dict[str, Any]

GATES: Final = (
    "GenericWorkload=true,GangScheduling=true,WorkloadAwarePreemption=true,"
    "TopologyAwareWorkloadScheduling=true"
)
#: Priority class to value; pods of `never` preempt nobody.
CLASSES: Final = {"p10": 10, "p50": 50, "p100": 100, "p500": 500, "never": 100}
BUDGETS: Final = "/apis/policy/v1/namespaces/{namespace}/poddisruptionbudgets"
#: No controller counts healthy pods here: it allows nobody to go.
BUDGET: Final = {
    "metadata": {"name": "foo", "namespace": "default"},
    "spec": {"minAvailable": 2, "selector": {"matchLabels": {"app": "foo"}}},
}
#: How long stories in which the group waits run on (s): beside kube-scheduler a few backoffs.
WAITING_S: Final = {"embedded": 0.5, "real": 5.0}
#: How long watches may take to show what was created (s).
SHOWN_S: Final = {"embedded": 0.2, "real": 1.0}


@dataclass(frozen=True)
class Story:
    """`nodes` are cpus of n1, n2, ...; `there` and `wants` are lists of pods as
    "name cpu class [node] [group] [app]"; `groups` are "name minCount class mode".
    `bound`: how many pods of the group come in, 0 for none. `has_budget`: none with app=foo may go.
    """

    name: str
    nodes: tuple[int, ...]
    there: str
    wants: str
    bound: int
    groups: str = "crew 3 p100 Pod"
    has_budget: bool = False
    grace_s: int = 0


THREE = "a 1 p100 - crew, b 1 p100 - crew, c 1 p100 - crew"
LOWS = "low-1 1 p10 n1, low-2 1 p10 n1, low-3 1 p10 n1"

STORIES: Final = [
    Story("all of a node", (3,), LOWS, THREE, 3),
    Story("of two nodes what it takes", (2, 2), "low-1 2 p10 n1, low-2 1 p10 n2", THREE, 3),
    Story(
        "whom a budget protects stays",
        (3,),
        "foo-1 1 p10 n1 - foo, foo-2 1 p10 n1 - foo, low-3 1 p10 n1",
        "a 500m p100 - crew, b 500m p100 - crew",
        2,
        groups="crew 2 p100 Pod",
        has_budget=True,
    ),
    Story(
        "the least important",
        (3,),
        "mid 1 p50 n1, low-1 1 p10 n1, low-2 1 p10 n1",
        "a 1 p100 - crew, b 1 p100 - crew",
        2,
        groups="crew 2 p100 Pod",
    ),
    Story(
        "a group that goes whole",
        (3,),
        "old-1 1 p500 n1 old, old-2 1 p500 n1 old, old-3 1 p500 n1 old",
        "a 1 p10 - crew",
        1,
        groups="crew 1 p100 Pod, old 3 p10 PodGroup",
    ),
    Story(
        "a pod before a whole group",
        (3,),
        "old-1 1 p10 n1 old, old-2 1 p10 n1 old, low-1 1 p10 n1",
        "a 1 p100 - crew",
        1,
        groups="crew 1 p100 Pod, old 2 p10 PodGroup",
    ),
    Story("while a victim leaves", (3,), "low-1 1 p10 n1", THREE, 0, grace_s=30),
    Story(
        "not even without all of them", (3,), LOWS.replace("low-3 1 p10", "big 1 p500"), THREE, 0
    ),
    Story("nobody is less important", (2,), "", THREE, 0),
    Story("the priority of the group counts", (3,), LOWS, THREE, 0, groups="crew 3 - Pod"),
    Story("pods that never preempt", (3,), LOWS, THREE.replace("p100", "never"), 0),
    Story(
        "a pod by itself heeds no disruption mode",
        (2,),
        "old-1 1 p50 n1 old, old-2 1 p10 n1 old",
        "alone 1 p100",
        1,
        groups="old 2 p10 PodGroup",
    ),
]


class Telling:
    """One story, played by the scheduler of a name."""

    def __init__(self, kind: str, plane: Plane, scheduler: str, story: Story) -> None:
        self._kind = kind
        self._plane = plane
        self._scheduler = scheduler
        self._story = story
        # Nobody takes the finalizer off a PodGroup here: each story has its own.
        self._mark = f"{scheduler}-{STORIES.index(story)}-"

    async def tell(self) -> Json:
        plane, story = self._plane, self._story
        nodes = [a_node(f"n{at}", cpu=str(cpus)) for at, cpus in enumerate(story.nodes, 1)]
        await plane.create("/api/v1/nodes", nodes)
        path = f"/apis/{GROUP_VERSION}/namespaces/{{namespace}}/podgroups"
        await plane.create(path, [self._group(text) for text in story.groups.split(", ")])
        for text in filter(None, story.there.split(", ")):
            await plane.create_pods([self._pod(text)])
        if story.has_budget:
            await plane.create(BUDGETS, [BUDGET])
        await asyncio.sleep(SHOWN_S[self._kind])
        wanted = [self._pod(text) for text in story.wants.split(", ")]
        await plane.create_pods(wanted)
        names = {pod["metadata"]["name"] for pod in wanted}
        if story.bound:
            await plane.until(
                lambda pods: sum(_is_in(pod) for pod in pods if _name(pod) in names) == story.bound
            )
        else:
            await plane.until(lambda pods: all(refusal(p) for p in pods if _name(p) in names))
            await asyncio.sleep(WAITING_S[self._kind])
        told = await self._told(names)
        await self._clear()
        return told

    def _group(self, text: str) -> Json:
        name, count, priority, mode = text.split()
        spec: Json = {
            "schedulingPolicy": {"gang": {"minCount": int(count)}},
            "disruptionMode": mode,
        }
        if priority != "-":
            spec["priorityClassName"] = priority
        return {
            "apiVersion": GROUP_VERSION,
            "kind": "PodGroup",
            "metadata": {"name": self._mark + name, "namespace": "default"},
            "spec": spec,
        }

    def _pod(self, text: str) -> Json:
        name, cpu, priority, node, group, app = (*text.split(), *"---")[:6]
        spec: Json = {
            "schedulerName": self._scheduler,
            "priorityClassName": priority,
            "terminationGracePeriodSeconds": self._story.grace_s,
            "containers": [
                {"name": "main", "image": "app", "resources": {"requests": {"cpu": cpu}}}
            ],
        }
        if node != "-":
            spec["nodeName"] = node
        if group != "-":
            spec["schedulingGroup"] = {"podGroupName": self._mark + group}
        metadata: Json = {"name": name, "namespace": "default"}
        if app != "-":
            metadata["labels"] = {"app": app}
        return {"metadata": metadata, "spec": spec}

    async def _told(self, names: set[str]) -> Json:
        plane = self._plane
        pods = await plane.every("/api/v1/pods")
        groups = await plane.every(f"/apis/{GROUP_VERSION}/podgroups")
        events = await plane.every("/apis/events.k8s.io/v1/events")
        uids = {obj["metadata"]["uid"]: _name(obj) for obj in (*pods, *groups)}

        def plain(note: str) -> str:
            for uid, name in uids.items():
                note = note.replace(uid, name)
            return note.replace(self._mark, "").replace(self._scheduler, "scheduler")

        preempted = [event for event in events if event["reason"] == "Preempted"]
        return {
            "left": sorted(_name(pod) for pod in pods if _name(pod) not in names),
            "nodes": sorted(p["spec"].get("nodeName", "") for p in pods if _name(p) in names),
            "said": sorted(refusal(pod) for pod in pods if refusal(pod)),
            "groups": {
                _name(group).removeprefix(self._mark): condition_of(group)
                for group in groups
                if _name(group).startswith(self._mark)
            },
            "preempted": sorted((e["regarding"]["name"], plain(e["note"])) for e in preempted),
            "related": {(e.get("related") or {}).get("kind") for e in preempted},
            "disrupted": sorted(plain(note) for pod in pods for note in _disruptions(pod)),
        }

    async def _clear(self) -> None:
        ask = self._plane.client.ask
        await self._plane.clear()
        await ask("DELETE", "/api/v1/namespaces/default/events", {})
        await ask("DELETE", BUDGETS.format(namespace="default"), {})


def _name(obj: Json) -> str:
    name: str = obj["metadata"]["name"]
    return name


def _is_in(pod: Json) -> bool:
    return bool(pod["spec"].get("nodeName"))


def _disruptions(pod: Json) -> list[str]:
    conditions = pod["status"].get("conditions") or ()
    return [str(c.get("message")) for c in conditions if c["type"] == "DisruptionTarget"]


@pytest.mark.parametrize("kind", SERVERS)
async def test_both_schedulers_make_the_same_room(kind: str, tmp_path: Path) -> None:
    async with a_plane(kind, gates=GATES, versions=GROUP_VERSION) as plane:
        classes = [{"metadata": {"name": name}, "value": value} for name, value in CLASSES.items()]
        classes[-1]["preemptionPolicy"] = "Never"
        await plane.create("/apis/scheduling.k8s.io/v1/priorityclasses", classes)
        flags = (
            f"--kubeconfig={plane.kubeconfig}",
            "--leader-elect=false",
            "--secure-port=0",
            "--scheduler-name=ours",
            f"--feature-gates={GATES}",
        )
        ours = {}
        async with a_process(tmp_path, *flags) as process:
            for story in STORIES:
                ours[story.name] = await Telling(kind, plane, "ours", story).tell()
            assert "Traceback" not in process.words, process.words[-3000:]
        if kind == "real":
            async with theirs(tmp_path, plane):
                for story in STORIES:
                    told = await Telling(kind, plane, "theirs", story).tell()
                    assert ours[story.name] == told, story
    assert ours["a group that goes whole"]["left"] == []
    assert ours["whom a budget protects stays"]["left"] == ["foo-1", "foo-2"]
