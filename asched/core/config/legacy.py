"""Import of v1beta1, v1beta2 and v1beta3 files: the equivalent v1 document.

v1beta3 is v1 with another name but for three plugins of volume limits. Before it there was no
multiPoint: each point had its own default list, all scores weighed 1 (PodTopologySpread 2), and up
to v1beta1 scoring by free capacity was three plugins of its own. What a user enabled or disabled at
a point means the same at that point of v1; only weights that differ from v1 are added.

Rules   a removed plugin with an effect is replaced by its successor, or rejected by name;
        disabling a removed plugin has no effect.
Source  kubernetes/kubernetes v1.22 to v1.28 pkg/scheduler/apis/config
"""

from collections.abc import Mapping
from typing import Any, Final

from asched import names
from asched.core.config.args import (
    LEAST_ALLOCATED,
    MOST_ALLOCATED,
    REQUESTED_TO_CAPACITY_RATIO,
)
from asched.core.config.in_tree import KnownPlugins
from asched.core.config.policy import is_policy, translate_policy
from asched.core.config.problem import Path, quoted
from asched.core.config.replaced import ADVICE, SUCCESSORS
from asched.core.config.translation import Draft, Translation, named
from asched.core.config.v1 import ALL_PLUGINS, API_GROUP, API_VERSION, KIND, MULTI_POINT

#: Versions that can be imported, oldest first.
VERSIONS: Final = ("v1beta1", "v1beta2", "v1beta3")
#: Score weights before v1beta3 that differ from v1.
OLD_WEIGHTS: Final = {
    names.TAINT_TOLERATION: 1,
    names.NODE_AFFINITY: 1,
    names.INTER_POD_AFFINITY: 1,
}
_ONE_CLIENT: Final = "plugins use the scheduler's own connection"
_OWN_CLIENT: Final = {"kubeMaster": _ONE_CLIENT, "kubeConfigPath": _ONE_CLIENT}
#: Before v1beta2, scoring by capacity was a plugin for each strategy; the first was the default.
STRATEGY_PLUGINS: Final = {
    "NodeResourcesLeastAllocated": LEAST_ALLOCATED,
    "NodeResourcesMostAllocated": MOST_ALLOCATED,
    "RequestedToCapacityRatio": REQUESTED_TO_CAPACITY_RATIO,
}
#: Args of scheduler-plugins' old versions that have no equivalent.
OLD_ARGS: Final[Mapping[str, Mapping[str, str]]] = {
    names.COSCHEDULING: {
        "deniedPGExpirationTimeSeconds": "podGroupBackoffSeconds is the pause after a rejection",
        **_OWN_CLIENT,
    },
    names.CAPACITY_SCHEDULING: _OWN_CLIENT,
    "NodeResourceTopologyMatch": {
        "kubeconfigpath": _ONE_CLIENT,
        "masteroverride": _ONE_CLIENT,
        "namespaces": "topologies have no namespace any more",
    },
}
DEFAULT_STRATEGY_PLUGIN: Final = "NodeResourcesLeastAllocated"
#: Fields for addresses without TLS.
OLD_ADDRESSES: Final = ("healthzBindAddress", "metricsBindAddress")
LOCKS_WITHOUT_LEASES: Final = ("endpoints", "configmaps", "endpointsleases", "configmapsleases")


def version_of(document: Any) -> str:
    """`v1beta2` for a document of that version of our group, or an empty text."""
    if not isinstance(document, Mapping) or document.get("kind") != KIND:
        return ""
    version = str(document.get("apiVersion") or "").removeprefix(f"{API_GROUP}/")
    return version if version in VERSIONS else ""


def is_legacy(document: Any) -> bool:
    """Whether `translate` supports this version."""
    return bool(version_of(document)) or is_policy(document)


def translate(document: Mapping[str, Any], known: KnownPlugins) -> Translation:
    """The v1 document of an older version, v1 excluded."""
    if is_policy(document):
        return translate_policy(document, known)
    version = version_of(document)
    draft = Draft(f"{KIND} {version}")
    result: dict[str, Any] = {**document, "apiVersion": API_VERSION}
    draft.changed(("apiVersion",), f"{API_GROUP}/{version} became {API_VERSION}")
    _addresses(result, version, draft)
    _election(result, draft)
    profiles = []
    given = result.get("profiles")
    if isinstance(given, list):
        for index, entry in enumerate(given):
            usable = isinstance(entry, Mapping)
            profiles.append(_profile(dict(entry), index, version, draft) if usable else entry)
    elif given is None:
        profiles.append(_profile({}, 0, version, draft))
    if profiles:
        result["profiles"] = profiles
    draft.document = result
    moved = {"apiVersion", "kind", "profiles", *OLD_ADDRESSES}
    for key in document:
        if key not in moved and not any(note.path[:1] == (key,) for note in draft.notes):
            draft.kept((key,))
    return draft.finish()


