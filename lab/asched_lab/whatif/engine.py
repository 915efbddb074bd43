"""The what-if engine: a snapshot, a scenario and a scheduler in; places and reasons out.

The Python interface is `asched_lab.whatif.api`.
"""

from asched.core.cluster.cluster import Cluster
from asched.core.cluster.facts import Listed
from asched.core.model.decode import decode
from asched.core.model.kinds import NODE, POD
from asched.host.memory import collected_seldom
from asched_lab.apiserver.resources import PODS
from asched_lab.whatif.changes import Scenario, apply
from asched_lab.whatif.result import Result, result_of
from asched_lab.whatif.room import amounts
from asched_lab.whatif.snapshot import Snapshot
from asched_lab.whatif.store import Store
from asched_lab.whatif.world import Scheduler, World


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
