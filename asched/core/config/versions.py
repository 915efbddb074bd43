"""What differs between the minor versions of Kubernetes that asched follows, one rule per
difference.

Rules   code asks for a rule by name (`rules["distinct-attribute-per-device"]`) and never compares
        versions; a rule is in force from `since` on; the state of all rules is part of the
        mapping of feature gates that a configuration has, so that recordings and replays carry
        it; names of rules have hyphens and lower-case letters, which no gate has.
        Differences older than 1.36.3 are not listed: asched decides as the newer version.
Source  release notes of Kubernetes 1.37, CHANGELOG-1.38.md, and what each rule names
"""

import re
from collections.abc import Mapping
from functools import cache
from typing import Final, NamedTuple

#: Minor versions with rules of their own, oldest first.
MINORS: Final = ("1.36", "1.37", "1.38")
#: In force where no version is known: without an API server, and in recordings without rules.
BASE: Final = MINORS[0]
#: Not released yet: rules of merged pull requests.
PREVIEW: Final = frozenset({"1.38"})
#: API servers of this version and newer are supported; those before 1.36 get the rules of 1.36.
OLDEST_SERVER: Final = "1.34"

_MINOR: Final = re.compile(r"v?1\.(\d{1,3})(?:[.+-].*)?")


class VersionRule(NamedTuple):
    """One difference: what holds before `since`, what from then on, the pull request or commits of
    kubernetes/kubernetes that made it, and the test that shows it.
    """

    before: str
    after: str
    since: str
    source: str
    test: str


