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

from collections.abc import Iterable, Mapping
from typing import Any, Final

from asched import names
from asched.core.config import duration
from asched.core.config.args import REQUESTED_TO_CAPACITY_RATIO
from asched.core.config.default_plugins import KnownPlugins
from asched.core.config.fields import ListOf, Type, fields_of
from asched.core.config.legacy.replacements import (
    ALWAYS,
    CUSTOM_PREDICATE_ARGS,
    CUSTOM_PRIORITY_ARGS,
    DEFAULT_PREDICATES,
    DEFAULT_PRIORITIES,
    MANDATORY,
    PREDICATES,
    PRIORITIES,
    STRATEGIES,
    UNSUPPORTED_PRIORITIES,
    WEIGHT_LIMIT,
)
from asched.core.config.legacy.translation import Translation, named
from asched.core.config.problem import Path, did_you_mean, quoted
from asched.core.config.v1 import ALL_PLUGINS, API_VERSION, KIND, MULTI_POINT, Extender

#: The points of a predicate's plugin.
FILTER_POINTS: Final = ("preFilter", "filter", "reserve", "preBind")
_FIELDS: Final = (
    "predicates",
    "priorities",
    "extenders",
    "hardPodAffinitySymmetricWeight",
    "alwaysCheckAllPredicates",
)
_RATIO: Final = "requestedToCapacityRatioArguments"


def is_policy(document: Any) -> bool:
    return isinstance(document, Mapping) and document.get("kind") == "Policy"


def translate_policy(
    policy: Mapping[str, Any],
    known: KnownPlugins,
    scheduler_name: str = names.DEFAULT_SCHEDULER_NAME,
) -> Translation:
    """The v1 document of a Policy; its problems have the messages of that version."""
    reader = _PolicyReader(known)
    reader.read(_respelt_keys(policy, _FIELDS), scheduler_name)
    return reader.made


def _respelt_keys(given: Mapping[str, Any], fields: Iterable[str]) -> dict[str, Any]:
    """Keys were accepted in any letter case."""
    spelling = {name.lower(): name for name in fields}
    return {spelling.get(key.lower(), key): value for key, value in given.items()}


def _respelt(value: Any, declared: Type) -> Any:
    """The same for a value and all that is in it."""
    if isinstance(value, list) and isinstance(declared, ListOf):
        return [_respelt(item, declared.item) for item in value]
    if not isinstance(value, Mapping) or not isinstance(declared, type):
        return value
    fields = fields_of(declared)
    return {
        key: _respelt(item, fields[key].type) if key in fields else item
        for key, item in _respelt_keys(value, fields).items()
    }


def _field(argument: Any, name: str) -> Any:
    if not isinstance(argument, Mapping):
        return None
    return next((value for key, value in argument.items() if key.lower() == name.lower()), None)


