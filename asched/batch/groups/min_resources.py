"""Check that the minResources of a PodGroup of scheduling.x-k8s.io are free before it starts.

They are checked once, with the places of the first pods, as in scheduler-plugins; nothing is
reserved for the pods that come later.

Bounds  a sum over the nodes for each resource that both the group and a node name.
"""

from asched import names
from asched.batch.groups.attempt import UNSCHEDULABLE, GroupAttempt, GroupOutcome, Result
from asched.core.cluster.gang import gang_of
from asched.core.cluster.shortages import Shortages, amounts_of, amounts_text
from asched.core.cycle.context import SchedulerContext
from asched.core.cycle.unit import Failure


def refuse_if_short(context: SchedulerContext, group: GroupAttempt, outcome: GroupOutcome) -> None:
    """Refuse a group whose first pods fit but whose minResources beyond them are not free.

    To be called while the places of the first pods are assumed.
    """
    cluster, key = context.cluster, group.key
    gang = gang_of(cluster, key)
    if outcome.result is not Result.SCHEDULED or gang is None or not gang.min_resources:
        return
    shortages = cluster.singleton(Shortages)
    shortages.drop(key)
    placed = cluster.pod_groups.get(key).placed
    if not placed.keys() <= {attempt.pod.uid for attempt in group.attempts}:
        return  # it has started
    wanted = amounts_of(gang.min_resources)
    missing_amounts = dict(wanted)
    for uid in placed:
        for name, amount in cluster.placed[uid].cls.accounted.items():
            if name in missing_amounts:
                missing_amounts[name] -= amount
    lacking = {name: amount - int(shortages.free(name)) for name, amount in missing_amounts.items()}
    missing = {name: amount for name, amount in lacking.items() if amount > 0}
    if not missing:
        return
    shortages.note(key, wanted)
    outcome.result = Result.UNSCHEDULABLE
    outcome.message = (
        f"{UNSCHEDULABLE}, minResources of the PodGroup ({amounts_text(wanted)}) are not free:"
        f" beside the pods that fit, {amounts_text(missing)} found no room"
    )
    gates = group.runner.profile.pre_enqueue
    blamed = frozenset(plugin.name for plugin in gates if plugin.awaits_pods)
    outcome.refusal = Failure(outcome.message, names.REASON_UNSCHEDULABLE, blamed)