RULES: Final[Mapping[str, VersionRule]] = {
    "all-mode-lists-full-devices": VersionRule(
        "mode All leaves devices whose capacity is used up off its list",
        "mode All lists them, and the request fails",
        "1.37",
        "PR 140769",
        "tests/unit/core/dra/test_versions.py::test_mode_all_with_a_device_that_is_used_up",
    ),
    "budget-with-empty-selector-protects": VersionRule(
        (
            "neither a PodDisruptionBudget with an empty selector nor a pod without labels counts"
            " in preemption"
        ),
        "both do: an empty selector protects all pods of the namespace",
        "1.38",
        "PR 141785",
        "tests/unit/core/preemption/test_budgets.py::test_an_empty_selector_by_version",
    ),
    "budgets-count-each-pod-of-a-group": VersionRule(
        (
            "of a group that is evicted as a whole, pods after the first that violates a budget do"
            " not count"
        ),
        "each of its pods takes a disruption",
        "1.37",
        "PR 137981",
        "tests/unit/core/preemption/test_budgets.py::test_units_of_several_pods_by_version",
    ),
    "capacity-out-of-range-is-refused": VersionRule(
        "a negative request for capacity lowers the sum in use",
        "a request that is negative or beyond 64 bits does not fit",
        "1.37",
        "PR 140442",
        "tests/unit/core/dra/test_versions.py::test_capacity_out_of_range",
    ),
    "claim-config-once": VersionRule(
        "a claim's configuration appears once per request that it names",
        "it appears once, without names where it is for every request",
        "1.37",
        "c5a40b2, fe39ea7, a58be5a",
        "tests/unit/core/dra/test_versions.py::test_configuration_of_an_allocation",
    ),
    "claims-metric-of-all-components": VersionRule(
        "claims made for extended resources count in scheduler_resourceclaim_creates_total",
        "they count in dynamic_resource_allocation_resourceclaim_creates_total",
        "1.37",
        "PR 138542, PR 140422",
        "tests/unit/serve/telemetry/test_metrics.py::test_claims_count_under_the_name_of_the_version",
    ),
    "composite-groups-form-trees": VersionRule(
        "a PodGroup has no parent",
        (
            "PodGroups below a CompositePodGroup are scheduled as one unit, with the gate"
            " CompositePodGroup"
        ),
        "1.37",
        "PR 139407, PR 139596",
        "tests/unit/core/cycle/test_group_trees.py::test_the_gate_and_the_version_decide",
    ),
    "distinct-attribute-per-device": VersionRule(
        "distinctAttribute remembers the last device of each request",
        "distinctAttribute compares all devices",
        "1.37",
        "PR 140600",
        "tests/unit/core/dra/test_versions.py::test_distinct_attribute_of_several_devices",
    ),
    "extenders-find-the-victims": VersionRule(
        (
            "preemption fails with an error for a node on which only an extender rejects the pod,"
            " as no pod has to be evicted there"
        ),
        "extenders with a preemptVerb get the node with an empty list, and may name victims",
        "1.38",
        "PR 135486",
        "tests/unit/core/extender/test_consult.py::test_extenders_find_victims_by_version",
    ),
    "gated-pods-hold-room": VersionRule(
        "the nomination of a pod that arrives gated counts once its gates are open",
        "it counts from its arrival on",
        "1.37",
        "PR 139057",
        "tests/unit/core/plugins/test_versions.py::test_a_nominated_pod_that_arrives_gated",
    ),
    "groups-with-constraints-preempt": VersionRule(
        "no room is made for a pod group with scheduling constraints",
        "it is, in one of its placements",
        "1.37",
        "PR 140683",
        "tests/unit/core/cycle/test_group_room.py::test_a_group_with_a_constraint_by_version",
    ),
    "groups-report-their-minimum": VersionRule(
        "the condition of a gang without places says that the group is unschedulable",
        "it says that minCount cannot be satisfied, and how many pods had places by then",
        "1.37",
        "PR 138643",
        "tests/unit/core/cycle/test_group_room.py::test_messages_of_preemption_for_groups",
    ),
    "image-volumes-raise-the-limit": VersionRule(
        "ImageLocality limits the bytes of images by the number of containers",
        "image volumes count as containers do",
        "1.37",
        "PR 138951",
        "tests/unit/core/plugins/test_versions.py::test_image_volumes_count_like_containers",
    ),
    "incomplete-pools-reject-a-node": VersionRule(
        "mode All ends the attempt with an error if the node sees an incomplete or invalid pool",
        "the node is rejected",
        "1.38",
        "PR 141898",
        "tests/unit/core/dra/test_versions.py::test_mode_all_over_an_incomplete_pool",
    ),
    "metrics-count-queued-entities": VersionRule(
        "metrics of the queues count pods",
        (
            "scheduler_queued_entities and scheduler_queue_incoming_entities_total count a pod"
            " group once; pods whose PodGroup does not exist are in the queue incomplete"
        ),
        "1.37",
        "PR 139840, PR 139952",
        "tests/unit/host/test_process.py::test_queued_groups_count_once_by_the_metrics_of_1_37",
    ),
    "metrics-count-trees-once": VersionRule(
        "each PodGroup of a tree counts in scheduler_queued_entities and the count of arrivals",
        "a tree counts once there, as compositepodgroup",
        "1.38",
        "PR 141800",
        "tests/unit/host/test_process.py::test_queued_trees_by_version",
    ),
    "metrics-of-informers": VersionRule(
        "watched kinds have no metrics of kube-scheduler",
        (
            "they have informer_store_resource_version, informer_queued_items and"
            " informer_processing_latency_seconds"
        ),
        "1.37",
        "PR 140511",
        "tests/unit/host/test_process.py::test_watched_kinds_have_the_metrics_of_informers",
    ),
    "metrics-of-placements": VersionRule(
        "placements of pod groups have no metrics",
        (
            "scheduler_generated_placements_total and scheduler_placement_evaluations_total count"
            " them, scheduler_placement_evaluation_duration_seconds has the time for each"
        ),
        "1.37",
        "PR 139604",
        "tests/unit/core/cycle/test_group_placements.py::test_placements_count_by_version",
    ),
    "metrics-of-preemption-for-groups": VersionRule(
        "victims of preemption for a group count in scheduler_preemption_victims",
        (
            "they count in scheduler_workload_preemption_victims, and attempts in"
            " scheduler_workload_preemption_attempts_total; searching and evicting have durations;"
            " violated budgets and disrupted groups are counted"
        ),
        "1.37",
        "PR 139373",
        "tests/unit/serve/telemetry/test_metrics.py::test_victims_of_groups_by_version",
    ),
    "metrics-of-plugins-are-beta": VersionRule(
        (
            "scheduler_plugin_execution_duration_seconds and"
            " scheduler_scheduling_algorithm_duration_seconds are alpha"
        ),
        "they are beta",
        "1.37",
        "PR 138176",
        "tests/unit/serve/telemetry/test_metrics.py::test_stages_of_families_by_version",
    ),
    "pods-evict-whole-groups": VersionRule(
        "preemption for a single pod evicts pods of a group one by one",
        "it evicts all pods of a group whose disruptionMode says so",
        "1.37",
        "PR 137981",
        "tests/unit/core/cycle/test_group_room.py::test_pods_preempt_pods_of_whole_groups_by_version",
    ),
    "pods-of-groups-skip-post-filter": VersionRule(
        "PostFilter plugins run for each pod of a group that fits nowhere, and preemption refuses",
        "they do not run for pods of a group",
        "1.37",
        "PR 140412",
        "tests/unit/core/cycle/test_group_room.py::test_messages_of_preemption_for_groups",
    ),
    "pod-group-post-filter-is-configured": VersionRule(
        "DefaultPreemption makes room for pod groups if it is enabled at postFilter",
        "plugins make room for pod groups if they are enabled at podGroupPostFilter",
        "1.37",
        "PR 139674",
        "tests/unit/core/cycle/test_group_room.py::test_the_point_of_preemption_for_groups",
    ),
    "pools-of-other-nodes-are-ignored": VersionRule(
        "slices with shared counters are checked for every node",
        "they are checked for nodes that have devices of their pool",
        "1.37",
        "98209ff",
        "tests/unit/core/dra/test_versions.py::test_an_incomplete_pool_of_another_node",
    ),
    "preemption-for-groups-reports-itself": VersionRule(
        "messages of preemption for a group have no prefix, and success has no message",
        "they begin with pod group preemption, and success gives the number of victims",
        "1.37",
        "PR 139218, PR 140311",
        "tests/unit/core/cycle/test_group_room.py::test_messages_of_preemption_for_groups",
    ),
    "preemption-reports-success": VersionRule(
        "event and condition of a pod that preempts say why no node fits",
        "they end with the node and the number of victims",
        "1.37",
        "PR 140180",
        "tests/unit/core/plugins/test_versions.py::test_preemption_reports_the_node_and_its_victims",
    ),
    "resizes-count-their-largest-sum": VersionRule(
        "the largest of request, allocation and amount in force counts for each container",
        "they are added up over the containers of a pod, and the largest sum counts",
        "1.37",
        "PR 140047",
        "tests/unit/core/plugins/test_versions.py::test_a_resize_between_two_containers",
    ),
    "selector-errors-name-the-device": VersionRule(
        "a runtime error of a CEL selector names the selector",
        "it names the device as well, and what to do about a missing key",
        "1.37",
        "PR 136709, 1caef2e",
        "tests/unit/core/dra/test_versions.py::test_errors_of_selectors",
    ),
    "shares-bar-exclusive-use": VersionRule(
        "a device that its slice no longer shares is given out beside the shares still in use",
        "it is held until the last share has ended",
        "1.38",
        "PR 140798",
        "tests/unit/core/dra/test_versions.py::test_a_device_that_is_no_longer_shared",
    ),
    "shares-pay-counters-once": VersionRule(
        "a share without capacity pays its device's counters again",
        "the first share of a device pays for all",
        "1.37",
        "PR 140437",
        "tests/unit/core/dra/test_versions.py::test_a_second_share_without_capacity",
    ),
    "streams-leave-out-managed-fields": VersionRule(
        "lists and watches of asched get metadata.managedFields",
        "they ask the API server to leave it out, which the gate ManagedFieldsOptOut permits there",
        "1.38",
        "PR 139561",
        "tests/unit/cli/test_cluster_version.py::test_streams_without_managed_fields",
    ),
    "spread-empty-selector-counts-pods": VersionRule(
        "a spread constraint with an empty selector counts no pods",
        "it counts all pods of the namespace",
        "1.38",
        "PR 141340",
        "tests/unit/core/plugins/test_versions.py::test_an_empty_selector_of_a_spread_constraint",
    ),
}


