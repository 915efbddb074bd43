"""Resolve what a profile enables and disables to the plugins that run at each point, in order.

Two steps, as upstream. `merge_defaults` merges the user's lists into the default multiPoint list: a
default that the user lists again keeps its place and takes the user's entry, the rest is appended.
`resolve` then expands multiPoint: at one point come first the plugins listed both there and in
multiPoint (in the point's order), then the others of multiPoint, then those listed at the
point only.

Rules   a plugin of multiPoint is skipped at points it does not implement, a plugin listed at a
        point must implement it; weight 0 counts as 1; listing a plugin again without a weight
        drops its default weight; plugins are data here (`KnownPlugins`), also those of users.
Source  kubernetes/kubernetes v1.36 pkg/scheduler/framework/runtime/framework.go, apis/config/v1
"""

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from asched import names
from asched.core.config.default_plugins import WHOLE, KnownPlugins, default_multi_point
from asched.core.config.foreign import FOREIGN_PLUGINS
from asched.core.config.legacy.replacements import ADVICE
from asched.core.config.problem import Path, Problem, did_you_mean, quoted
from asched.core.config.v1 import (
    ALL_PLUGINS,
    LATER_POINTS,
    MULTI_POINT,
    PLACEMENT_GENERATE,
    PLACEMENT_SCORE,
    POINTS,
    KubeSchedulerProfile,
    PluginEntry,
    PluginSet,
)
from asched.core.model.quantity import INT64_MAX, wrapped

#: The order in which upstream visits the points; it decides which fault is reported first.
EXPANSION_ORDER: Final = (
    "preFilter",
    "filter",
    "postFilter",
    "reserve",
    "preScore",
    "score",
    "preBind",
    "bind",
    "postBind",
    "permit",
    "preEnqueue",
    "queueSort",
    PLACEMENT_GENERATE,
    PLACEMENT_SCORE,
    *LATER_POINTS,
)
LATER: Final = tuple(LATER_POINTS)
#: Wrong letters of a misspelt plugin. Names share long words: with more they belong to plugins of
#: another purpose, such as DefaultPreBind and DefaultBinder.
LETTERS_MAX: Final = 3
NO_SUCH_PLUGIN: Final = "asched does not have it; `asched plugins list` names those it has"
#: Points whose plugins carry a weight.
WEIGHTED: Final = ("score", PLACEMENT_SCORE)
MAX_NODE_SCORE: Final = 100


class WeightedPlugin(msgspec.Struct, frozen=True):
    """A plugin at one point; `weight` is 0 where the point has no weights."""

    name: str
    weight: int = 0


class ResolvedProfile(msgspec.Struct, frozen=True):
    """A profile whose points are final: `points[p]` is the list of plugins at p, in order."""

    profile: KubeSchedulerProfile
    points: Mapping[str, tuple[WeightedPlugin, ...]] = msgspec.field(default_factory=dict)

    @property
    def scheduler_name(self) -> str:
        return self.profile.scheduler_name

    def at(self, point: str) -> tuple[WeightedPlugin, ...]:
        return self.points.get(point, ())

    @property
    def plugin_names(self) -> tuple[str, ...]:
        """Every plugin that runs at any point, without duplicates, in order of first use."""
        return tuple(dict.fromkeys(p.name for at in POINTS + LATER for p in self.at(at)))


class UnusableProfileError(Exception):
    """A profile that cannot be built; `problems` has every error."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        super().__init__(problems[0].text)
        self.problems = tuple(problems)


def merge_defaults(
    given: Mapping[str, PluginSet], gates: Mapping[str, bool]
) -> dict[str, PluginSet]:
    """The user's sets merged with the default multiPoint list; only multiPoint has defaults."""
    merged = {point: _without_weights(given.get(point, PluginSet())) for point in EXPANSION_ORDER}
    multi_point = given.get(MULTI_POINT, PluginSet())
    disabled = {plugin.name for plugin in multi_point.disabled}
    position = {plugin.name: index for index, plugin in enumerate(multi_point.enabled)}
    replaced: set[int] = set()
    enabled: list[PluginEntry] = []
    if ALL_PLUGINS not in disabled:
        for default in default_multi_point(gates):
            if default.name in disabled:
                continue
            again = position.get(default.name)
            if again is None:
                enabled.append(default)
            else:
                enabled.append(multi_point.enabled[again])
                replaced.add(again)
    enabled += [p for index, p in enumerate(multi_point.enabled) if index not in replaced]
    merged[MULTI_POINT] = _without_weights(PluginSet(tuple(enabled), multi_point.disabled))
    return merged


def _without_weights(plugins: PluginSet) -> PluginSet:
    """Weights in a disable list are ignored."""
    return PluginSet(
        plugins.enabled, tuple(PluginEntry(plugin.name) for plugin in plugins.disabled)
    )


def needed_plugins(profile: KubeSchedulerProfile) -> tuple[str, ...]:
    """Every plugin that a list enables, sorted; only these are built, and only their args
    matter.
    """
    enabled = {
        plugin.name
        for point in (*EXPANSION_ORDER, MULTI_POINT)
        for plugin in profile.plugin_set(point).enabled
    }
    return tuple(sorted(enabled))


