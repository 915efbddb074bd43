"""Validate the args of in-tree plugins, with kube-scheduler's messages.

Rules   each function takes the record, the path of the args and the gates, and returns every
        fault; NodeResourcesFit is checked only when the plugin is built (`construct.py`), as
        upstream does.
Source  kubernetes/kubernetes v1.36 pkg/scheduler/apis/config/validation/validation_pluginargs.go,
        component-helpers/scheduling/corev1/nodeaffinity, apimachinery/pkg/labels
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from asched import names
from asched.core.config import args as plugin_args
from asched.core.config import qualified
from asched.core.config.fields import ConfigRecord, fields_of
from asched.core.config.gates import DEFAULT_GATES
from asched.core.config.problem import (
    Path,
    Problem,
    duplicate,
    forbidden,
    invalid,
    not_supported,
    required,
)
from asched.core.config.text import shown
from asched.core.model.quantity import INT64_MAX, INT64_MIN, QuantityError, parse
from asched.core.model.taint import NO_EXECUTE, NO_SCHEDULE, PREFER_NO_SCHEDULE

RESOURCE_WEIGHT_MAX: Final = 100
STRATEGIES: Final = (
    plugin_args.LEAST_ALLOCATED,
    plugin_args.MOST_ALLOCATED,
    plugin_args.REQUESTED_TO_CAPACITY_RATIO,
)
DEFAULTING_TYPES: Final = (plugin_args.SYSTEM_DEFAULTING, plugin_args.LIST_DEFAULTING)
SPREAD_ACTIONS: Final = ("DoNotSchedule", "ScheduleAnyway")
NODE_OPERATORS: Final = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")
FIELD_OPERATORS: Final = ("In", "NotIn")
TAINT_EFFECTS: Final = (NO_SCHEDULE, PREFER_NO_SCHEDULE, NO_EXECUTE)
NO_SHAPES: Final = "name the shapes of node that the autoscaler can add"

Gates = Mapping[str, bool]


def ranges(record: ConfigRecord, path: Path, gates: Gates = DEFAULT_GATES) -> list[Problem]:
    """Fields that are set without their gates, or out of the range that they declare."""
    problems = []
    for name, field in fields_of(type(record)).items():
        value = getattr(record, field.attribute)
        if value is None:
            continue
        if field.gates and not field.gates.are_on(gates):
            text = f"needs the feature gates {' and '.join(field.gates.names)}"
            problems.append(forbidden((*path, name), text))
        elif field.range and not field.range.least <= value <= field.range.most:
            problems.append(invalid((*path, name), shown(value, field), field.range.message))
    return problems


def qualified_name(name: str, path: Path) -> list[Problem]:
    return [invalid(path, name, text) for text in qualified.qualified_name_faults(name)]


def default_preemption(
    args: plugin_args.DefaultPreemptionArgs, path: Path, _: Gates
) -> list[Problem]:
    faults = ranges(args, path)
    both = "minCandidateNodesPercentage", "minCandidateNodesAbsolute"
    if args.min_candidate_nodes_percentage == args.min_candidate_nodes_absolute == 0:
        for name, other in (both, both[::-1]):
            text = f"cannot be zero at the same time as {other}"
            faults.append(invalid((*path, name), 0, text))
    return faults


def balanced_allocation(
    args: plugin_args.NodeResourcesBalancedAllocationArgs, path: Path, _: Gates
) -> list[Problem]:
    faults = []
    seen: set[str] = set()
    for i, resource in enumerate(args.resources):
        item_path = (*path, "resources", i)
        if resource.name in seen:
            faults.append(duplicate((*item_path, "name"), resource.name))
        seen.add(resource.name)
        if resource.weight != 1:
            faults.append(invalid((*item_path, "weight"), resource.weight, "must be 1"))
    return faults


def backfill(args: plugin_args.BackfillArgs, path: Path, _: Gates) -> list[Problem]:
    faults = ranges(args, path)
    if args.learn_durations and not args.soft_ends:
        item_path, why = (*path, "learnDurations"), "has no effect without softEnds: true"
        faults.append(invalid(item_path, args.learn_durations, why))
    return faults


def check_and_hold(args: plugin_args.CheckAndHoldArgs, path: Path, _: Gates) -> list[Problem]:
    faults = []
    name = args.provisioning_class_name
    if qualified.subdomain_faults(name):
        faults.append(invalid((*path, "provisioningClassName"), name, "must be a DNS subdomain"))
    return faults + ranges(args, path)


def group_scale_up(args: plugin_args.GroupScaleUpArgs, path: Path, _: Gates) -> list[Problem]:
    faults, shapes = ranges(args, path), (*path, "nodeShapes")
    if not args.node_shapes:
        return [*faults, required(shapes, NO_SHAPES)]
    if len(args.node_shapes) > plugin_args.SHAPES_MAX:
        text = f"must have at most {plugin_args.SHAPES_MAX} items"
        faults.append(invalid(shapes, len(args.node_shapes), text))
    seen: set[str] = set()
    for i, shape in enumerate(args.node_shapes):
        item_path = (*shapes, i)
        if shape.name in seen:
            faults.append(duplicate((*item_path, "name"), shape.name))
        seen.add(shape.name)
        faults += _node_shape(shape, item_path)
    return faults


def _node_shape(shape: plugin_args.NodeShape, path: Path) -> list[Problem]:
    faults = ranges(shape, path)
    if not shape.name:
        faults.append(required((*path, "name"), "can not be empty"))
    elif wrong := qualified.label_value_faults(shape.name):
        faults.append(invalid((*path, "name"), shape.name, "; ".join(wrong)))
    for key, value in (shape.labels or {}).items():
        faults += qualified_name(key, (*path, "labels", key))
        if wrong := qualified.label_value_faults(value):
            faults.append(invalid((*path, "labels", key), value, "; ".join(wrong)))
    for i, taint in enumerate(shape.taints):
        item_path = (*path, "taints", i)
        faults += qualified_name(taint.key, (*item_path, "key"))
        if taint.effect not in TAINT_EFFECTS:
            faults.append(not_supported((*item_path, "effect"), taint.effect, TAINT_EFFECTS))
    if not shape.allocatable:
        faults.append(required((*path, "allocatable"), "name the resources of such a node"))
    for key, value in (shape.allocatable or {}).items():
        item_path = (*path, "allocatable", key)
        faults += qualified_name(key, item_path)
        try:
            if parse(value) < 0:
                faults.append(invalid(item_path, value, "must not be negative"))
        except QuantityError as error:
            faults.append(invalid(item_path, value, str(error)))
    return faults


def pod_topology_spread(
    args: plugin_args.PodTopologySpreadArgs, path: Path, _: Gates
) -> list[Problem]:
    faults = []
    kind, kind_path = args.defaulting_type, (*path, "defaultingType")
    if kind not in DEFAULTING_TYPES:
        faults.append(not_supported(kind_path, kind, DEFAULTING_TYPES))
    elif kind == plugin_args.SYSTEM_DEFAULTING and args.default_constraints:
        faults.append(invalid(kind_path, kind, "when .defaultConstraints are not empty"))
    seen: set[tuple[str, str]] = set()
    for i, constraint in enumerate(args.default_constraints):
        item_path = (*path, "defaultConstraints", i)
        faults += _constraint(constraint, item_path)
        identity = (constraint.topology_key, constraint.when_unsatisfiable)
        if identity in seen:
            faults.append(duplicate(item_path, f"{{{identity[0]}, {identity[1]}}}"))
        seen.add(identity)
    return faults


def _constraint(constraint: plugin_args.DefaultSpreadConstraint, item_path: Path) -> list[Problem]:
    faults = ranges(constraint, item_path)
    key, key_path = constraint.topology_key, (*item_path, "topologyKey")
    if not key:
        faults.append(required(key_path, "can not be empty"))
    else:
        faults += qualified_name(key, key_path)
    action, action_path = constraint.when_unsatisfiable, (*item_path, "whenUnsatisfiable")
    if not action:
        faults.append(required(action_path, "can not be empty"))
    elif action not in SPREAD_ACTIONS:
        faults.append(not_supported(action_path, action, SPREAD_ACTIONS))
    if constraint.label_selector is not None:
        text = "constraint must not define a selector, as they deduced for each pod"
        faults.append(forbidden((*item_path, "labelSelector"), text))
    return faults


def volume_binding(args: plugin_args.VolumeBindingArgs, path: Path, gates: Gates) -> list[Problem]:
    faults = ranges(args, path)
    if gates["StorageCapacityScoring"]:
        faults += _shape(args.shape or (), (*path, "shape"))
    elif args.shape is not None:
        text = "remove it, or turn on the feature gate StorageCapacityScoring"
        faults.append(forbidden((*path, "shape"), text))
    return faults


def node_resources_fit(args: plugin_args.NodeResourcesFitArgs, path: Path) -> list[Problem]:
    """The check at construction of the plugin; upstream calls it with an empty path."""
    faults = []
    for i, name in enumerate(args.ignored_resources):
        faults += qualified_name(name, (*path, "ignoredResources", i))
    for i, group in enumerate(args.ignored_resource_groups):
        item_path = (*path, "ignoredResourceGroups", i)
        if "/" in group:
            faults.append(invalid(item_path, group, "resource group name can't contain '/'"))
        faults += qualified_name(group, item_path)
    strategy, item_path = args.scoring_strategy, (*path, "scoringStrategy")
    if strategy.type not in STRATEGIES:
        faults.append(not_supported((*item_path, "type"), strategy.type, STRATEGIES))
    for i, resource in enumerate(strategy.resources):
        if not 0 < resource.weight <= RESOURCE_WEIGHT_MAX:
            text = f"resource weight of {resource.name} not in valid range (0, 100]"
            faults.append(invalid((*item_path, "resources", i, "weight"), resource.weight, text))
    ratio = strategy.requested_to_capacity_ratio
    ratio_path = (*item_path, "requestedToCapacityRatio")
    by_ratio = strategy.type == plugin_args.REQUESTED_TO_CAPACITY_RATIO
    if by_ratio and ratio is None:
        text = "must be specified when type is RequestedToCapacityRatio"
        faults.append(required(ratio_path, text))
    elif by_ratio and ratio is not None:
        faults += _shape(ratio.shape, (*ratio_path, "shape"))
    elif ratio is not None:
        text = "must be nil when type is not RequestedToCapacityRatio"
        faults.append(forbidden(ratio_path, text))
    return faults


def _shape(points: Sequence[plugin_args.UtilizationShapePoint], path: Path) -> list[Problem]:
    if not points:
        return [required(path, "at least one point must be specified")]
    faults = []
    for i in range(1, len(points)):
        if points[i - 1].utilization >= points[i].utilization:
            item_path, value = (*path, i, "utilization"), points[i].utilization
            faults.append(invalid(item_path, value, "values must be sorted in increasing order"))
            break
    return faults + [fault for i, point in enumerate(points) for fault in ranges(point, (*path, i))]


def node_affinity(args: plugin_args.NodeAffinityArgs, path: Path, _: Gates) -> list[Problem]:
    """Terms are parsed like a pod's; empty ones and weight 0 are skipped."""
    added = args.added_affinity
    if added is None:
        return []
    faults = []
    name = "requiredDuringSchedulingIgnoredDuringExecution"
    selector = added.get(name) or {}
    for i, term in enumerate(selector.get("nodeSelectorTerms") or ()):
        faults += _node_term(term, (*path, "addedAffinity", name, "nodeSelectorTerms", i))
    name = "preferredDuringSchedulingIgnoredDuringExecution"
    for i, preference in enumerate(added.get(name) or ()):
        if preference and preference.get("weight"):
            faults += _node_term(preference.get("preference"), (*path, "addedAffinity", name, i))
    return faults