#: Differences that asched does not switch: it decides as the newer version under each one.
SETTLED: Final[Mapping[str, VersionRule]] = {
    "anti-affinity-hint-of-any-term": VersionRule(
        "a pod that leaves wakes one that minds it if all anti-affinity terms match",
        "one matching term is enough",
        "1.37",
        "PR 139161",
        "tests/unit/core/plugins/inter_pod_affinity/test_extra_events.py::test_pods",
    ),
    "attributes-with-lists-in-selectors": VersionRule(
        "list attributes and includes() are errors without the gate DRAListTypeAttributes",
        "they are evaluated",
        "1.37",
        "PR 139395",
        "tests/unit/core/dra/test_versions.py::test_attributes_with_lists",
    ),
    "bindings-report-their-version": VersionRule(
        "the answer to a binding has no resource version",
        "it has one, and a watch of pods that delivers nothing within 5 s of it is replaced",
        "1.38",
        "PR 142327",
        "tests/unit/kube/test_watch_silence.py::test_a_stream_that_owes_a_binding_is_replaced",
    ),
    "counters-of-a-driver-s-pool": VersionRule(
        "drivers whose pools have one name share counters",
        "each driver's pool has its own",
        "1.37",
        "PR 140435",
        "tests/unit/core/dra/test_versions.py::test_pools_of_one_name_of_two_drivers",
    ),
    "one-class-stands-for-a-resource": VersionRule(
        "a changed or deleted DeviceClass may leave an extended resource with a former class",
        "the newest class of those that exist stands for it, then the first by name",
        "1.38",
        "PR 141110",
        "tests/unit/core/dra/test_extended.py"
        "::test_of_several_classes_the_newest_then_the_first_by_name_stands_for_a_resource",
    ),
    "rule-without-selector-is-about-no-device": VersionRule(
        "a DeviceTaintRule without deviceSelector taints every device",
        "it taints none",
        "1.38",
        "PR 141648",
        "tests/unit/core/dra/test_taint_rules.py::test_a_rule_without_a_selector_is_about_no_device",
    ),
}


