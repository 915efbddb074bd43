"""Plugins with nothing to say about a pod are not asked about it; those with something are."""

from typing import Any

import pytest

from asched.core.config.defaults import default_configuration
from asched.core.framework.results.active_plugins import ActivePlugins, up_to
from asched.core.framework.runner import Runner
from asched.core.model.kinds import POD
from asched.core.state.facts import Seen
from asched.core.state.nominated import Nominator
from asched.host.assemble import Parts, build_runners
from tests.builders import PodBuilder, a_cluster, a_node, a_pod

ZONE = "topology.kubernetes.io/zone"

#: What a pod without volumes, devices, ports or wishes has nothing to do with.
OF_NO_CONCERN = {
    "DynamicResources",
    "InterPodAffinity",
    "NodeAffinity",
    "NodeDeclaredFeatures",
    "NodeName",
    "NodePorts",
    "NodeVolumeLimits",
    "PodTopologySpread",
    "VolumeBinding",
    "VolumeRestrictions",
    "VolumeZone",
}


def a_runner() -> Runner:
    cluster = a_cluster(a_node("a").labels({ZONE: "z"}))
    parts = Parts(cluster, Nominator(cluster.pods_seen.get))
    (runner,) = build_runners(default_configuration(), parts).values()
    return runner


def apart_from(**labels: str) -> dict[str, Any]:
    term = {"topologyKey": ZONE, "labelSelector": {"matchLabels": labels}}
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


SPREAD = {
    "topologyKey": ZONE,
    "maxSkew": 1,
    "whenUnsatisfiable": "DoNotSchedule",
    "labelSelector": {"matchLabels": {"app": "a"}},
}


def active_plugins_of(runner: Runner, pod: PodBuilder) -> ActivePlugins:
    return runner.cache.state_of(runner.cluster.classes.info_of(pod.build())).active_plugins


def test_a_plain_pod_concerns_few_plugins() -> None:
    runner = a_runner()

    active_plugins = active_plugins_of(runner, a_pod("p"))

    assert active_plugins.idle == OF_NO_CONCERN
    assert [f.plugin.name for f in active_plugins.filters] == [
        "NodeUnschedulable",
        "TaintToleration",
        "NodeResourcesFit",
    ]
    assert active_plugins.reserves == active_plugins.pre_binds == ()
    assert active_plugins.passed == (
        "NodeName",
    )  # kube-scheduler counts it among the filters asked
    assert active_plugins.noughts == ("DynamicResources",)  # it scores, without a PreScore to skip


@pytest.mark.parametrize(
    ("pod", "name"),
    [
        (a_pod("p").selects(disk="ssd"), "NodeAffinity"),
        (a_pod("p").host_port(80), "NodePorts"),
        (a_pod("p").spec(topologySpreadConstraints=[SPREAD]), "PodTopologySpread"),
        (a_pod("p").spec(affinity=apart_from(app="a")), "InterPodAffinity"),
    ],
)
def test_a_pod_concerns_the_plugin_of_its_wish(pod: PodBuilder, name: str) -> None:
    assert active_plugins_of(a_runner(), pod).idle == OF_NO_CONCERN - {name}


def test_a_term_of_somebody_else_ends_the_idleness() -> None:
    runner = a_runner()
    waiting = a_pod("p").labels(app="a")
    assert "InterPodAffinity" in active_plugins_of(runner, waiting).idle

    speaker = a_pod("q").on("a").spec(affinity=apart_from(app="a"))
    runner.cluster.apply(Seen(POD, speaker.build()))

    assert "InterPodAffinity" not in active_plugins_of(runner, waiting).idle


def test_plugins_ran_until_one_ended_the_step() -> None:
    plugins = a_runner().profile.pre_filters
    names = [plugin.name for plugin in plugins]

    assert up_to(plugins, names[2]) == set(names[:3])
    assert up_to(plugins, "") == set(names)
