"""Args as kube-scheduler prints its internal form in an error: Go's names, as JSON.

Source  kubernetes/kubernetes v1.36 pkg/scheduler/apis/config/types_pluginargs.go
"""

from collections.abc import Mapping, Sequence
from typing import Any

from asched.core.config import args as plugin_args
from asched.core.config import duration
from asched.core.config.text import constraint_fields


def internal_args(args: Any) -> Any:
    """A value for `go_json`; args of plugins that are not in tree are unchanged."""
    match args:
        case plugin_args.DefaultPreemptionArgs():
            return {
                "MinCandidateNodesPercentage": args.min_candidate_nodes_percentage,
                "MinCandidateNodesAbsolute": args.min_candidate_nodes_absolute,
            }
        case plugin_args.InterPodAffinityArgs():
            return {
                "HardPodAffinityWeight": args.hard_pod_affinity_weight,
                "IgnorePreferredTermsOfExistingPods": args.ignore_preferred_terms_of_existing_pods,
            }
        case plugin_args.NodeAffinityArgs():
            return {"AddedAffinity": args.added_affinity}
        case plugin_args.NodeResourcesBalancedAllocationArgs():
            return {"Resources": _resources(args.resources)}
        case plugin_args.NodeResourcesFitArgs():
            return {
                "IgnoredResources": list(args.ignored_resources) or None,
                "IgnoredResourceGroups": list(args.ignored_resource_groups) or None,
                "ScoringStrategy": _strategy(args.scoring_strategy),
            }
        case plugin_args.PodTopologySpreadArgs():
            constraints = [constraint_fields(entry) for entry in args.default_constraints]
            return {
                "DefaultConstraints": constraints or None,
                "DefaultingType": args.defaulting_type,
            }
        case plugin_args.VolumeBindingArgs():
            return {"BindTimeoutSeconds": args.bind_timeout_s, "Shape": shape_points(args.shape)}
        case plugin_args.DynamicResourcesArgs():
            return {
                "FilterTimeout": _duration(args.filter_timeout_ns),
                "BindingTimeout": _duration(args.binding_timeout_ns),
            }
    return args


def shape_points(
    points: Sequence[plugin_args.UtilizationShapePoint] | None,
) -> list[Mapping[str, int]] | None:
    """Null without a shape."""
    if points is None:
        return None
    return [{"Utilization": p.utilization, "Score": p.score} for p in points]


def _duration(value_ns: int | None) -> str | None:
    return None if value_ns is None else duration.render(value_ns)


def _resources(entries: Sequence[plugin_args.ResourceSpec]) -> list[Mapping[str, Any]] | None:
    return [{"Name": entry.name, "Weight": entry.weight} for entry in entries] or None


def _strategy(strategy: plugin_args.ScoringStrategy) -> Mapping[str, Any] | None:
    if strategy == plugin_args.NO_STRATEGY:
        return None
    ratio = strategy.requested_to_capacity_ratio
    return {
        "Type": strategy.type,
        "Resources": _resources(strategy.resources),
        "RequestedToCapacityRatio": None
        if ratio is None
        else {"Shape": shape_points(ratio.shape) or None},
    }
