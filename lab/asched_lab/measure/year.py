"""What remains of a year: the process of production in a simulated cluster in which names change.

    python -m asched_lab.measure.year [--days N]

Each day nodes, namespaces, pods, priority, storage and device classes, claims, volumes, slices,
budgets, pod groups with reserved room, the configuration and a user's plugin come with names of
their own, and go the next day; watches break, and an audit compares everything. A day takes two
virtual minutes, since time itself leaves nothing. Caches and logs have small bounds here, so that
they are full at once and growth shows what has no bound. Counted with all pods gone: entries of
containers, bytes of arrays and texts, tasks, timers and streams.

Garbage is collected by the collector of production alone, in virtual time. `all` counts all
containers of the process that Python knows of, those of the simulated world among them. At the end
the containers that nothing refers to are counted, which the collector left.

Exit status: 0 if the last day has at most a twentieth more entries than the first, 1 otherwise.
"""

# ruff: noqa: T201 - a command prints

import argparse
import asyncio
import gc
import sys
from collections import Counter
from dataclasses import replace
from typing import Any, Final, Self

from asched.host.user_plugins.catalogue import Catalogue, of_class
from asched_lab.apiserver.resources import find
from asched_lab.bench.report import commit, machine_line
from asched_lab.measure.retained import entries_of, make_small, weigh
from asched_lab.sim.scenarios.beside import reload
from asched_lab.sim.steps import end_pods, pod_manifest, priority_class, remove
from asched_lab.sim.world import SCHEDULER, World

Json = dict[str, Any]

DAY_S: Final = 120.0
NODES: Final = 4
STEPS = 12
#: By then logs and objects that are made on first use exist.
FIRST_DAYS = 8
GROWTH_MAX = 0.05
COLUMNS = ("bytes", "bytes of text", "tasks", "timers", "streams")


def config(day: int) -> Json:
    """A configuration for the day, with a plugin of another name."""
    plugins = [{"name": "Coscheduling"}, {"name": f"Daily{day}"}]
    sort = {"enabled": [{"name": "Coscheduling"}], "disabled": [{"name": "*"}]}
    enabled = {"multiPoint": {"enabled": plugins}, "queueSort": sort}
    profile = {"schedulerName": SCHEDULER, "plugins": enabled}
    extra = {"schedulerName": f"team-{day}"}
    return {"profiles": [profile, {**profile, **extra}]}


def a_plugin(day: int) -> type[Any]:
    """A class of its own, as reading a changed plugin file makes one."""

    def filter_(self: Any, pod: Any, node: Any) -> None:  # noqa: ARG001 - the point's signature
        self.seen = node.name

    return type(f"Daily{day}", (), {"filter": filter_})


class Collecting(World):
    """Garbage is collected as in production."""

    collects = True


class Year:
    """`run(days)` lets days pass; `held` counts what the process keeps at the end of one. Python's
    own collector has to be off.
    """

    def __init__(self) -> None:
        self.world = Collecting(0, config=config(0), plugins=[a_plugin(0)], audit_period_s=60.0)
        self.day = 0
        self.names = 0
        self._gone: list[tuple[str, str, str]] = []
        for number in range(NODES):
            self._make("nodes", self._node(f"node-0-{number}"), lasts=True)
        self._nodes = [f"node-0-{number}" for number in range(NODES)]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self.world.__exit__(*raised)

    def run(self, days: int) -> None:
        for _ in range(days):
            self.day += 1
            self._run_day()

    def held(self) -> Counter[str]:
        """Count entries, bytes and objects of the process, its tasks and its timers, without the
        world around it, after all pods have gone.
        """
        self._clean()
        self.world.run_for(60.0)
        process, world = self.world.acting, self.world
        server = (world.server, world.server.ctx, world.server.store)
        tables = server[-1]._tables.values()
        around = (world, *server, *tables, process, process.wire, world.clock, process.loop)
        found = weigh(process.machine, process.parts, process.scheduler, but=around)
        found["tasks"] = len(asyncio.all_tasks(process.loop))
        found["timers"] = len(process.loop._scheduled)
        found["streams"] = len(process.wire.streams)
        return found

    # --- a day -----------------------------------------------------------------------------------

    def _run_day(self) -> None:
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
        for number, extra in enumerate(self._requests(team)):
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
        """Create a volume and a device, with claims that they satisfy."""
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
        asked: Json = {**storage, "volumeName": name, "resources": {"requests": {"storage": "1Gi"}}}
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
        """Create a group whose minResources exceed its pods, so that room is reserved."""
        self._make(
            "podgroups.scheduling.x-k8s.io",
            {
                "apiVersion": "scheduling.x-k8s.io/v1alpha1",
                "kind": "PodGroup",
                "metadata": {"name": f"group-{self.day}", "namespace": team},
                "spec": {"minMember": 1, "minResources": {"cpu": "1"}},
            },
        )

    def _requests(self, team: str) -> list[Json]:
        """The spec of each pod of the day, beside its container."""
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

    # --- objects ------------------------------------------------------------------------

    def _make(self, plural: str, made: Json, *, lasts: bool = False) -> None:
        self.world.server.create(plural, made)
        self.names += 1
        metadata = made["metadata"]
        if not lasts:
            self._gone.append((plural, metadata["name"], metadata.get("namespace", "")))

    def _clean(self) -> None:
        """Remove what the last day created, pods first."""
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
    """Remove an object if it exists, as after its controllers have removed their finalizers."""
    resource = find(plural)
    record = world.server.ctx.get(resource, namespace, name)
    if record is not None:
        world.server.store.remove(resource.storage, record.key, record.obj)


def _budget(team: str, app: str) -> Json:
    selector = {"matchLabels": {"app": app}}
    spec = {"minAvailable": 1, "selector": selector}
    return {"metadata": {"name": app, "namespace": team}, "spec": spec}


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m asched_lab.measure.year", description=__doc__)
    parser.add_argument("--days", type=int, default=365, metavar="N")
    wanted = parser.parse_args(argv).days
    print(machine_line(), f"commit {commit() or 'unknown'}", sep="; ", flush=True)
    titles = " ".join(f"{one:>13}" for one in COLUMNS)
    print(f"{'day':>5} {'names':>7} {'entries':>8} {titles} {'all':>9}")
    make_small()
    gc.disable()
    with Year() as year:
        first = last = 0
        for step in range(STEPS + 1):
            year.run(FIRST_DAYS + (wanted - FIRST_DAYS) * step // STEPS - year.day)
            held = year.held()
            last = entries_of(held)
            first = first or last
            shown = " ".join(f"{held[one]:>13}" for one in COLUMNS)
            known = gc.get_freeze_count() + len(gc.get_objects())
            print(f"{year.day:>5} {year.names:>7} {last:>8} {shown} {known:>9}", flush=True)
        found = year.world.acting.auditor.report.found
        print(f"{year.world.ledger.bound_count} pods bound, {found} differences found by audits")
        print(f"{left_by_collector()} containers are garbage that was not collected")
    return 0 if last <= first * (1 + GROWTH_MAX) else 1


def left_by_collector() -> int:
    """Count containers that nothing refers to; those that a start leaves are frozen among them."""
    gc.unfreeze()
    return gc.collect()


if __name__ == "__main__":
    sys.exit(main())