def _addresses(result: dict[str, Any], version: str, draft: Draft) -> None:
    if version == VERSIONS[-1]:
        return
    for name in OLD_ADDRESSES:
        value = result.pop(name, None)
        if not value:
            continue
        port = str(value).rpartition(":")[2]
        if version == "v1beta2" and port != "0":
            wrong = "must be empty or with an explicit 0 port"
            text = f"{name}: Invalid value: {quoted(str(value))}: {wrong}"
            draft.refuse((name,), text, "serving is set with --bind-address and --secure-port")
        else:
            draft.unsupported((name,), "served over TLS only: --bind-address and --secure-port")


def _election(result: dict[str, Any], draft: Draft) -> None:
    election = result.get("leaderElection")
    if isinstance(election, Mapping) and election.get("resourceLock") in LOCKS_WITHOUT_LEASES:
        lock = election["resourceLock"]
        result["leaderElection"] = {**election, "resourceLock": "leases"}
        text = f"{lock} became leases; an old replica that runs beside this one is not seen"
        draft.changed(("leaderElection", "resourceLock"), text)


def _profile(profile: dict[str, Any], index: int, version: str, draft: Draft) -> dict[str, Any]:
    path: Path = ("profiles", index)
    plugins = profile.get("plugins")
    points = dict(plugins) if isinstance(plugins, Mapping) else {}
    if version != VERSIONS[-1]:
        for point in (MULTI_POINT, "preEnqueue"):
            if point in points:
                where = f"profiles[{index}].plugins.{point}"
                draft.refuse((*path, "plugins", point), f"unknown field {quoted(where)}")
    configs = [entry for _, entry in named(profile.get("pluginConfig"))]
    configs = _configs(configs, path, draft)
    if version == VERSIONS[0]:
        _strategies(points, configs, path, draft)
    for point, given in points.items():
        if isinstance(given, Mapping):
            points[point] = _point(dict(given), (*path, "plugins", point), draft)
    if version != VERSIONS[-1]:
        _weights(points, path, draft)
    result = dict(profile)
    if points:
        result["plugins"] = points
    if configs:
        result["pluginConfig"] = configs
    else:
        result.pop("pluginConfig", None)
    return result


def _configs(entries: list[dict[str, Any]], path: Path, draft: Draft) -> list[dict[str, Any]]:
    """Args with the current version; those of removed plugins are left out."""
    kept = []
    for place, entry in enumerate(entries):
        entry_path = (*path, "pluginConfig", place)
        name = entry.get("name")
        args = entry.get("args")
        if isinstance(args, Mapping):
            entry["args"] = _args(str(name), args, (*entry_path, "args"), draft)
        if name in ADVICE and name not in STRATEGY_PLUGINS:
            draft.unsupported(entry_path, f"args of {name}: {ADVICE[str(name)]}")
            continue
        kept.append(entry)
        if name not in STRATEGY_PLUGINS:
            draft.kept(entry_path, f"args of {name}")
    return kept


def _args(plugin: str, args: Mapping[str, Any], path: Path, draft: Draft) -> dict[str, Any]:
    kept = dict(args)
    for field, text in OLD_ARGS.get(plugin, {}).items():
        if field in kept:
            draft.unsupported((*path, field), text)
            del kept[field]
    if str(kept.get("apiVersion", "")).startswith(API_GROUP):
        kept["apiVersion"] = API_VERSION
    return kept


def _point(given: dict[str, Any], path: Path, draft: Draft) -> dict[str, Any]:
    enabled: list[dict[str, Any]] = []
    for place, entry in named(given.get("enabled")):
        entry_path = (*path, "enabled", place)
        name = str(entry.get("name"))
        if name in SUCCESSORS:
            # The successor is on by default, with constraints that imitate the old rule.
            draft.changed(entry_path, f"{name} left out: {SUCCESSORS[name]} does its work")
        elif name in ADVICE:
            draft.refuse(entry_path, f"plugin {quoted(name)} does not exist in v1", ADVICE[name])
        else:
            enabled.append(entry)
            draft.kept(entry_path, name)
    disabled: list[dict[str, Any]] = []
    for place, entry in named(given.get("disabled")):
        entry_path = (*path, "disabled", place)
        name = str(entry.get("name"))
        if name in ADVICE:
            draft.changed(entry_path, f"{name} is gone, so there is nothing to disable")
        else:
            disabled.append(entry)
            draft.kept(entry_path, name)
    lists = {"enabled": enabled, "disabled": disabled}
    # A value that is not a list is left for decoding to report.
    odd = {key: value for key, value in given.items() if not isinstance(value, list)}
    return {**{name: entries for name, entries in lists.items() if entries}, **odd}