class _PolicyReader:
    """Builds the translation; `args` are those of plugins by name."""

    def __init__(self, known: KnownPlugins) -> None:
        self.made = Translation("legacy Policy")
        self.known = known
        self.args: dict[str, dict[str, Any]] = {}
        #: the priority that became the strategy of NodeResourcesFit
        self.strategy = ""

    def read(self, document: Mapping[str, Any], scheduler_name: str) -> None:
        for key in document:
            if key not in {"apiVersion", "kind", *_FIELDS}:
                self.made.unsupported((key,), "no field of a Policy")
        filters = self._predicates(document.get("predicates"))
        scores = self._priorities(document.get("priorities"))
        plugins = self._points(filters, scores)
        self._hard_weight(document.get("hardPodAffinitySymmetricWeight"))
        profile: dict[str, Any] = {
            "schedulerName": scheduler_name,
            "plugins": {
                MULTI_POINT: {"disabled": [{"name": ALL_PLUGINS}]},
                **{point: {"enabled": entries} for point, entries in plugins.items()},
            },
        }
        used = {entry["name"] for entries in plugins.values() for entry in entries}
        configs = [{"name": n, "args": args} for n, args in sorted(self.args.items()) if n in used]
        if configs:
            profile["pluginConfig"] = configs
        self.made.document = {"apiVersion": API_VERSION, "kind": KIND, "profiles": [profile]}
        extenders = [self._extender(*entry) for entry in named(document.get("extenders"))]
        if extenders:
            self.made.document["extenders"] = extenders
        if document.get("alwaysCheckAllPredicates") is True:
            text = "v1 has no such field; honoured while the Policy itself is loaded"
            self.made.changed(("alwaysCheckAllPredicates",), text)
            self.made.always_check_all_filters = True

    def _predicates(self, given: Any) -> list[str]:
        """Filter plugins for these predicates, in the fixed order."""
        requested: set[str] = set(MANDATORY)
        if given is None:
            text = f"no predicates given: the default set ({len(DEFAULT_PREDICATES)})"
            self.made.kept((), text)
            requested |= set(DEFAULT_PREDICATES)
        elif not isinstance(given, list):
            self.made.refuse(("predicates",), "predicates: must be a list")
        for place, entry in named(given):
            name, path = str(entry.get("name") or ""), ("predicates", place)
            argument = entry.get("argument")
            if argument is not None:
                requested |= self._custom_predicate(name, argument, path)
            elif name in PREDICATES:
                requested.add(name)
                self.made.changed(path, f"{name} became {', '.join(PREDICATES[name])}")
            elif name in CUSTOM_PREDICATE_ARGS:
                text = f"exactly 1 predicate argument is required, numArgs: 0 ({name})"
                self.made.refuse((*path, "name"), text)
            else:
                text = f"predicate type not found for {quoted(name)}"
                self.made.refuse((*path, "name"), text, did_you_mean(name, PREDICATES))
        ordered = [plugins for name, plugins in PREDICATES.items() if name in requested]
        return list(dict.fromkeys(plugin for plugins in ordered for plugin in plugins))

    def _custom_predicate(self, name: str, argument: Any, path: Path) -> set[str]:
        """The predicates that it needs."""
        given = [key for key in ("serviceAffinity", "labelsPresence") if _field(argument, key)]
        if len(given) != 1:
            text = f"exactly 1 predicate argument is required, numArgs: {len(given)}"
            self.made.refuse((*path, "argument"), text)
        elif given[0] == "serviceAffinity":
            instead = f"pod affinity ({names.INTER_POD_AFFINITY})"
            hint = f"nothing does its work today; {instead} comes close"
            self.made.refuse(path, f"predicate {quoted(name)}: ServiceAffinity is gone", hint)
        elif presence := self._object(_field(argument, given[0]), given[0], path):
            operator = "Exists" if presence.get("presence") else "DoesNotExist"
            terms = self._added().setdefault(
                "requiredDuringSchedulingIgnoredDuringExecution",
                {"nodeSelectorTerms": [{"matchExpressions": []}]},
            )
            terms["nodeSelectorTerms"][0]["matchExpressions"] += [
                {"key": label, "operator": operator} for label in presence.get("labels") or ()
            ]
            self.made.changed(path, f"{name} became addedAffinity of {names.NODE_AFFINITY}")
            return {"MatchNodeSelector"}
        return set()

    def _object(self, value: Any, field: str, path: Path) -> Mapping[str, Any]:
        """The value of an argument; empty if it is not of the right form, which is refused."""
        if not isinstance(value, Mapping):
            self.made.refuse((*path, "argument"), f"{field}: must be an object")
            return {}
        labels = value.get("labels") or []
        if not isinstance(labels, list) or not all(isinstance(label, str) for label in labels):
            self.made.refuse((*path, "argument"), f"{field}.labels: must be a list of strings")
            return {}
        if not isinstance(value.get("label", ""), str):
            self.made.refuse((*path, "argument"), f"{field}.label: must be a string")
            return {}
        return value

    def _added(self) -> dict[str, Any]:
        args = self.args.setdefault(names.NODE_AFFINITY, {})
        added: dict[str, Any] = args.setdefault("addedAffinity", {})
        return added

    def _priorities(self, given: Any) -> dict[str, int]:
        """Score plugins for these priorities, and their weights."""
        entries: list[tuple[Path, dict[str, Any]]] = [
            (("priorities", place), entry) for place, entry in named(given)
        ]
        if given is None:
            text = f"no priorities given: the default set ({len(DEFAULT_PRIORITIES)})"
            self.made.kept((), text)
            entries = [((), {"name": n, "weight": w}) for n, w in DEFAULT_PRIORITIES.items()]
        elif not isinstance(given, list):
            self.made.refuse(("priorities",), "priorities: must be a list")
        weights: dict[str, int] = {}
        for path, entry in sorted(entries, key=lambda item: str(item[1].get("name") or "")):
            self._priority(str(entry.get("name") or ""), entry, path, weights)
        spreading = {"SelectorSpreadPriority", "ServiceSpreadingPriority"}
        if not any(str(entry.get("name")) in spreading for _, entry in entries):
            # Without the old selector spreading there were no default constraints.
            self.args[names.POD_TOPOLOGY_SPREAD] = {"defaultingType": "List"}
        return weights

    def _priority(
        self, name: str, entry: Mapping[str, Any], path: Path, weights: dict[str, int]
    ) -> None:
        weight, argument = entry.get("weight") or 0, entry.get("argument")
        if not isinstance(weight, int) or not 0 < weight < WEIGHT_LIMIT:
            text = (
                f"priority {name} should have a positive weight applied to it or it has overflown"
            )
            self.made.refuse((*path, "weight"), text)
        elif _field(argument, _RATIO) or name in STRATEGIES:
            self._strategy(name, _field(argument, _RATIO), path)
            weights.setdefault(names.NODE_RESOURCES_FIT, weight)
        elif argument is not None:
            self._custom_priority(name, weight, argument, path, weights)
        elif name in PRIORITIES:
            weights.setdefault(PRIORITIES[name], weight)
            if path:
                self.made.changed(path, f"{name} became {PRIORITIES[name]}, weight {weight}")
        elif name in UNSUPPORTED_PRIORITIES:
            self.made.unsupported(path, f"{name}: {UNSUPPORTED_PRIORITIES[name]}")
        else:
            text = f"priority type not found for {quoted(name)}"
            hint = did_you_mean(name, [*PRIORITIES, *STRATEGIES])
            self.made.refuse((*path, "name"), text, hint)

    def _strategy(self, name: str, ratio: Any, path: Path) -> None:
        before = self.strategy
        if before:
            text = (
                f"priority {quoted(name)} redeclares custom priority "
                f"{quoted(REQUESTED_TO_CAPACITY_RATIO)}, from: {quoted(before)}"
                if ratio and before not in STRATEGIES
                else f"{before} and {name} score together, v1 has one strategy for each profile"
            )
            self.made.refuse(path, text, "keep one of them")
            return
        self.strategy = name
        strategy: dict[str, Any] = {"type": STRATEGIES.get(name, REQUESTED_TO_CAPACITY_RATIO)}
        if isinstance(ratio, Mapping):
            strategy["type"] = REQUESTED_TO_CAPACITY_RATIO
            strategy["requestedToCapacityRatio"] = {"shape": ratio.get("shape") or []}
            if ratio.get("resources"):
                strategy["resources"] = ratio["resources"]
        self.args[names.NODE_RESOURCES_FIT] = {"scoringStrategy": strategy}
        if path:
            text = f"{name} became {names.NODE_RESOURCES_FIT}, {strategy['type']}"
            self.made.changed(path, text)

    def _custom_priority(
        self, name: str, weight: int, argument: Any, path: Path, weights: dict[str, int]
    ) -> None:
        given = [key for key in CUSTOM_PRIORITY_ARGS if _field(argument, key)]
        if len(given) != 1:
            text = f"exactly 1 priority argument is required, numArgs: {len(given)}"
            self.made.refuse((*path, "argument"), text)
        elif given[0] == "serviceAntiAffinity":
            hint = f"nothing does its work today; {names.POD_TOPOLOGY_SPREAD} comes close"
            self.made.refuse(path, f"priority {quoted(name)}: ServiceAffinity is gone", hint)
        elif preference := self._object(_field(argument, given[0]), given[0], path):
            operator = "Exists" if preference.get("presence") else "DoesNotExist"
            expression = {"key": preference.get("label") or "", "operator": operator}
            terms = self._added().setdefault("preferredDuringSchedulingIgnoredDuringExecution", [])
            terms.append({"weight": 1, "preference": {"matchExpressions": [expression]}})
            weights[names.NODE_AFFINITY] = weights.get(names.NODE_AFFINITY, 0) + weight
            text = f"{name} became preferred addedAffinity of {names.NODE_AFFINITY}"
            self.made.changed(path, text)

    def _points(
        self, filters: list[str], scores: Mapping[str, int]
    ) -> dict[str, list[dict[str, Any]]]:
        points: dict[str, list[dict[str, Any]]] = {
            point: [{"name": name} for name in entries] for point, entries in ALWAYS.items()
        }
        for point in FILTER_POINTS:
            own = [{"name": name} for name in filters if point in self.known[name]]
            if own:
                # Claims are allocated after all other filters, as in a default profile.
                points[point] = own + points.get(point, [])
        for name, weight in scores.items():
            if "preScore" in self.known[name]:
                points.setdefault("preScore", []).append({"name": name})
            points.setdefault("score", []).append({"name": name, "weight": weight})
        return points

    def _hard_weight(self, value: Any) -> None:
        name = "hardPodAffinitySymmetricWeight"
        if not value:
            return
        if not isinstance(value, int) or not 0 <= value <= 100:
            text = f"{name}: Invalid value: {value}: not in valid range [0-100]"
            self.made.refuse((name,), text)
            return
        self.args[names.INTER_POD_AFFINITY] = {"hardPodAffinityWeight": value}
        self.made.changed((name,), f"became hardPodAffinityWeight of {names.INTER_POD_AFFINITY}")

    def _extender(self, place: int, entry: dict[str, Any]) -> dict[str, Any]:
        """A timeout was a number of nanoseconds."""
        path = ("extenders", place)
        for key in [key for key in entry if key.lower() in ("apiversion", "kind")]:
            text = "an extender has none of its own; it is ignored"
            self.made.unsupported((*path, key), text)
            del entry[key]
        extender: dict[str, Any] = _respelt(entry, Extender)
        if isinstance(extender.get("httpTimeout"), int):
            extender["httpTimeout"] = duration.render(extender["httpTimeout"])
        self.made.kept(path, str(extender.get("urlPrefix", "")))
        return extender
