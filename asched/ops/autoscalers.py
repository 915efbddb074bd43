"""What cluster-autoscaler and Karpenter have to know of a profile, in their own formats.

Both decide with rules of their own whether a pod would fit on a node. cluster-autoscaler takes the
args of kube-scheduler's filters (`--scheduler-config-file`, one profile), Karpenter the default
spread constraints (`--scheduler-config`, SCHEDULER_CONFIG). Each rule that they cannot know is a
warning.

Source  kubernetes-sigs/cluster-autoscaler pkg/utils/scheduler (ConfigFromPath) and
        pkg/simulator/framework (NewHandle), kubernetes-sigs/karpenter pkg/operator/options
"""

from collections.abc import Iterator
from typing import Any, Final

from asched import names
from asched.core.config.default_plugins import KnownPlugins, default_multi_point
from asched.core.config.gates import DEFAULT_GATES
from asched.core.config.merge import ResolvedProfile, resolve
from asched.core.config.new_nodes import RULES
from asched.core.config.text import effective
from asched.core.config.v1 import API_VERSION, KIND, SchedulerConfiguration

CLUSTER_AUTOSCALER: Final = "cluster-autoscaler"
KARPENTER: Final = "karpenter"
AUTOSCALERS: Final = (CLUSTER_AUTOSCALER, KARPENTER)
#: Points at which a plugin may keep a pod off a node.
REJECTS_AT: Final = ("preEnqueue", "preFilter", "filter", "reserve", "permit")
#: Plugins whose args change what a filter accepts.
WITH_ARGS: Final = (names.NODE_AFFINITY, names.NODE_RESOURCES_FIT, names.POD_TOPOLOGY_SPREAD)
DEFAULTS: Final = tuple(entry.name for entry in default_multi_point(DEFAULT_GATES))


def exported(
    autoscaler: str, configuration: SchedulerConfiguration, known: KnownPlugins, name: str | None
) -> tuple[dict[str, Any] | None, list[str]]:
    """The document, None if there is no such profile; and lines for standard error."""
    served = [profile.scheduler_name for profile in configuration.profiles]
    if name is not None and name not in served:
        listed = ", ".join(served)
        return None, [f'asched config: --profile "{name}" is not in the file; it has {listed}']
    index = 0 if name is None else served.index(name)
    resolved = resolve(configuration.profiles[index], known, index)
    profile: dict[str, Any] = effective(configuration)["profiles"][index]
    configs = {entry["name"]: entry["args"] for entry in profile.get("pluginConfig", ())}
    spread = configs.get(names.POD_TOPOLOGY_SPREAD, {}).get("defaultConstraints")
    notes = list(_unknown(autoscaler, configuration, resolved))
    if autoscaler == CLUSTER_AUTOSCALER:
        return _for_cluster_autoscaler(resolved, profile), notes
    for plugin, field in (
        (names.NODE_AFFINITY, "addedAffinity"),
        (names.NODE_RESOURCES_FIT, "ignoredResources"),
        (names.NODE_RESOURCES_FIT, "ignoredResourceGroups"),
    ):
        if configs.get(plugin, {}).get(field):
            notes.append(f"warning: {autoscaler} does not know {field} of {plugin}")
    run = {plugin.name for plugin in resolved.at("filter")}
    notes += [
        f"warning: {autoscaler} applies {plugin}, which the profile disables"
        for plugin in DEFAULTS
        if plugin not in run and "filter" in known[plugin]
    ]
    return {"podTopologySpread": {"defaultConstraints": spread}} if spread else {}, notes


def _for_cluster_autoscaler(resolved: ResolvedProfile, profile: dict[str, Any]) -> dict[str, Any]:
    """A KubeSchedulerConfiguration of kube-scheduler's own plugins."""
    plugins: dict[str, Any] = {}
    for point, given in profile["plugins"].items():
        kept = {
            key: [entry for entry in entries if entry["name"] in (*DEFAULTS, "*")]
            for key, entries in given.items()
        }
        plugins[point] = {key: entries for key, entries in kept.items() if entries}
    if names.PRIORITY_SORT not in {plugin.name for plugin in resolved.at("queueSort")}:
        plugins["queueSort"] = {"enabled": [{"name": names.PRIORITY_SORT}]}
    plugins["multiPoint"]["disabled"] = [{"name": "*"}]  # `enabled` has the defaults that stay
    own = {
        "schedulerName": resolved.scheduler_name,
        "plugins": {point: given for point, given in plugins.items() if given},
        "pluginConfig": [
            entry for entry in profile.get("pluginConfig", ()) if entry["name"] in WITH_ARGS
        ],
    }
    return {"apiVersion": API_VERSION, "kind": KIND, "profiles": [own]}


def _unknown(
    autoscaler: str, configuration: SchedulerConfiguration, resolved: ResolvedProfile
) -> Iterator[str]:
    if len(configuration.profiles) > 1:
        yield f"warning: {autoscaler} knows one profile; this is {resolved.scheduler_name}"
    rejecting = {plugin.name for point in REJECTS_AT for plugin in resolved.at(point)}
    for plugin in resolved.plugin_names:
        if plugin not in rejecting or plugin in DEFAULTS:
            continue
        cures = {rule.node_helps for rule in RULES if rule.plugin == plugin} or {True}
        effect = "it may find room on a node that asched rejects, and add none"
        if cures == {False}:
            effect = "it adds no node for pods that only this rule rejects"
        yield f"warning: {autoscaler} does not know {plugin}: {effect}"
    for extender in configuration.extenders:
        if extender.filter_verb:
            yield f"warning: {autoscaler} does not call the extender {extender.url_prefix}"