def _names(given: Any, key: str) -> list[str]:
    entries = given.get(key) if isinstance(given, Mapping) else None
    return [str(entry.get("name")) for _, entry in named(entries)]


def _weights(points: dict[str, Any], path: Path, draft: Draft) -> None:
    """Add the old weights of defaults that weigh more in v1."""
    score = points.get("score", {})
    if not isinstance(score, Mapping):
        return
    disabled = _names(score, "disabled")
    if ALL_PLUGINS in disabled:
        return
    mentioned = {*disabled, *_names(score, "enabled")}
    old = [(name, weight) for name, weight in OLD_WEIGHTS.items() if name not in mentioned]
    if old:
        enabled = [*(score.get("enabled") or ()), *({"name": n, "weight": w} for n, w in old)]
        points["score"] = {**score, "enabled": enabled}
        listed = ", ".join(f"{name} {weight}" for name, weight in old)
        draft.changed(
            (*path, "plugins", "score"), f"default weights of then written down: {listed}"
        )


def _strategies(
    points: dict[str, Any], configs: list[dict[str, Any]], path: Path, draft: Draft
) -> None:
    """v1beta1's three score plugins to the one strategy of NodeResourcesFit."""
    score = points.get("score") or {}
    if not isinstance(score, Mapping):
        return  # reported by decoding
    entry_path = (*path, "plugins", "score")
    disabled = _names(score, "disabled")
    chosen = {
        str(entry["name"]): entry.get("weight") or 1
        for _, entry in named(score.get("enabled"))
        if entry.get("name") in STRATEGY_PLUGINS
    }
    if not {ALL_PLUGINS, DEFAULT_STRATEGY_PLUGIN} & set(disabled):
        chosen.setdefault(DEFAULT_STRATEGY_PLUGIN, 1)
    own = {str(c.get("name")): c for c in configs if c.get("name") in STRATEGY_PLUGINS}
    configs[:] = [c for c in configs if c.get("name") not in STRATEGY_PLUGINS]
    if len(chosen) > 1:
        text = (
            f"{' and '.join(sorted(chosen))} score together, v1 has one strategy for each profile"
        )
        draft.refuse(
            entry_path, text, f"disable all but one of them ({DEFAULT_STRATEGY_PLUGIN} by default)"
        )
        return
    enabled = [e for _, e in named(score.get("enabled")) if e.get("name") not in STRATEGY_PLUGINS]
    off = [e for _, e in named(score.get("disabled")) if e.get("name") not in STRATEGY_PLUGINS]
    for name, weight in chosen.items():
        if name != DEFAULT_STRATEGY_PLUGIN or weight != 1 or name in own:
            enabled.append({"name": names.NODE_RESOURCES_FIT, "weight": weight})
            _set_strategy(configs, name, own.get(name, {}).get("args") or {})
            text = f"{name} became {names.NODE_RESOURCES_FIT}, {STRATEGY_PLUGINS[name]}"
            draft.changed(entry_path, text)
        elif name in _names(score, "enabled"):
            draft.kept(entry_path, f"{name} is what {names.NODE_RESOURCES_FIT} does by default")
    if not chosen and ALL_PLUGINS not in disabled:
        off.append({"name": names.NODE_RESOURCES_FIT})
        draft.changed(
            entry_path, f"{DEFAULT_STRATEGY_PLUGIN} was off, so {names.NODE_RESOURCES_FIT} is"
        )
    lists = {"enabled": enabled, "disabled": off}
    odd = {key: value for key, value in score.items() if not isinstance(value, list)}
    points["score"] = {**{name: entries for name, entries in lists.items() if entries}, **odd}


def _set_strategy(configs: list[dict[str, Any]], plugin: str, args: Mapping[str, Any]) -> None:
    strategy: dict[str, Any] = {"type": STRATEGY_PLUGINS[plugin]}
    if args.get("resources"):
        strategy["resources"] = args["resources"]
    if args.get("shape"):
        strategy["requestedToCapacityRatio"] = {"shape": args["shape"]}
    for config in configs:
        if config.get("name") == names.NODE_RESOURCES_FIT:
            config["args"] = {**(config.get("args") or {}), "scoringStrategy": strategy}
            return
    configs.append({"name": names.NODE_RESOURCES_FIT, "args": {"scoringStrategy": strategy}})
