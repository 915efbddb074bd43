"""A recorded cluster, made of the same parts as a running scheduler."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from asched.core.cluster.cluster import Cluster
from asched.core.cluster.facts import Gone, Seen
from asched.core.cluster.nominated import Nominator
from asched.core.config.defaults import configuration
from asched.core.config.gates import DEFAULT_GATES
from asched.core.config.merge import ResolvedProfile, resolve
from asched.core.config.v1 import SchedulerConfiguration
from asched.core.framework import profile as framework
from asched.core.framework.runner import Runner
from asched.core.model.decode import decode
from asched.core.model.kinds import BY_PLURAL, POD, Kind
from asched.core.model.meta import Record
from asched.core.model.pod import Pod
from asched.core.plugins import IN_TREE, IN_TREE_POINTS, in_tree

#: Kinds that recordings hold and no scheduler watches.
IGNORED = ("priorityclasses", "runtimeclasses")


@dataclass
class World:
    """A cluster with one runner per profile. `missing` names enabled plugins that do not exist
    yet.
    """

    cluster: Cluster
    nominator: Nominator
    runners: dict[str, Runner]
    missing: frozenset[str]

    def see(self, kind: Kind, mapping: Mapping[str, Any]) -> Record:
        obj = decode(kind.record, mapping)
        self.cluster.apply(Seen(kind, obj))
        if isinstance(obj, Pod) and not obj.spec.node_name:
            self.nominator.add(obj)
        return obj

    def lose(self, kind: Kind, obj: Record) -> None:
        self.cluster.apply(Gone(kind, obj))

    def runner_for(self, pod: Pod) -> Runner:
        if pod.spec.scheduler_name in self.runners:
            return self.runners[pod.spec.scheduler_name]
        return next(iter(self.runners.values()))


def build(
    config: Mapping[str, Any] | None,
    objects: Mapping[str, Any],
    gates: Mapping[str, bool] | None = None,
    rules: Mapping[str, bool] | None = None,
) -> World:
    """Assemble the profiles of a case and show them its cluster. `gates`, `rules`: those that
    differ from 1.36.
    """
    cluster = Cluster()
    nominator = Nominator(cluster.pods_seen.get)
    effective = configuration(config or {}, {**DEFAULT_GATES, **(rules or {}), **(gates or {})})
    factories = in_tree(effective.gates)
    missing: set[str] = set()
    runners = {}
    for index, profile in enumerate(effective.profiles):
        resolved, absent = _existing(resolve(profile, IN_TREE_POINTS, index))
        missing |= absent
        percentage = _percentage(effective)
        built = framework.build(resolved, factories, cluster, percentage)
        runners[built.scheduler_name] = Runner(built, cluster, nominator)
    world = World(cluster, nominator, runners, frozenset(missing))
    for kind, mapping in ordered(objects):
        world.see(kind, mapping)
    return world


def ordered(objects: Mapping[str, Any]) -> Iterator[tuple[Kind, Mapping[str, Any]]]:
    """Every object of a recording; pods last, as a starting scheduler would see them."""
    for plural, mappings in sorted(objects.items(), key=lambda item: item[0] == POD.plural):
        if plural not in IGNORED:
            for mapping in mappings:
                yield BY_PLURAL[plural], mapping


def _existing(resolved: ResolvedProfile) -> tuple[ResolvedProfile, set[str]]:
    absent = {name for name in resolved.plugin_names if name not in IN_TREE}
    points = {
        point: tuple(entry for entry in entries if entry.name not in absent)
        for point, entries in resolved.points.items()
    }
    return ResolvedProfile(resolved.profile, points), absent


def _percentage(effective: SchedulerConfiguration) -> int:
    """The corpus looks at every node, whatever a profile says."""
    del effective
    return 100
