"""The legacy Policy: predicates and priorities to a profile of v1 plugins.

Rules   predicates or priorities that are absent mean the default set, an empty list means the
        mandatory predicates or no priorities; filters have the fixed order that predicates once
        had, because that order decides which reason a node reports; the first weight wins where
        two priorities, in alphabetical order, became one plugin; label presence became affinity
        added to every pod; rules about services are rejected, they have no equivalent.
Bounds  WEIGHT_LIMIT, as in the Policy.
Source  kubernetes/kubernetes up to v1.22 pkg/scheduler/apis/config,
        framework/plugins/legacy_registry.go
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from asched import names
from asched.core.config import duration
from asched.core.config.args import REQUESTED_TO_CAPACITY_RATIO
from asched.core.config.in_tree import KnownPlugins
from asched.core.config.policy_table import (
    ALWAYS,
    CUSTOM_PREDICATE_ARGS,
    CUSTOM_PRIORITY_ARGS,
    DEFAULT_PREDICATES,
    DEFAULT_PRIORITIES,
    MANDATORY,
    PREDICATE_ORDER,
    PREDICATES,
    PRIORITIES,
    SPELLINGS,
    STRATEGIES,
    UNSUPPORTED_PRIORITIES,
    WEIGHT_LIMIT,
)
from asched.core.config.problem import Path, did_you_mean, quoted
from asched.core.config.translation import Draft, Translation, named
from asched.core.config.v1 import ALL_PLUGINS, API_VERSION, KIND, MULTI_POINT

#: The points of a predicate's plugin.
FILTER_POINTS: Final = ("preFilter", "filter", "reserve", "preBind")


def is_policy(document: Any) -> bool:
    """Whether a document is a legacy Policy."""
    return isinstance(document, Mapping) and document.get("kind") == "Policy"


def translate_policy(
    policy: Mapping[str, Any],
    known: KnownPlugins,
    scheduler_name: str = names.DEFAULT_SCHEDULER_NAME,
) -> Translation:
    """The v1 document of a Policy; its problems have the messages of that version."""
    draft = Draft("legacy Policy")
    document = _respelt(policy)
    for key in document:
        if key not in {"apiVersion", "kind", *SPELLINGS["policy"]}:
            draft.unsupported((key,), "no field of a Policy")
    args: dict[str, dict[str, Any]] = {}
    plugins: dict[str, list[dict[str, Any]]] = {}
    filters = _predicates(document.get("predicates"), args, draft)
    scores = _priorities(document.get("priorities"), args, draft)
    _fill_points(plugins, filters, scores, known)
    _hard_weight(document.get("hardPodAffinitySymmetricWeight"), args, draft)
    profile: dict[str, Any] = {
        "schedulerName": scheduler_name,
        "plugins": {
            MULTI_POINT: {"disabled": [{"name": ALL_PLUGINS}]},
            **{point: {"enabled": entries} for point, entries in plugins.items()},
        },
    }
    used = {entry["name"] for entries in plugins.values() for entry in entries}
    configs = [{"name": name, "args": args[name]} for name in sorted(args) if name in used]
    if configs:
        profile["pluginConfig"] = configs
    draft.document = {"apiVersion": API_VERSION, "kind": KIND, "profiles": [profile]}
    extenders = _extenders(document.get("extenders"), draft)
    if extenders:
        draft.document["extenders"] = extenders
    check_all = document.get("alwaysCheckAllPredicates") is True
    if check_all:
        text = "v1 has no such field; honoured while the Policy itself is loaded"
        draft.changed(("alwaysCheckAllPredicates",), text)
    return draft.finish(always_check_all_filters=check_all)


def _respelt(policy: Mapping[str, Any]) -> dict[str, Any]:
    """Keys were accepted in any letter case."""
    spelling = {name.lower(): name for name in SPELLINGS["policy"]}
    return {spelling.get(key.lower(), key): value for key, value in policy.items()}


def _predicates(given: Any, args: dict[str, dict[str, Any]], draft: Draft) -> list[str]:
    """Filter plugins for these predicates, in the fixed order."""
    path: Path = ("predicates",)
    asked: set[str] = set(MANDATORY)
    if given is None:
        draft.kept((), f"no predicates given: the default set ({len(DEFAULT_PREDICATES)})")
        asked |= set(DEFAULT_PREDICATES)
    elif not isinstance(given, list):
        draft.refuse(path, "predicates: must be a list")
    for place, entry in named(given):
        name, entry_path = str(entry.get("name") or ""), (*path, place)
        argument = entry.get("argument")
        if argument is not None:
            _custom_predicate(name, argument, entry_path, args, asked, draft)
        elif name in PREDICATES:
            asked.add(name)
            draft.changed(entry_path, f"{name} became {', '.join(PREDICATES[name])}")
        elif name in CUSTOM_PREDICATE_ARGS:
            text = f"exactly 1 predicate argument is required, numArgs: 0 ({name})"
            draft.refuse((*entry_path, "name"), text)
        else:
            text = f"predicate type not found for {quoted(name)}"
            draft.refuse((*entry_path, "name"), text, did_you_mean(name, PREDICATES))
    ordered = [name for name in PREDICATE_ORDER if name in asked]
    return list(dict.fromkeys(plugin for name in ordered for plugin in PREDICATES[name]))


def _custom_predicate(
    name: str,
    argument: Any,
    entry_path: Path,
    args: dict[str, dict[str, Any]],
    asked: set[str],
    draft: Draft,
) -> None:
    given = [key for key in ("serviceAffinity", "labelsPresence") if _field(argument, key)]
    if len(given) != 1:
        text = f"exactly 1 predicate argument is required, numArgs: {len(given)}"
        draft.refuse((*entry_path, "argument"), text)
    elif given[0] == "serviceAffinity":
        hint = f"nothing does its work today; pod affinity ({names.INTER_POD_AFFINITY}) comes close"
        draft.refuse(entry_path, f"predicate {quoted(name)}: ServiceAffinity is gone", hint)
    else:
        presence = _field(argument, "labelsPresence")
        operator = "Exists" if presence.get("presence") else "DoesNotExist"
        term = _added_term(args)
        term += [{"key": label, "operator": operator} for label in presence.get("labels") or ()]
        asked.add("MatchNodeSelector")
        draft.changed(entry_path, f"{name} became addedAffinity of {names.NODE_AFFINITY}")


def _field(argument: Any, name: str) -> Any:
    if not isinstance(argument, Mapping):
        return None
    return next((value for key, value in argument.items() if key.lower() == name.lower()), None)


def _added(args: dict[str, dict[str, Any]]) -> dict[str, Any]:
    added: dict[str, Any] = args.setdefault(names.NODE_AFFINITY, {}).setdefault("addedAffinity", {})
    return added


def _added_term(args: dict[str, dict[str, Any]]) -> list[dict[str, Any]]:
    terms = _added(args).setdefault(
        "requiredDuringSchedulingIgnoredDuringExecution",
        {"nodeSelectorTerms": [{"matchExpressions": []}]},
    )
    expressions: list[dict[str, Any]] = terms["nodeSelectorTerms"][0]["matchExpressions"]
    return expressions


def _priorities(given: Any, args: dict[str, dict[str, Any]], draft: Draft) -> dict[str, int]:
    """Score plugins for these priorities, and their weights."""
    path: Path = ("priorities",)
    if given is None:
        draft.kept((), f"no priorities given: the default set ({len(DEFAULT_PRIORITIES)})")
        entries: list[tuple[Path, dict[str, Any]]] = [
            ((), {"name": name, "weight": weight}) for name, weight in DEFAULT_PRIORITIES.items()
        ]
    elif not isinstance(given, list):
        draft.refuse(path, "priorities: must be a list")
        entries = []
    else:
        entries = [((*path, place), entry) for place, entry in named(given)]
    weights: dict[str, int] = {}
    strategy = ""
    spreading = {"SelectorSpreadPriority", "ServiceSpreadingPriority"}
    for entry_path, entry in sorted(entries, key=lambda item: str(item[1].get("name") or "")):
        name, weight = str(entry.get("name") or ""), entry.get("weight") or 0
        if not isinstance(weight, int) or not 0 < weight < WEIGHT_LIMIT:
            text = (
                f"priority {name} should have a positive weight applied to it or it has overflown"
            )
            draft.refuse((*entry_path, "weight"), text)
            continue
        if _field(entry.get("argument"), "requestedToCapacityRatioArguments") or name in STRATEGIES:
            strategy = _strategy(name, entry, entry_path, strategy, args, draft)
            weights.setdefault(names.NODE_RESOURCES_FIT, weight)
        elif entry.get("argument") is not None:
            _custom_priority(name, weight, entry["argument"], entry_path, weights, args, draft)
        elif name in PRIORITIES:
            weights.setdefault(PRIORITIES[name], weight)
            if entry_path:
                draft.changed(entry_path, f"{name} became {PRIORITIES[name]}, weight {weight}")
        elif name in UNSUPPORTED_PRIORITIES:
            draft.unsupported(entry_path, f"{name}: {UNSUPPORTED_PRIORITIES[name]}")
        else:
            text = f"priority type not found for {quoted(name)}"
            hint = did_you_mean(name, [*PRIORITIES, *STRATEGIES])
            draft.refuse((*entry_path, "name"), text, hint)
    if not any(str(entry.get("name")) in spreading for _, entry in entries):
        # Without the old selector spreading there were no default constraints.
        args[names.POD_TOPOLOGY_SPREAD] = {"defaultingType": "List"}
    return weights


def _strategy(
    name: str,
    entry: Mapping[str, Any],
    entry_path: Path,
    before: str,
    args: dict[str, dict[str, Any]],
    draft: Draft,
) -> str:
    ratio = _field(entry.get("argument"), "requestedToCapacityRatioArguments")
    if before:
        text = (
            f"priority {quoted(name)} redeclares custom priority "
            f"{quoted(REQUESTED_TO_CAPACITY_RATIO)}, from: {quoted(before)}"
            if ratio and before not in STRATEGIES
            else f"{before} and {name} score together, v1 has one strategy for each profile"
        )
        draft.refuse(entry_path, text, "keep one of them")
        return before
    strategy: dict[str, Any] = {"type": STRATEGIES.get(name, REQUESTED_TO_CAPACITY_RATIO)}
    if isinstance(ratio, Mapping):
        strategy["type"] = REQUESTED_TO_CAPACITY_RATIO
        strategy["requestedToCapacityRatio"] = {"shape": ratio.get("shape") or []}
        if ratio.get("resources"):
            strategy["resources"] = ratio["resources"]
    args[names.NODE_RESOURCES_FIT] = {"scoringStrategy": strategy}
    if entry_path:
        draft.changed(entry_path, f"{name} became {names.NODE_RESOURCES_FIT}, {strategy['type']}")
    return name


def _custom_priority(
    name: str,
    weight: int,
    argument: Any,
    entry_path: Path,
    weights: dict[str, int],
    args: dict[str, dict[str, Any]],
    draft: Draft,
) -> None:
    given = [key for key in CUSTOM_PRIORITY_ARGS if _field(argument, key)]
    if len(given) != 1:
        text = f"exactly 1 priority argument is required, numArgs: {len(given)}"
        draft.refuse((*entry_path, "argument"), text)
    elif given[0] == "serviceAntiAffinity":
        hint = f"nothing does its work today; {names.POD_TOPOLOGY_SPREAD} comes close"
        draft.refuse(entry_path, f"priority {quoted(name)}: ServiceAffinity is gone", hint)
    else:
        preference = _field(argument, "labelPreference")
        operator = "Exists" if preference.get("presence") else "DoesNotExist"
        expression = {"key": preference.get("label") or "", "operator": operator}
        terms = _added(args).setdefault("preferredDuringSchedulingIgnoredDuringExecution", [])
        terms.append({"weight": 1, "preference": {"matchExpressions": [expression]}})
        weights[names.NODE_AFFINITY] = weights.get(names.NODE_AFFINITY, 0) + weight
        draft.changed(entry_path, f"{name} became preferred addedAffinity of {names.NODE_AFFINITY}")


def _fill_points(
    plugins: dict[str, list[dict[str, Any]]],
    filters: Sequence[str],
    scores: Mapping[str, int],
    known: KnownPlugins,
) -> None:
    for point, entries in ALWAYS.items():
        plugins[point] = [{"name": name} for name in entries]
    for point in FILTER_POINTS:
        own_filters = [{"name": name} for name in filters if point in known[name]]
        if own_filters:
            # Claims are allocated after all other filters, as in a default profile.
            plugins[point] = own_filters + plugins.get(point, [])
    for name, weight in scores.items():
        if "preScore" in known[name]:
            plugins.setdefault("preScore", []).append({"name": name})
        plugins.setdefault("score", []).append({"name": name, "weight": weight})


def _hard_weight(value: Any, args: dict[str, dict[str, Any]], draft: Draft) -> None:
    path: Path = ("hardPodAffinitySymmetricWeight",)
    if not value:
        return
    if not isinstance(value, int) or not 0 <= value <= 100:
        text = f"hardPodAffinitySymmetricWeight: Invalid value: {value}: not in valid range [0-100]"
        draft.refuse(path, text)
        return
    args[names.INTER_POD_AFFINITY] = {"hardPodAffinityWeight": value}
    draft.changed(path, f"became hardPodAffinityWeight of {names.INTER_POD_AFFINITY}")


def _extenders(given: Any, draft: Draft) -> list[dict[str, Any]]:
    """Keys were accepted in any letter case, and a timeout was a number of nanoseconds."""
    result = []
    for place, entry in named(given):
        extender: dict[str, Any] = {}
        for key, value in entry.items():
            name = {n.lower(): n for n in SPELLINGS["extender"]}.get(key.lower(), key)
            if key.lower() in ("apiversion", "kind"):
                text = "an extender has none of its own; it is ignored"
                draft.unsupported(("extenders", place, key), text)
                continue
            if name == "httpTimeout" and isinstance(value, int):
                extender[name] = duration.render(value)
            elif name in ("tlsConfig", "managedResources"):
                extender[name] = _respelt_deep(value, SPELLINGS[name])
            else:
                extender[name] = value
        result.append(extender)
        draft.kept(("extenders", place), str(extender.get("urlPrefix", "")))
    return result


def _respelt_deep(value: Any, spellings: Sequence[str]) -> Any:
    if isinstance(value, list):
        return [_respelt_deep(item, spellings) for item in value]
    if not isinstance(value, Mapping):
        return value
    by_lower = {name.lower(): name for name in spellings}
    return {by_lower.get(key.lower(), key): item for key, item in value.items()}
