"""A year of names in a simulated cluster: production's process, and everything it knows by a name.

Each day nodes, namespaces, pods, priority, storage and device classes, claims, volumes, slices,
budgets, pod groups with held room, a configuration and a user's plugin come with names of their
own; the next day they go. Days are short, since time itself leaves nothing: two minutes each.
"""

import asyncio
import gc
from collections import Counter
from dataclasses import replace
from typing import Any, Final, Self

from asched.host.user_plugins.catalogue import Catalogue, of_class
from asched_lab.apiserver.resources import find
from asched_lab.sim.reloading import reload
from asched_lab.sim.steps import end_pods, pod_manifest, priority_class, remove
from asched_lab.sim.world import SCHEDULER, World
from tests.weigh import weigh

Json = dict[str, Any]

DAY_S: Final = 120.0
NODES: Final = 4


def config(day: int) -> Json:
    """Another one each day, with a plugin that has another name."""
    plugins = [{"name": "Coscheduling"}, {"name": f"Daily{day}"}]
    sort = {"enabled": [{"name": "Coscheduling"}], "disabled": [{"name": "*"}]}
    enabled = {"multiPoint": {"enabled": plugins}, "queueSort": sort}
    profile = {"schedulerName": SCHEDULER, "plugins": enabled}
    extra = {"schedulerName": f"team-{day}"}
    return {"profiles": [profile, {**profile, **extra}]}


def a_plugin(day: int) -> type[Any]:
    """A class of its own, as a file that was read again makes one."""

    def filter_(self: Any, pod: Any, node: Any) -> None:
        self.seen = node.name

    return type(f"Daily{day}", (), {"filter": filter_})


class Collecting(World):
    collects = True


