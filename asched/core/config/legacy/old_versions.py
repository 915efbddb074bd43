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
from asched.core.config.args import LEAST_ALLOCATED, MOST_ALLOCATED, REQUESTED_TO_CAPACITY_RATIO
from asched.core.config.default_plugins import KnownPlugins
from asched.core.config.legacy.policy import is_policy, translate_policy
from asched.core.config.legacy.replacements import ADVICE, SUCCESSORS
from asched.core.config.legacy.translation import Translation, named
from asched.core.config.problem import Path, quoted
from asched.core.config.v1 import ALL_PLUGINS, API_GROUP, API_VERSION, KIND, MULTI_POINT

#: Versions that can be imported, oldest first.
VERSIONS: Final = ("v1beta1", "v1beta2", "v1beta3")
#: Versions without multiPoint, and the points that they do not have.
WITHOUT_MULTI_POINT: Final = dict.fromkeys(VERSIONS[:2], (MULTI_POINT, "preEnqueue"))
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
    made = Translation(f"{KIND} {version}", {**document, "apiVersion": API_VERSION})
    made.changed(("apiVersion",), f"{API_GROUP}/{version} became {API_VERSION}")
    if version in WITHOUT_MULTI_POINT:
        _addresses(version, made)
    _election(made)
    given = document.get("profiles")
    profiles = [{}] if given is None else given
    if isinstance(profiles, list) and profiles:
        made.document["profiles"] = [
            _OldProfile(entry, index, version, made).translated()
            if isinstance(entry, Mapping)
            else entry
            for index, entry in enumerate(profiles)
        ]
    moved = {"apiVersion", "kind", "profiles", *OLD_ADDRESSES}
    for key in document:
        if key not in moved and not any(note.path[:1] == (key,) for note in made.notes):
            made.kept((key,))
    return made


def _addresses(version: str, made: Translation) -> None:
    for name in OLD_ADDRESSES:
        value = made.document.pop(name, None)
        if not value:
            continue
        port = str(value).rpartition(":")[2]
        if version == "v1beta2" and port != "0":
            wrong = "must be empty or with an explicit 0 port"
            text = f"{name}: Invalid value: {quoted(str(value))}: {wrong}"
            made.refuse((name,), text, "serving is set with --bind-address and --secure-port")
        else:
            made.unsupported((name,), "served over TLS only: --bind-address and --secure-port")


def _election(made: Translation) -> None:
    election = made.document.get("leaderElection")
    if not isinstance(election, Mapping):
        return
    lock = str(election.get("resourceLock"))
    if lock in LOCKS_WITHOUT_LEASES:
        made.document["leaderElection"] = {**election, "resourceLock": "leases"}
        text = f"{lock} became leases; an old replica that runs beside this one is not seen"
        made.changed(("leaderElection", "resourceLock"), text)


def _listed(given: Any, key: str) -> list[dict[str, Any]]:
    return [entry for _, entry in named(given.get(key) if isinstance(given, Mapping) else None)]


def _names(given: Any, key: str) -> list[str]:
    return [str(entry.get("name")) for entry in _listed(given, key)]


def _point_of(given: Mapping[str, Any], **lists: list[dict[str, Any]]) -> dict[str, Any]:
    """A point with these lists; a value that is not a list is left for decoding to report."""
    odd = {key: value for key, value in given.items() if not isinstance(value, list)}
    return {**{name: entries for name, entries in lists.items() if entries}, **odd}


