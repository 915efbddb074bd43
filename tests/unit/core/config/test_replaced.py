"""Every plugin, predicate and priority of earlier versions is mapped, or refused by its name."""

from typing import Any

import pytest

from asched.core.config.decode import decode
from asched.core.config.defaults import configuration
from asched.core.config.legacy.old_versions import translate
from asched.core.config.legacy.policy import translate_policy
from asched.core.config.legacy.replacements import ADVICE, SUCCESSORS
from asched.core.config.merge import UnusableProfileError, resolve
from asched.core.plugins import IN_TREE_POINTS

GROUP = "kubescheduler.config.k8s.io"
V1 = {"apiVersion": f"{GROUP}/v1", "kind": "KubeSchedulerConfiguration"}

#: Plugins that are gone -> what an administrator is pointed to.
PLUGINS = {
    "EBSLimits": "NodeVolumeLimits",
    "GCEPDLimits": "NodeVolumeLimits",
    "AzureDiskLimits": "NodeVolumeLimits",
    "CinderLimits": "NodeVolumeLimits",
    "SelectorSpread": "PodTopologySpread",
    "DefaultPodTopologySpread": "PodTopologySpread",
    "NodeLabel": "NodeAffinity",
    "ServiceAffinity": "InterPodAffinity",
    "NodePreferAvoidPods": "TaintToleration",
    "NodeResourcesLeastAllocated": "LeastAllocated",
    "NodeResourcesMostAllocated": "MostAllocated",
    "RequestedToCapacityRatio": "RequestedToCapacityRatio",
    "NodeResourceLimits": "NodeResourcesFit",
}
#: Predicates -> the filters that do their work today.
PREDICATES = {
    "GeneralPredicates": {"NodeResourcesFit", "NodeName", "NodePorts", "NodeAffinity"},
    "PodFitsResources": {"NodeResourcesFit"},
    "PodFitsHostPorts": {"NodePorts"},
    "PodFitsPorts": {"NodePorts"},
    "HostName": {"NodeName"},
    "MatchNodeSelector": {"NodeAffinity"},
    "PodToleratesNodeTaints": {"TaintToleration"},
    "PodToleratesNodeNoExecuteTaints": {"TaintToleration"},
    "CheckNodeUnschedulable": {"NodeUnschedulable"},
    "CheckNodeCondition": {"TaintToleration"},
    "CheckNodeMemoryPressure": {"TaintToleration"},
    "CheckNodeDiskPressure": {"TaintToleration"},
    "CheckNodePIDPressure": {"TaintToleration"},
    "NoDiskConflict": {"VolumeRestrictions"},
    "NoVolumeZoneConflict": {"VolumeZone"},
    "CheckVolumeBinding": {"VolumeBinding"},
    "NoVolumeNodeConflict": {"VolumeBinding"},
    "MaxCSIVolumeCountPred": {"NodeVolumeLimits"},
    "MaxEBSVolumeCount": {"NodeVolumeLimits"},
    "MaxGCEPDVolumeCount": {"NodeVolumeLimits"},
    "MaxAzureDiskVolumeCount": {"NodeVolumeLimits"},
    "MaxCinderVolumeCount": {"NodeVolumeLimits"},
    "MatchInterPodAffinity": {"InterPodAffinity"},
    "EvenPodsSpread": {"PodTopologySpread"},
}
#: Priorities -> the scorer that does their work today; "" for those that are dropped, with a note.
PRIORITIES = {
    "LeastRequestedPriority": "NodeResourcesFit",
    "MostRequestedPriority": "NodeResourcesFit",
    "BalancedResourceAllocation": "NodeResourcesBalancedAllocation",
    "SelectorSpreadPriority": "PodTopologySpread",
    "ServiceSpreadingPriority": "PodTopologySpread",
    "EvenPodsSpreadPriority": "PodTopologySpread",
    "InterPodAffinityPriority": "InterPodAffinity",
    "NodeAffinityPriority": "NodeAffinity",
    "TaintTolerationPriority": "TaintToleration",
    "ImageLocalityPriority": "ImageLocality",
    "NodePreferAvoidPodsPriority": "",
    "EqualPriority": "",
    "ResourceLimitsPriority": "",
}


def profile_of(document: Any) -> Any:
    checked, problems = decode(document)
    assert not problems
    return resolve(configuration(checked).profiles[0], IN_TREE_POINTS, 0)


@pytest.mark.parametrize("point", ["filter", "score", "multiPoint"])
@pytest.mark.parametrize("name", [*PLUGINS, *PREDICATES, *PRIORITIES])
def test_v1_refuses_an_old_name_and_points_to_what_replaces_it(name: str, point: str) -> None:
    enabled = {"plugins": {point: {"enabled": [{"name": name}]}}}
    with pytest.raises(UnusableProfileError) as caught:
        profile_of({**V1, "profiles": [enabled]})
    problem = caught.value.problems[0]
    assert f'"{name}" does not exist' in problem.text
    assert problem.hint == ADVICE[name]


@pytest.mark.parametrize(("name", "replacement"), PLUGINS.items())
def test_the_advice_about_an_old_plugin_names_its_replacement(name: str, replacement: str) -> None:
    assert replacement in ADVICE[name]


@pytest.mark.parametrize("name", PLUGINS)
def test_v1beta1_maps_an_old_plugin_or_refuses_it(name: str) -> None:
    enabled = {"score": {"enabled": [{"name": name}]}}
    document = {"kind": "KubeSchedulerConfiguration", "apiVersion": f"{GROUP}/v1beta1"}
    found = translate({**document, "profiles": [{"plugins": enabled}]}, IN_TREE_POINTS)
    said = [note.text for note in found.notes] + [problem.text for problem in found.problems]
    assert any(name in text or PLUGINS[name] in text for text in said)
    if name in SUCCESSORS:
        assert not found.problems


@pytest.mark.parametrize("name", PREDICATES)
def test_a_predicate_of_the_policy_becomes_filters(name: str) -> None:
    policy = {"kind": "Policy", "apiVersion": "v1", "predicates": [{"name": name}]}
    found = translate_policy({**policy, "priorities": []}, IN_TREE_POINTS)
    assert not found.problems
    enabled = {plugin.name for plugin in profile_of(found.document).at("filter")}
    assert enabled >= PREDICATES[name]


@pytest.mark.parametrize("name", PRIORITIES)
def test_a_priority_of_the_policy_becomes_a_scorer_or_is_dropped_with_a_note(name: str) -> None:
    priorities = [{"name": name, "weight": 3}]
    found = translate_policy(
        {"kind": "Policy", "apiVersion": "v1", "priorities": priorities}, IN_TREE_POINTS
    )
    assert not found.problems
    scorers = {plugin.name: plugin.weight for plugin in profile_of(found.document).at("score")}
    if PRIORITIES[name]:
        assert scorers == {PRIORITIES[name]: 3}
    else:
        assert not scorers
        assert any(name in note.text for note in found.notes)


@pytest.mark.parametrize("name", ["CheckServiceAffinity", "CheckNodeLabelPresence"])
def test_a_predicate_that_needs_an_argument_is_refused_without_one(name: str) -> None:
    policy = {"kind": "Policy", "apiVersion": "v1", "predicates": [{"name": name}]}
    assert translate_policy(policy, IN_TREE_POINTS).problems