def _node_term(term: Mapping[str, Any] | None, path: Path) -> list[Problem]:
    faults = []
    for i, given in enumerate((term or {}).get("matchExpressions") or ()):
        faults += _label_requirement(given or {}, (*path, "matchExpressions", i))
    for i, given in enumerate((term or {}).get("matchFields") or ()):
        requirement, item_path = given or {}, (*path, "matchFields", i)
        operator, values = requirement.get("operator") or "", requirement.get("values")
        if operator not in FIELD_OPERATORS:
            faults.append(not_supported((*item_path, "operator"), operator, FIELD_OPERATORS))
        elif len(values or ()) != 1:
            faults.append(invalid((*item_path, "values"), values, "must have one element"))
    return faults


def _label_requirement(given: Mapping[str, Any], path: Path) -> list[Problem]:
    operator = given.get("operator") or ""
    if operator not in NODE_OPERATORS:
        return [not_supported((*path, "operator"), operator, NODE_OPERATORS)]
    key, values = given.get("key") or "", given.get("values")
    given_values: Sequence[str] = values or ()
    item_path = (*path, "values")
    faults = []
    wrong = qualified.qualified_name_faults(key)
    if wrong:
        faults.append(invalid((*path, "key"), key, "; ".join(wrong)))
    if operator in ("In", "NotIn"):
        if not given_values:
            text = "for 'in', 'notin' operators, values set can't be empty"
            faults.append(invalid(item_path, values, text))
    elif operator in ("Exists", "DoesNotExist"):
        if given_values:
            text = "values set must be empty for exists and does not exist"
            faults.append(invalid(item_path, values, text))
    else:
        if len(given_values) != 1:
            text = "for 'Gt', 'Lt' operators, exactly one value is required"
            faults.append(invalid(item_path, values, text))
        for i, value in enumerate(given_values):
            if not _is_int64(value):
                text = "for 'Gt', 'Lt' operators, the value must be an integer"
                faults.append(invalid((*item_path, i), value, text))
    for i, value in enumerate(given_values):
        wrong = qualified.label_value_faults(value)
        if wrong:
            faults.append(invalid((*item_path, i), value, "; ".join(wrong)))
    return faults


def _is_int64(text: str) -> bool:
    digits = text[1:] if text[:1] in ("+", "-") else text
    return digits.isascii() and digits.isdigit() and INT64_MIN <= int(text) <= INT64_MAX


#: Checks before construction; args without a rule of their own have the ranges of their fields.
CHECKS: Final[Mapping[str, Callable[[Any, Path, Gates], list[Problem]]]] = {
    **dict.fromkeys(plugin_args.ARGS_TYPES.keys() - {names.NODE_RESOURCES_FIT}, ranges),
    names.DEFAULT_PREEMPTION: default_preemption,
    names.BACKFILL: backfill,
    names.CHECK_AND_HOLD: check_and_hold,
    names.GROUP_SCALE_UP: group_scale_up,
    names.NODE_AFFINITY: node_affinity,
    names.NODE_RESOURCES_BALANCED_ALLOCATION: balanced_allocation,
    names.POD_TOPOLOGY_SPREAD: pod_topology_spread,
    names.VOLUME_BINDING: volume_binding,
}