class _OldProfile:
    """One profile; its notes and problems go to the translation of the document."""

    def __init__(
        self, profile: Mapping[str, Any], index: int, version: str, made: Translation
    ) -> None:
        plugins = profile.get("plugins")
        self.profile = profile
        self.points = dict(plugins) if isinstance(plugins, Mapping) else {}
        self.version = version
        self.made = made
        self.path: Path = ("profiles", index)

    def translated(self) -> dict[str, Any]:
        for point in WITHOUT_MULTI_POINT.get(self.version, ()):
            if point in self.points:
                where = f"profiles[{self.path[1]}].plugins.{point}"
                self.made.refuse((*self.path, "plugins", point), f"unknown field {quoted(where)}")
        configs = self._configs()
        if self.version == VERSIONS[0]:
            self._strategies(configs)
        for point, given in self.points.items():
            if isinstance(given, Mapping):
                self.points[point] = self._point(given, (*self.path, "plugins", point))
        if self.version in WITHOUT_MULTI_POINT:
            self._weights()
        made = {"plugins": self.points, "pluginConfig": configs}
        rest = {key: value for key, value in self.profile.items() if key != "pluginConfig"}
        return {**rest, **{key: value for key, value in made.items() if value}}

    def _configs(self) -> list[dict[str, Any]]:
        """Args with the current version; those of removed plugins are left out."""
        kept = []
        for place, entry in named(self.profile.get("pluginConfig")):
            path, name = (*self.path, "pluginConfig", place), str(entry.get("name"))
            if isinstance(entry.get("args"), Mapping):
                entry["args"] = self._args(name, entry["args"], (*path, "args"))
            if name in STRATEGY_PLUGINS:
                kept.append(entry)
            elif name in ADVICE:
                self.made.unsupported(path, f"args of {name}: {ADVICE[name]}")
            else:
                kept.append(entry)
                self.made.kept(path, f"args of {entry.get('name')}")
        return kept

    def _args(self, plugin: str, args: Mapping[str, Any], path: Path) -> dict[str, Any]:
        old = OLD_ARGS.get(plugin, {})
        for field in filter(args.__contains__, old):
            self.made.unsupported((*path, field), old[field])
        kept = {field: value for field, value in args.items() if field not in old}
        if str(kept.get("apiVersion", "")).startswith(API_GROUP):
            kept["apiVersion"] = API_VERSION
        return kept

    def _point(self, given: Mapping[str, Any], path: Path) -> dict[str, Any]:
        lists: dict[str, list[dict[str, Any]]] = {"enabled": [], "disabled": []}
        for key, kept in lists.items():
            for place, entry in named(given.get(key)):
                name, entry_path = str(entry.get("name")), (*path, key, place)
                if name not in ADVICE:
                    kept.append(entry)
                    self.made.kept(entry_path, name)
                elif key == "disabled":
                    text = f"{name} is gone, so there is nothing to disable"
                    self.made.changed(entry_path, text)
                elif name in SUCCESSORS:
                    # The successor is on by default, with constraints that imitate the old rule.
                    text = f"{name} left out: {SUCCESSORS[name]} does its work"
                    self.made.changed(entry_path, text)
                else:
                    text = f"plugin {quoted(name)} does not exist in v1"
                    self.made.refuse(entry_path, text, ADVICE[name])
        return _point_of(given, **lists)

    def _weights(self) -> None:
        """Add the old weights of defaults that weigh more in v1."""
        score = self.points.get("score", {})
        disabled = _names(score, "disabled")
        if not isinstance(score, Mapping) or ALL_PLUGINS in disabled:
            return
        mentioned = {*disabled, *_names(score, "enabled")}
        old = [(name, weight) for name, weight in OLD_WEIGHTS.items() if name not in mentioned]
        if old:
            enabled = [*(score.get("enabled") or ()), *({"name": n, "weight": w} for n, w in old)]
            self.points["score"] = {**score, "enabled": enabled}
            listed = ", ".join(f"{name} {weight}" for name, weight in old)
            self.made.changed(
                (*self.path, "plugins", "score"), f"default weights of then written down: {listed}"
            )

    def _strategies(self, configs: list[dict[str, Any]]) -> None:
        """v1beta1's three score plugins to the one strategy of NodeResourcesFit."""
        score = self.points.get("score") or {}
        if not isinstance(score, Mapping):
            return  # reported by decoding
        path = (*self.path, "plugins", "score")
        disabled = _names(score, "disabled")
        chosen = {
            str(entry["name"]): entry.get("weight") or 1
            for entry in _listed(score, "enabled")
            if str(entry.get("name")) in STRATEGY_PLUGINS
        }
        if not {ALL_PLUGINS, DEFAULT_STRATEGY_PLUGIN} & set(disabled):
            chosen.setdefault(DEFAULT_STRATEGY_PLUGIN, 1)
        own = {str(c["name"]): c for c in configs if str(c.get("name")) in STRATEGY_PLUGINS}
        configs[:] = [c for c in configs if str(c.get("name")) not in STRATEGY_PLUGINS]
        if len(chosen) > 1:
            together = " and ".join(sorted(chosen))
            self.made.refuse(
                path,
                f"{together} score together, v1 has one strategy for each profile",
                f"disable all but one of them ({DEFAULT_STRATEGY_PLUGIN} by default)",
            )
            return
        enabled, off = (
            [e for e in _listed(score, key) if str(e.get("name")) not in STRATEGY_PLUGINS]
            for key in ("enabled", "disabled")
        )
        for name, weight in chosen.items():
            if name != DEFAULT_STRATEGY_PLUGIN or weight != 1 or name in own:
                enabled.append({"name": names.NODE_RESOURCES_FIT, "weight": weight})
                _set_strategy(configs, name, own.get(name, {}).get("args") or {})
                text = f"{name} became {names.NODE_RESOURCES_FIT}, {STRATEGY_PLUGINS[name]}"
                self.made.changed(path, text)
            elif name in _names(score, "enabled"):
                text = f"{name} is what {names.NODE_RESOURCES_FIT} does by default"
                self.made.kept(path, text)
        if not chosen and ALL_PLUGINS not in disabled:
            off.append({"name": names.NODE_RESOURCES_FIT})
            text = f"{DEFAULT_STRATEGY_PLUGIN} was off, so {names.NODE_RESOURCES_FIT} is"
            self.made.changed(path, text)
        self.points["score"] = _point_of(score, enabled=enabled, disabled=off)


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