class Year:
    """`collects`: garbage is collected as in production, and by nobody else.

    `live(days)` lets days pass; `held` tells what the process holds at the end of one."""

    def __init__(self, *, collects: bool = False) -> None:
        self._collects = collects
        world = Collecting if collects else World
        self.world = world(0, config=config(0), plugins=[a_plugin(0)], audit_period_s=60.0)
        self.day = 0
        self.names = 0
        self._gone: list[tuple[str, str, str]] = []
        for number in range(NODES):
            self._make("nodes", self._node(f"node-0-{number}"), lasts=True)
        self._nodes = [f"node-0-{number}" for number in range(NODES)]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *told: object) -> None:
        self.world.__exit__(*told)

    def live(self, days: int) -> None:
        for _ in range(days):
            self.day += 1
            self._live()

    def held(self) -> Counter[str]:
        """Entries, bytes and objects of the process, its tasks and its timers; nothing of the world
        around it, and no pod is left.
        """
        self._clean()
        self.world.run_for(60.0)
        process, world = self.world.acting, self.world
        if not self._collects:
            gc.collect()
        server = (world.server, world.server.ctx, world.server.store)
        tables = server[-1]._tables.values()
        around = (world, *server, *tables, process, process.wire, world.clock, process.loop)
        found = weigh(process.machine, process.parts, process.scheduler, but=around)
        found["tasks"] = len(asyncio.all_tasks(process.loop))
        found["timers"] = len(process.loop._scheduled)
        found["streams"] = len(process.wire.streams)
        return found

    # --- a day -----------------------------------------------------------------------------------

    def _live(self) -> None:
        world, day = self.world, self.day
        self._clean()
        team = f"team-{day}"
        self._make("namespaces", {"metadata": {"name": team, "labels": {f"of-{day}": "yes"}}})
        old = self._nodes.pop(0)
        remove(world, "nodes", old)
        self._nodes.append(f"node-{day}")
        self._make("nodes", self._node(f"node-{day}"), lasts=True)
        self._claims(team)
        self._group(team)
        for number, extra in enumerate(self._wishes(team)):
            pod = pod_manifest(f"pod-{day}-{number}", "100m")
            pod["metadata"]["namespace"] = team
            pod["metadata"]["labels"] = {"app": f"app-{day}", f"label-{day}": "x"}
            pod["spec"].update(extra)
            self._make("pods", pod)
        self._make("poddisruptionbudgets", _budget(team, f"app-{day}"))
        world.run_for(DAY_S / 2)
        self._reload()
        for stream in tuple(world.acting.wire.streams.values())[:: day % 3 + 1]:
            stream.break_()
        world.run_for(DAY_S / 2)

    def _reload(self) -> None:
        plugin = of_class(a_plugin(self.day), "the year")
        self.world.setup = replace(self.world.setup, catalogue=Catalogue([plugin]))
        outcome = reload(self.world, config(self.day))
        assert outcome == "applied", outcome
        self.names += 2

    def _node(self, name: str) -> Json:
        amounts = {"cpu": "4", "memory": "8Gi", "pods": "40", f"example.com/{name}": "2"}
        labels = {"kubernetes.io/hostname": name, f"job-{name}": "x", "zone": name[-1]}
        taint = {"key": f"seen-{name}", "value": name, "effect": "PreferNoSchedule"}
        status = {"capacity": amounts, "allocatable": amounts}
        self.names += 4
        spec = {"taints": [taint]}
        return {"metadata": {"name": name, "labels": labels}, "spec": spec, "status": status}

    def _claims(self, team: str) -> None:
        """Storage and devices, one of each, that can be had."""
        day, node = self.day, self._nodes[-1]
        name, driver = f"day-{day}", f"driver-{day}.example.com"
        expression = {"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}
        self._make("storageclasses", {"metadata": {"name": name}, "provisioner": driver})
        storage = {"storageClassName": name, "accessModes": ["ReadWriteOnce"]}
        self._make(
            "persistentvolumes",
            {
                "metadata": {"name": name},
                "spec": {
                    **storage,
                    "capacity": {"storage": "1Gi"},
                    "csi": {"driver": driver, "volumeHandle": name},
                    "nodeAffinity": {
                        "required": {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
                    },
                },
            },
        )
        asked = {**storage, "volumeName": name, "resources": {"requests": {"storage": "1Gi"}}}
        claim = {"metadata": {"name": name, "namespace": team}, "spec": asked}
        self._make("persistentvolumeclaims", claim)
        cel = {"cel": {"expression": f'device.driver == "{driver}"'}}
        self._make("deviceclasses", {"metadata": {"name": name}, "spec": {"selectors": [cel]}})
        pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
        spec = {"driver": driver, "nodeName": node, "pool": pool, "devices": [{"name": "d0"}]}
        self._make("resourceslices", {"metadata": {"name": name}, "spec": spec})
        asked = {"requests": [{"name": "r", "exactly": {"deviceClassName": name, "count": 1}}]}
        meta = {"name": f"device-{day}", "namespace": team}
        self._make("resourceclaims", {"metadata": meta, "spec": {"devices": asked}})

    def _group(self, team: str) -> None:
        """Room is held for what the group promises beyond its pods."""
        self._make(
            "podgroups.scheduling.x-k8s.io",
            {
                "apiVersion": "scheduling.x-k8s.io/v1alpha1",
                "kind": "PodGroup",
                "metadata": {"name": f"group-{self.day}", "namespace": team},
                "spec": {"minMember": 1, "minResources": {"cpu": "1"}},
            },
        )

    def _wishes(self, team: str) -> list[Json]:
        """What each pod of the day has of its own."""
        day, world = self.day, self.world
        selector = {"matchLabels": {"app": f"app-{day}"}}
        spread = {"maxSkew": 1, "labelSelector": selector, "whenUnsatisfiable": "DoNotSchedule"}
        apart = {"topologyKey": "kubernetes.io/hostname", "labelSelector": selector}
        required = "requiredDuringSchedulingIgnoredDuringExecution"
        volume = {"name": "v", "persistentVolumeClaim": {"claimName": f"day-{day}"}}
        claimed = {"name": "c", "resourceClaimName": f"device-{day}"}
        return [
            {},
            {"schedulerName": team if day > 1 else SCHEDULER},
            {"nodeSelector": {f"unknown-{day}": "x"}},
            {"priorityClassName": priority_class(world, day)},
            {"topologySpreadConstraints": [{**spread, "topologyKey": f"job-{self._nodes[-1]}"}]},
            {"affinity": {"podAntiAffinity": {required: [apart]}}},
            {"volumes": [volume]},
            {"resourceClaims": [claimed]},
            {"tolerations": [{"key": f"seen-{day}", "operator": "Exists"}]},
        ]

    # --- coming and going ------------------------------------------------------------------------

    def _make(self, plural: str, made: Json, *, lasts: bool = False) -> None:
        self.world.server.create(plural, made)
        self.names += 1
        metadata = made["metadata"]
        if not lasts:
            self._gone.append((plural, metadata["name"], metadata.get("namespace", "")))

    def _clean(self) -> None:
        """What the last day made goes, pods first."""
        world, gone = self.world, self._gone
        end_pods(world, world.pods())
        world.run_for(35.0)
        self._gone = []
        for plural, name, namespace in gone:
            if plural not in ("pods", "namespaces"):
                delete(world, plural, name, namespace)
        for value in range(self.day + 1):
            delete(world, "priorityclasses", f"priority-{value}", "")
        for plural, name, _ in gone:
            if plural == "namespaces":
                delete(world, plural, name, "")
        world.run_for(5.0)


def delete(world: World, plural: str, name: str, namespace: str) -> None:
    """Take an object away, if it is there; its controllers have done their part."""
    resource = find(plural)
    record = world.server.ctx.get(resource, namespace, name)
    if record is not None:
        world.server.store.remove(resource.storage, record.key, record.obj)


def _budget(team: str, app: str) -> Json:
    selector = {"matchLabels": {"app": app}}
    spec = {"minAvailable": 1, "selector": selector}
    return {"metadata": {"name": app, "namespace": team}, "spec": spec}
