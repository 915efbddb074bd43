"""The what-if engine: a snapshot, a scenario and a scheduler in; places and reasons out.

The Python interface is `asched_lab.whatif.api`.

Without a configuration file every schedulerName of waiting pods and manifests is served by the
default profile; with a file, pods that name a profile of it. User plugins take part as in `asched
run`. Extenders are not called for hypothetical pods: a configuration with extenders is refused
unless they are to be left out.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from asched import names
from asched.core.cluster.cluster import Cluster
from asched.core.cluster.facts import Listed
from asched.core.config.gates import DEFAULT_GATES
from asched.core.config.v1 import API_VERSION, KIND, SchedulerConfiguration
from asched.core.model.decode import decode
from asched.core.model.kinds import NODE, POD
from asched.host.configuration.file import load_config
from asched.host.memory import collected_seldom
from asched.host.user_plugins.catalogue import Catalogue
from asched_lab.apiserver.resources import PODS
from asched_lab.whatif.changes import Scenario, apply
from asched_lab.whatif.fullness import amounts
from asched_lab.whatif.objects import Json
from asched_lab.whatif.result import Result, result_of
from asched_lab.whatif.snapshot import Snapshot
from asched_lab.whatif.store import Store
from asched_lab.whatif.world import Scheduler, World


class ExtendersError(ValueError):
    """A configuration with extenders, in one line."""


def scheduler_of(
    snapshot: Snapshot,
    manifests: Iterable[Json],
    config: str = "",
    *,
    plugins: Catalogue | None = None,
    gates: Mapping[str, bool] = DEFAULT_GATES,
    without_extenders: bool = False,
    seed: int = 0,
) -> Scheduler:
    """Build the scheduler. Raises ConfigError, UnreadableFileError, ExtendersError."""
    catalogue = plugins or Catalogue()
    if config:
        made = load_config(config, gates=gates, known=catalogue.known).configuration
    else:
        made = _for_all(_asked_for(snapshot, manifests), catalogue, gates)
    if made.extenders and not without_extenders:
        raise ExtendersError(
            f"{config} has extenders, which are not called for hypothetical pods;"
            " --without-extenders decides without them"
        )
    return Scheduler(replace(made, extenders=()), catalogue, seed)


def _for_all(
    served: Sequence[str], plugins: Catalogue, gates: Mapping[str, bool]
) -> SchedulerConfiguration:
    more: Json = {}
    if plugins.given:
        enabled = [{"name": name} for name in plugins.given]
        more = {"plugins": {"multiPoint": {"enabled": enabled}}}
    profiles = [{"schedulerName": name, **more} for name in served]
    document = {"apiVersion": API_VERSION, "kind": KIND, "profiles": profiles}
    text = json.dumps(document)
    return load_config(text=text, gates=gates, known=plugins.known).configuration


def _asked_for(snapshot: Snapshot, manifests: Iterable[Json]) -> list[str]:
    scheduler_names = dict.fromkeys((names.OUR_SCHEDULER_NAME, names.DEFAULT_SCHEDULER_NAME))
    pods = snapshot.objects.get(("v1", "Pod"), [])
    for spec in (*(pod.get("spec") or {} for pod in pods), *_pod_specs(manifests)):
        scheduler_names[str(spec.get("schedulerName") or names.DEFAULT_SCHEDULER_NAME)] = None
    return list(scheduler_names)


def _pod_specs(manifests: Iterable[Json]) -> Iterator[Mapping[str, Any]]:
    for manifest in manifests:
        spec = manifest.get("spec") or {}
        yield (spec.get("template") or {}).get("spec") or spec


def suppose(snapshot: Snapshot, scenario: Scenario, scheduler: Scheduler) -> Result:
    """Simulate. The snapshot is not changed. Raises ScenarioError, BUILD_ERRORS."""
    with collected_seldom():
        return _suppose(snapshot, scenario, scheduler)


def _suppose(snapshot: Snapshot, scenario: Scenario, scheduler: Scheduler) -> Result:
    store = Store(snapshot, seed=scheduler.seed)
    before = {
        f"{pod['metadata']['namespace']}/{pod['metadata']['name']}": pod["spec"].get("nodeName", "")
        for pod in store.listed(PODS)
    }
    amounts_before = amounts(_counted(snapshot))
    world = World(store, scheduler)
    applied = apply(scenario, store)
    world.run()
    applied.made.notes += world.notes
    if world.held:
        requests = ", ".join(world.held)
        applied.made.notes.append(f"places are held for ProvisioningRequests: {requests}")
    return result_of(world, applied, before, amounts_before)


def _counted(snapshot: Snapshot) -> Cluster:
    """The cluster of the snapshot, before any change."""
    cluster = Cluster()
    for kind in (NODE, POD):
        records = tuple(decode(kind.record, obj) for obj in snapshot.of(kind))
        cluster.apply(Listed(kind, records))
    return cluster
