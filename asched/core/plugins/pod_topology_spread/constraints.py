"""Spread constraints, compiled: the pod's own, or else the cluster's defaults.

Rules   a pod with any constraint of its own has only those. Defaults get their selector from what
        selects the pod (`default_selectors.py`); without one they do not apply.
        `minDomains` is 1 if absent, `nodeAffinityPolicy` Honor, `nodeTaintsPolicy` Ignore.
        `matchLabelKeys` add `key = value` for the labels the pod has; they cannot turn a selector
        that matches nothing into one that matches something.
Quirk   up to 1.37, an empty selector matches the pod itself, but counts no pod that is there.
Source  kubernetes/kubernetes v1.36 pkg/scheduler/framework/plugins/podtopologyspread/common.go
"""

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from asched import names
from asched.core.cluster.counters import CounterKey, PodPredicate
from asched.core.config.args import LIST_DEFAULTING, DefaultSpreadConstraint, PodTopologySpreadArgs
from asched.core.config.gates import DEFAULT_GATES
from asched.core.model.pod import Pod, TopologySpreadConstraint
from asched.core.model.selector import Labels, Selector, compile_selector, matches

DO_NOT_SCHEDULE: Final = "DoNotSchedule"
SCHEDULE_ANYWAY: Final = "ScheduleAnyway"
HONOR: Final = "Honor"
IGNORE: Final = "Ignore"

#: Constraints of defaultingType System.
SYSTEM_DEFAULTS: Final = (
    DefaultSpreadConstraint(
        max_skew=3, topology_key=names.LABEL_HOSTNAME, when_unsatisfiable=SCHEDULE_ANYWAY
    ),
    DefaultSpreadConstraint(
        max_skew=5, topology_key=names.LABEL_ZONE, when_unsatisfiable=SCHEDULE_ANYWAY
    ),
)


class SpreadConstraint(NamedTuple):
    """One compiled constraint for pods of one namespace. `selector` None matches nothing."""

    max_skew: int
    topology_key: str
    min_domains: int
    honors_affinity: bool
    honors_taints: bool
    selector: Selector | None
    #: whether tolerations with Lt and Gt count where `honors_taints`
    compares_taints: bool = False
    #: whether an empty selector counts the pods that are there
    counts_everything: bool = False

    def counter_key(self, namespace: str) -> CounterKey | None:
        """Key of the counter; None if nothing ever counts."""
        if self.selector is None:
            return None
        predicate = PodPredicate(frozenset((namespace,)), self.selector)
        on_trial_only = self.selector.is_everything and not self.counts_everything
        return CounterKey((predicate,), counts_terminating=False, on_trial_only=on_trial_only)

    def matches(self, labels: Labels) -> bool:
        return matches(self.selector, labels)


Constraints = tuple[SpreadConstraint, ...]


def own_constraints(
    pod: Pod, action: str, gates: Mapping[str, bool] = DEFAULT_GATES
) -> Constraints:
    """The pod's own constraints with that action. Raises ValueError for an invalid selector."""
    has_keys = gates["MatchLabelKeysInPodTopologySpread"]
    found = []
    for written in pod.spec.topology_spread_constraints or ():
        if written.when_unsatisfiable == action:
            keys = (written.match_label_keys or ()) if has_keys else ()
            selector = compile_selector(written.label_selector, keys, pod.labels)
            found.append(_compiled(written, selector, gates))
    return tuple(found)


def default_constraints(
    defaults: Sequence[DefaultSpreadConstraint],
    selector: Selector,
    action: str,
    gates: Mapping[str, bool] = DEFAULT_GATES,
) -> Constraints:
    """The cluster's constraints with that action, for the pods that `selector` selects."""
    chosen = (default for default in defaults if default.when_unsatisfiable == action)
    return tuple(_compiled(default, selector, gates) for default in chosen)


def defaults_of(args: PodTopologySpreadArgs) -> tuple[DefaultSpreadConstraint, ...]:
    if args.defaulting_type == LIST_DEFAULTING:
        return args.default_constraints
    return SYSTEM_DEFAULTS


def _compiled(
    written: TopologySpreadConstraint | DefaultSpreadConstraint,
    selector: Selector | None,
    gates: Mapping[str, bool],
) -> SpreadConstraint:
    return SpreadConstraint(
        written.max_skew,
        written.topology_key,
        1 if written.min_domains is None else written.min_domains,
        honors_affinity=(written.node_affinity_policy or HONOR) == HONOR,
        honors_taints=(written.node_taints_policy or IGNORE) == HONOR,
        selector=selector,
        compares_taints=gates["TaintTolerationComparisonOperators"],
        counts_everything=gates["spread-empty-selector-counts-pods"],
    )
