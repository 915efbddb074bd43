"""The generated pages, by path from docs/; each function takes the root of the clone."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Final, NamedTuple

from asched.core.config.gates import HONOURED, table_of
from asched.core.config.versions import BASE, MINORS, RULES
from asched_lab.pages.chart import chart_page
from asched_lab.pages.configuration import configuration_page
from asched_lab.pages.metrics import code, metrics_page, page, table


class VersionTexts(NamedTuple):
    """One difference: what holds before a version, what from it on, the pull request or commits of
    kubernetes/kubernetes that made it, and the test that shows it; `since` of those not switched.
    """

    before: str
    after: str
    source: str
    test: str
    since: str = ""


TEXTS: Final[Mapping[str, VersionTexts]] = {
    "all-mode-lists-full-devices": VersionTexts(
        "mode All leaves devices whose capacity is used up off its list",
        "mode All lists them, and the request fails",
        "PR 140769",
        "tests/unit/core/dra/test_versions.py::test_mode_all_with_a_device_that_is_used_up",
    ),
    "budget-with-empty-selector-protects": VersionTexts(
        (
            "neither a PodDisruptionBudget with an empty selector nor a pod without labels counts"
            " in preemption"
        ),
        "both do: an empty selector protects all pods of the namespace",
        "PR 141785",
        "tests/unit/core/preemption/test_budgets.py::test_an_empty_selector_by_version",
    ),
    "budgets-count-each-pod-of-a-group": VersionTexts(
        (
            "of a group that is evicted as a whole, pods after the first that violates a budget do"
            " not count"
        ),
        "each of its pods takes a disruption",
        "PR 137981",
        "tests/unit/core/preemption/test_budgets.py::test_units_of_several_pods_by_version",
    ),
    "capacity-out-of-range-is-refused": VersionTexts(
        "a negative request for capacity lowers the sum in use",
        "a request that is negative or beyond 64 bits does not fit",
        "PR 140442",
        "tests/unit/core/dra/test_versions.py::test_capacity_out_of_range",
    ),
    "claim-config-once": VersionTexts(
        "a claim's configuration appears once per request that it names",
        "it appears once, without names where it is for every request",
        "c5a40b2, fe39ea7, a58be5a",
        "tests/unit/core/dra/test_versions.py::test_configuration_of_an_allocation",
    ),
    "claims-metric-of-all-components": VersionTexts(
        "claims made for extended resources count in scheduler_resourceclaim_creates_total",
        "they count in dynamic_resource_allocation_resourceclaim_creates_total",
        "PR 138542, PR 140422",
        "tests/unit/serve/telemetry/test_metrics.py::test_claims_count_under_the_name_of_the_version",
    ),
    "composite-groups-form-trees": VersionTexts(
        "a PodGroup has no parent",
        (
            "PodGroups below a CompositePodGroup are scheduled as one unit, with the gate"
            " CompositePodGroup"
        ),
        "PR 139407, PR 139596",
        "tests/unit/core/cycle/test_group_trees.py::test_the_gate_and_the_version_decide",
    ),
    "distinct-attribute-per-device": VersionTexts(
        "distinctAttribute remembers the last device of each request",
        "distinctAttribute compares all devices",
        "PR 140600",
        "tests/unit/core/dra/test_versions.py::test_distinct_attribute_of_several_devices",
    ),
    "extenders-find-the-victims": VersionTexts(
        (
            "preemption fails with an error for a node on which only an extender rejects the pod,"
            " as no pod has to be evicted there"
        ),
        "extenders with a preemptVerb get the node with an empty list, and may name victims",
        "PR 135486",
        "tests/unit/core/extender/test_consult.py::test_extenders_find_victims_by_version",
    ),
    "gated-pods-hold-room": VersionTexts(
        "the nomination of a pod that arrives gated counts once its gates are open",
        "it counts from its arrival on",
        "PR 139057",
        "tests/unit/core/plugins/test_versions.py::test_a_nominated_pod_that_arrives_gated",
    ),
    "groups-with-constraints-preempt": VersionTexts(
        "no room is made for a pod group with scheduling constraints",
        "it is, in one of its placements",
        "PR 140683",
        "tests/unit/core/cycle/test_group_room.py::test_a_group_with_a_constraint_by_version",
    ),
    "groups-report-their-minimum": VersionTexts(
        "the condition of a gang without places says that the group is unschedulable",
        "it says that minCount cannot be satisfied, and how many pods had places by then",
        "PR 138643",
        "tests/unit/core/cycle/test_group_room.py::test_messages_of_preemption_for_groups",
    ),
    "image-volumes-raise-the-limit": VersionTexts(
        "ImageLocality limits the bytes of images by the number of containers",
        "image volumes count as containers do",
        "PR 138951",
        "tests/unit/core/plugins/test_versions.py::test_image_volumes_count_like_containers",
    ),
    "incomplete-pools-reject-a-node": VersionTexts(
        "mode All ends the attempt with an error if the node sees an incomplete or invalid pool",
        "the node is rejected",
        "PR 141898",
        "tests/unit/core/dra/test_versions.py::test_mode_all_over_an_incomplete_pool",
    ),
    "metrics-count-queued-entities": VersionTexts(
        "metrics of the queues count pods",
        (
            "scheduler_queued_entities and scheduler_queue_incoming_entities_total count a pod"
            " group once; pods whose PodGroup does not exist are in the queue incomplete"
        ),
        "PR 139840, PR 139952",
        "tests/unit/host/test_process.py::test_queued_groups_count_once_by_the_metrics_of_1_37",
    ),
    "metrics-count-trees-once": VersionTexts(
        "each PodGroup of a tree counts in scheduler_queued_entities and the count of arrivals",
        "a tree counts once there, as compositepodgroup",
        "PR 141800",
        "tests/unit/host/test_process.py::test_queued_trees_by_version",
    ),
    "metrics-of-informers": VersionTexts(
        "watched kinds have no metrics of kube-scheduler",
        (
            "they have informer_store_resource_version, informer_queued_items and"
            " informer_processing_latency_seconds"
        ),
        "PR 140511",
        "tests/unit/host/test_process.py::test_watched_kinds_have_the_metrics_of_informers",
    ),
    "metrics-of-placements": VersionTexts(
        "placements of pod groups have no metrics",
        (
            "scheduler_generated_placements_total and scheduler_placement_evaluations_total count"
            " them, scheduler_placement_evaluation_duration_seconds has the time for each"
        ),
        "PR 139604",
        "tests/unit/core/cycle/test_group_placements.py::test_placements_count_by_version",
    ),
    "metrics-of-preemption-for-groups": VersionTexts(
        "victims of preemption for a group count in scheduler_preemption_victims",
        (
            "they count in scheduler_workload_preemption_victims, and attempts in"
            " scheduler_workload_preemption_attempts_total; searching and evicting have durations;"
            " violated budgets and disrupted groups are counted"
        ),
        "PR 139373",
        "tests/unit/serve/telemetry/test_metrics.py::test_victims_of_groups_by_version",
    ),
    "metrics-of-plugins-are-beta": VersionTexts(
        (
            "scheduler_plugin_execution_duration_seconds and"
            " scheduler_scheduling_algorithm_duration_seconds are alpha"
        ),
        "they are beta",
        "PR 138176",
        "tests/unit/serve/telemetry/test_metrics.py::test_stages_of_families_by_version",
    ),
    "pods-evict-whole-groups": VersionTexts(
        "preemption for a single pod evicts pods of a group one by one",
        "it evicts all pods of a group whose disruptionMode says so",
        "PR 137981",
        "tests/unit/core/cycle/test_group_room.py::test_pods_preempt_pods_of_whole_groups_by_version",
    ),
    "pods-of-groups-skip-post-filter": VersionTexts(
        "PostFilter plugins run for each pod of a group that fits nowhere, and preemption refuses",
        "they do not run for pods of a group",
        "PR 140412",
        "tests/unit/core/cycle/test_group_room.py::test_messages_of_preemption_for_groups",
    ),
    "pod-group-post-filter-is-configured": VersionTexts(
        "DefaultPreemption makes room for pod groups if it is enabled at postFilter",
        "plugins make room for pod groups if they are enabled at podGroupPostFilter",
        "PR 139674",
        "tests/unit/core/cycle/test_group_room.py::test_the_point_of_preemption_for_groups",
    ),
    "pools-of-other-nodes-are-ignored": VersionTexts(
        "slices with shared counters are checked for every node",
        "they are checked for nodes that have devices of their pool",
        "98209ff",
        "tests/unit/core/dra/test_versions.py::test_an_incomplete_pool_of_another_node",
    ),
    "preemption-for-groups-reports-itself": VersionTexts(
        "messages of preemption for a group have no prefix, and success has no message",
        "they begin with pod group preemption, and success gives the number of victims",
        "PR 139218, PR 140311",
        "tests/unit/core/cycle/test_group_room.py::test_messages_of_preemption_for_groups",
    ),
    "preemption-reports-success": VersionTexts(
        "event and condition of a pod that preempts say why no node fits",
        "they end with the node and the number of victims",
        "PR 140180",
        "tests/unit/core/plugins/test_versions.py::test_preemption_reports_the_node_and_its_victims",
    ),
    "resizes-count-their-largest-sum": VersionTexts(
        "the largest of request, allocation and amount in force counts for each container",
        "they are added up over the containers of a pod, and the largest sum counts",
        "PR 140047",
        "tests/unit/core/plugins/test_versions.py::test_a_resize_between_two_containers",
    ),
    "selector-errors-name-the-device": VersionTexts(
        "a runtime error of a CEL selector names the selector",
        "it names the device as well, and what to do about a missing key",
        "PR 136709, 1caef2e",
        "tests/unit/core/dra/test_versions.py::test_errors_of_selectors",
    ),
    "shares-bar-exclusive-use": VersionTexts(
        "a device that its slice no longer shares is given out beside the shares still in use",
        "it is held until the last share has ended",
        "PR 140798",
        "tests/unit/core/dra/test_versions.py::test_a_device_that_is_no_longer_shared",
    ),
    "shares-pay-counters-once": VersionTexts(
        "a share without capacity pays its device's counters again",
        "the first share of a device pays for all",
        "PR 140437",
        "tests/unit/core/dra/test_versions.py::test_a_second_share_without_capacity",
    ),
    "streams-leave-out-managed-fields": VersionTexts(
        "lists and watches of asched get metadata.managedFields",
        "they ask the API server to leave it out, which the gate ManagedFieldsOptOut permits there",
        "PR 139561",
        "tests/unit/cli/test_cluster_version.py::test_streams_without_managed_fields",
    ),
    "spread-empty-selector-counts-pods": VersionTexts(
        "a spread constraint with an empty selector counts no pods",
        "it counts all pods of the namespace",
        "PR 141340",
        "tests/unit/core/plugins/test_versions.py::test_an_empty_selector_of_a_spread_constraint",
    ),
}


#: Differences that asched does not switch: it decides as the newer version under each one.
SETTLED: Final[Mapping[str, VersionTexts]] = {
    "anti-affinity-hint-of-any-term": VersionTexts(
        "a pod that leaves wakes one that minds it if all anti-affinity terms match",
        "one matching term is enough",
        "PR 139161",
        "tests/unit/core/plugins/inter_pod_affinity/test_extra_events.py::test_pods",
        "1.37",
    ),
    "attributes-with-lists-in-selectors": VersionTexts(
        "list attributes and includes() are errors without the gate DRAListTypeAttributes",
        "they are evaluated",
        "PR 139395",
        "tests/unit/core/dra/test_versions.py::test_attributes_with_lists",
        "1.37",
    ),
    "bindings-report-their-version": VersionTexts(
        "the answer to a binding has no resource version",
        "it has one, and a watch of pods that delivers nothing within 5 s of it is replaced",
        "PR 142327",
        "tests/unit/kube/test_watch_silence.py::test_a_stream_that_owes_a_binding_is_replaced",
        "1.38",
    ),
    "counters-of-a-driver-s-pool": VersionTexts(
        "drivers whose pools have one name share counters",
        "each driver's pool has its own",
        "PR 140435",
        "tests/unit/core/dra/test_versions.py::test_pools_of_one_name_of_two_drivers",
        "1.37",
    ),
    "one-class-stands-for-a-resource": VersionTexts(
        "a changed or deleted DeviceClass may leave an extended resource with a former class",
        "the newest class of those that exist stands for it, then the first by name",
        "PR 141110",
        "tests/unit/core/dra/test_extended.py"
        "::test_of_several_classes_the_newest_then_the_first_by_name_stands_for_a_resource",
        "1.38",
    ),
    "rule-without-selector-is-about-no-device": VersionTexts(
        "a DeviceTaintRule without deviceSelector taints every device",
        "it taints none",
        "PR 141648",
        "tests/unit/core/dra/test_taint_rules.py::test_a_rule_without_a_selector_is_about_no_device",
        "1.38",
    ),
}


def versions_page(_root: Path) -> str:
    """docs/results/versions.md."""
    head = ("Rule", "Source", *MINORS, "Test")
    return page(
        "Rules by minor version",
        [
            (
                "asched decides by the rules of the API server's minor version, or of"
                " `--emulated-version`. Sources are pull requests and commits of"
                " kubernetes/kubernetes. The rules of 1.38 are a preview. Defaults of feature gates"
                " are in [configuration](../configuration.md#feature-gates)."
            ),
            table(head, _rows()),
            "## Gates whose default changes",
            table(("Gate", *MINORS), _gates()),
            "## Not switched",
            "asched decides as the newer version under each minor version.",
            table(
                ("Rule", "Source", "Since", "kube-scheduler before", "asched", "Test"),
                (
                    (name, rule.source, rule.since, rule.before, rule.after, code(rule.test))
                    for name, rule in sorted(SETTLED.items())
                ),
            ),
        ],
    )


def _rows() -> Iterator[tuple[str, ...]]:
    for name, first in sorted(RULES.items(), key=lambda item: (item[1], item[0])):
        rule, since = TEXTS[name], MINORS.index(first)
        before = [rule.before, *(f"as {BASE}" for _ in MINORS[1:since])]
        after = [rule.after, *(f"as {first}" for _ in MINORS[since + 1 :])]
        yield name, rule.source, *before, *after, code(rule.test)


def _gates() -> Iterator[tuple[str, ...]]:
    for name in sorted(HONOURED):
        defaults = [table_of(minor).gates.get(name, ("", None))[1] for minor in MINORS]
        if len(set(defaults)) > 1:
            yield code(name), *("" if on is None else "on" if on else "off" for on in defaults)


PAGES: Final[Mapping[str, Callable[[Path], str]]] = {
    "metrics.md": metrics_page,
    "configuration.md": configuration_page,
    "results/versions.md": versions_page,
    "../deploy/chart/README.md": chart_page,
}