class UnknownVersionError(ValueError):
    """A text that names no minor version of Kubernetes 1."""


class VersionChoice(NamedTuple):
    """Whose rules are in force."""

    minor: str
    #: "" if these are the server's own
    warning: str = ""
    #: of the API server at the start; "" if it was not asked, or could not be read
    server: str = ""
    #: chosen by `--emulated-version`
    is_emulated: bool = False


@cache
def rules_of(minor: str) -> Mapping[str, bool]:
    """The state of every rule under a minor version of MINORS."""
    at = MINORS.index(minor)
    return {name: MINORS.index(rule.since) <= at for name, rule in RULES.items()}


def minor_of(text: str) -> int:
    """The 36 of `v1.36.3`. Raises UnknownVersionError."""
    found = _MINOR.fullmatch(text.strip())
    if found is None:
        raise UnknownVersionError(f"{text!r} is no version such as 1.36 or v1.36.3")
    return int(found[1])


def for_server(text: str) -> VersionChoice:
    """The rules for an API server of this version. Raises UnknownVersionError."""
    number = minor_of(text)
    shown = f"1.{number}"
    if shown in PREVIEW:
        return VersionChoice(shown, f"the rules of Kubernetes {shown} are a preview")
    if shown in MINORS:
        return VersionChoice(shown)
    if number > minor_of(MINORS[-1]):
        text = f"Kubernetes {shown} is newer than this asched; it decides as {MINORS[-1]}"
        return VersionChoice(MINORS[-1], f"{text} (a preview); upgrade asched")
    if number < minor_of(OLDEST_SERVER):
        text = f"Kubernetes {shown} is older than {OLDEST_SERVER}, the oldest supported"
        return VersionChoice(BASE, f"{text}; asched decides as {BASE}")
    return VersionChoice(BASE)


def emulated(text: str) -> VersionChoice:
    """The rules for `--emulated-version`, which may only name a version with rules, or an older
    supported one. Raises UnknownVersionError.
    """
    number = minor_of(text)
    if not minor_of(OLDEST_SERVER) <= number <= minor_of(MINORS[-1]):
        raise UnknownVersionError(
            f"emulation version {text} is not between [{OLDEST_SERVER}, {MINORS[-1]}]"
        )
    return for_server(text)