def resolve(profile: KubeSchedulerProfile, known: KnownPlugins, index: int = 0) -> ResolvedProfile:
    """Expand a profile's lists; raises UnusableProfileError. `index` is its position in the
    file.
    """
    where: Path = ("profiles", index, "plugins")
    faults: list[Problem] = []
    for point in EXPANSION_ORDER:
        faults += _check_point(profile, known, point, (*where, point, "enabled"))
    points: dict[str, tuple[str, ...]] = {}
    for point in EXPANSION_ORDER:
        points[point], more = _expand(profile, known, point, (*where, MULTI_POINT, "enabled"))
        faults += more
    # A wrong entry of multiPoint affects many points; the first that upstream visits reports it.
    faults = list({fault.path: fault for fault in reversed(faults)}.values())[::-1]
    if not faults:
        faults = _check_whole(profile, points, where)
    resolved: dict[str, tuple[WeightedPlugin, ...]] = {}
    weights: dict[str, dict[str, int]] = {}
    for point in WEIGHTED:
        weights[point], fault = _weights(profile, known, point, where)
        if fault and not faults:
            faults.append(fault)
    if faults:
        raise UnusableProfileError(faults)
    _run_whole(points)
    for point in EXPANSION_ORDER:
        own = weights.get(point, {})
        resolved[point] = tuple(WeightedPlugin(name, own.get(name, 0)) for name in points[point])
    return ResolvedProfile(profile, resolved)


def with_pools(resolved: ResolvedProfile) -> ResolvedProfile:
    """The profile with the plugin that places pods on nodes of their pools, before all others."""
    first = (WeightedPlugin(names.NODE_POOLS),)
    at = "preEnqueue", "preFilter", "filter"
    points = {point: (*first, *resolved.at(point)) for point in at}
    return ResolvedProfile(resolved.profile, {**resolved.points, **points})


def _run_whole(points: dict[str, tuple[str, ...]]) -> None:
    """Plugins that run at certain points or not at all (`WHOLE`)."""
    for name, whole in WHOLE.items():
        if not any(name in at for at in points.values()):
            continue
        for point in points.keys() - {"queueSort"}:
            rest = tuple(plugin for plugin in points[point] if plugin != name)
            if point not in whole:
                points[point] = rest
            elif name not in points[point]:
                points[point] = (*rest, name)


def _unknown(name: str, known: KnownPlugins, path: Path) -> Problem:
    hint = ADVICE.get(name) or FOREIGN_PLUGINS.get(name) or did_you_mean(name, known, LETTERS_MAX)
    return Problem(f"plugin {quoted(name)} does not exist", path, hint or NO_SUCH_PLUGIN)


def _check_point(
    profile: KubeSchedulerProfile, known: KnownPlugins, point: str, where: Path
) -> list[Problem]:
    faults = []
    seen: set[str] = set()
    for place, plugin in enumerate(profile.plugin_set(point).enabled):
        path = (*where, place, "name")
        if plugin.name not in known:
            faults.append(_unknown(plugin.name, known, path))
            continue
        if point not in known[plugin.name]:
            text = f"plugin {quoted(plugin.name)} has no extension point {point}"
        elif plugin.name in seen:
            text = f"plugin {quoted(plugin.name)} is enabled twice"
        else:
            seen.add(plugin.name)
            continue
        faults.append(Problem(text, path))
    return faults


def _expand(
    profile: KubeSchedulerProfile, known: KnownPlugins, point: str, where: Path
) -> tuple[tuple[str, ...], list[Problem]]:
    own_set = profile.plugin_set(point)
    named = list(dict.fromkeys(plugin.name for plugin in own_set.enabled))
    disabled = {plugin.name for plugin in own_set.disabled}
    if ALL_PLUGINS in disabled:
        return tuple(named), []
    faults: list[Problem] = []
    overrides: set[str] = set()
    from_multi_point: list[str] = []
    for plugin in profile.plugin_set(MULTI_POINT).enabled:
        path = (*where, plugin.name, "name")
        if plugin.name not in known:
            faults.append(_unknown(plugin.name, known, path))
        elif point not in known[plugin.name] or plugin.name in disabled:
            continue
        elif plugin.name in named:
            overrides.add(plugin.name)
        elif plugin.name in from_multi_point:
            text = f"plugin {quoted(plugin.name)} is enabled twice"
            faults.append(Problem(text, path))
        else:
            from_multi_point.append(plugin.name)
    first = [name for name in named if name in overrides]
    last = [name for name in named if name not in overrides]
    return (*first, *from_multi_point, *last), faults


def _check_whole(
    profile: KubeSchedulerProfile, points: Mapping[str, Sequence[str]], where: Path
) -> list[Problem]:
    name = quoted(profile.scheduler_name)
    sorters = len(points["queueSort"])
    if sorters != 1:
        text = f"profile {name} needs exactly one plugin at queueSort, it has {sorters}"
        return [Problem(text, (*where, "queueSort"))]
    if not points["bind"]:
        text = f"profile {name} needs a plugin at bind"
        return [Problem(text, (*where, "bind"))]
    if len(points[PLACEMENT_GENERATE]) > 1:
        text = f"profile {name} may have one plugin at {PLACEMENT_GENERATE} only"
        return [Problem(text, (*where, PLACEMENT_GENERATE))]
    return []


def _weights(
    profile: KubeSchedulerProfile, known: KnownPlugins, point: str, where: Path
) -> tuple[dict[str, int], Problem | None]:
    """Weight by plugin; the point's own entry wins over multiPoint's, 0 counts as 1.

    The sum is a wrapping 64-bit integer, because upstream's check for overflow relies on it: it
    rejects a negative first weight.
    """
    entries = (*profile.plugin_set(point).enabled, *profile.plugin_set(MULTI_POINT).enabled)
    weights: dict[str, int] = {}
    total = 0
    for plugin in entries:
        if point not in known.get(plugin.name, ()) or plugin.name in weights:
            continue
        weight = plugin.weight or 1
        weights[plugin.name] = weight
        if weight * MAX_NODE_SCORE > wrapped(INT64_MAX - total):
            text = f"the weights at {point} are so large that a total score could overflow"
            return weights, Problem(text, (*where, point))
        total += weight * MAX_NODE_SCORE
    return weights, None
