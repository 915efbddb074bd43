"""A pool may name its profile: what decides for its pods, whichever of our names they carry."""

import json
from pathlib import Path
from typing import Any

import pytest

from asched.cli.main import main
from asched.core.cluster.facts import Refused, Seen
from asched.core.framework.effects import Bind, EmitEvent
from asched.core.model.decode import decode
from asched.core.model.kinds import COSCHEDULING_GROUP, NAMESPACE, NODE, POD
from asched.core.model.workload import CoschedulingGroup, Namespace
from asched.plugin import PreEnqueuePlugin, Status, unresolvable
from tests.builders import NodeBuilder, PodBuilder, a_node, a_pod
from tests.playbook import GROUP_LABEL, Play, explained, placed

HOST, POOL = "kubernetes.io/hostname", "asched.dev/pool"
SPREADING, PACKING = "default-scheduler", "packing"


class Closed(PreEnqueuePlugin):
    """Gates every pod of its profile."""

    name = "Closed"

    def pre_enqueue(self, pod: Any) -> Status:
        return unresolvable("closed")

    def registrations(self) -> tuple[()]:
        return ()


def a_profile(name: str, strategy: str = "LeastAllocated", *plugins: str) -> dict[str, Any]:
    args = {"scoringStrategy": {"type": strategy}}
    enabled = [{"name": plugin} for plugin in plugins]
    off = [{"name": "NodeResourcesBalancedAllocation"}]
    return {
        "schedulerName": name,
        "plugins": {"score": {"disabled": off}, "multiPoint": {"enabled": enabled}},
        "pluginConfig": [{"name": "NodeResourcesFit", "args": args}],
    }


def pools(batch: str = "", gpu: str = "") -> list[dict[str, Any]]:
    return [
        {"name": "batch", "namespaces": ["jobs"], "profile": batch},
        {
            "name": "gpu",
            "nodeSelector": {"accelerator": "yes"},
            "namespaceSelector": {"matchLabels": {"team": "ml"}},
            "profile": gpu,
        },
    ]


PROFILES = [a_profile(SPREADING), a_profile(PACKING, "MostAllocated")]


def a_namespace(name: str, **labels: str) -> Namespace:
    return decode(Namespace, {"metadata": {"name": name, "uid": name, "labels": labels}})


def node(name: str, **labels: str) -> NodeBuilder:
    return a_node(name).labels({HOST: name, **labels}).allocatable(cpu="4", pods="10")


GPU = ("gpu-1", "gpu-2")
GPU_NODES = [node(name, accelerator="yes") for name in GPU]
BATCH_NODES = [node("batch-1", **{POOL: "batch"}), node("batch-2", **{POOL: "batch"})]
OTHER_NODES = [node("other-1"), node("other-2")]


def play(batch: str = "", gpu: str = PACKING, **config: Any) -> Play:
    """`batch`, `gpu`: the profiles of these pools."""
    fields: dict[str, Any] = {"profiles": PROFILES, "pools": pools(batch, gpu), **config}
    made = Play(*GPU_NODES, *BATCH_NODES, *OTHER_NODES, **fields)
    made.turn(Seen(NAMESPACE, a_namespace("training", team="ml")))
    made.turn(Seen(NAMESPACE, a_namespace("jobs")), Seen(NAMESPACE, a_namespace("web")))
    return made


def pod(name: str, namespace: str, scheduler: str = SPREADING) -> PodBuilder:
    return a_pod(name, namespace).requests(cpu="1").spec(schedulerName=scheduler)


def pinned(name: str, to: str, namespace: str = "kube-system") -> PodBuilder:
    """As the controller of a DaemonSet makes it."""
    field = {"key": "metadata.name", "operator": "In", "values": [to]}
    return pod(name, namespace).requires_nodes({"matchFields": [field]})


def used(made: Play, namespace: str, scheduler: str = SPREADING) -> int:
    """The number of nodes that two equal pods are placed on."""
    pods = (pod(f"{namespace}-{number}", namespace, scheduler) for number in range(2))
    return len({placed(made, each) for each in pods} - {""})


PACKED, SPREAD = 1, 2


def test_pools_decide_by_their_profiles_for_pods_of_one_scheduler_name() -> None:
    made = play()
    assert used(made, "training") == PACKED
    assert used(made, "jobs") == used(made, "web") == SPREAD


@pytest.mark.parametrize("named", [SPREADING, PACKING])
def test_whichever_of_our_names_a_pod_carries(named: str) -> None:
    made = play(batch=SPREADING)
    assert used(made, "training", named) == PACKED
    assert used(made, "jobs", named) == SPREAD
    of_itself = PACKED if named == PACKING else SPREAD
    assert used(made, "web", named) == of_itself, "its pool names no profile"


def test_a_pod_of_another_scheduler_is_still_not_ours() -> None:
    made = play()
    assert not placed(made, pod("p", "training", "another"))


def test_events_come_from_the_scheduler_that_the_pod_names() -> None:
    made = play()
    made.see(pod("large", "training").requests(cpu="9"))
    assert made.the(EmitEvent).reporting_controller == SPREADING


def gating(**config: Any) -> Play:
    """The profile of the pool `gpu` gates all pods."""
    profiles = [a_profile(SPREADING), a_profile(PACKING, "MostAllocated", "Closed")]
    return play(profiles=profiles, plugins=[Closed], **config)


def test_a_pod_of_a_daemon_set_is_decided_by_the_profile_of_its_nodes_pool() -> None:
    made = gating()
    assert placed(made, pinned("agent-1", "other-1")) == "other-1"
    assert placed(made, pinned("agent-2", "batch-1")) == "batch-1"
    assert not placed(made, pinned("agent-3", "gpu-1"))
    assert "gated by Closed" in explained(made, "agent-3", "kube-system")


# --- pods that come to another pool ---------------------------------------------------------------


def test_a_gated_pod_whose_namespace_leaves_the_pool_is_tried() -> None:
    made = gating()
    assert not placed(made, pod("p", "training"))
    made.turn(Seen(NAMESPACE, a_namespace("training")))
    assert made.the(Bind).node in ("other-1", "other-2")


def test_a_waiting_pod_whose_namespace_comes_to_the_pool_is_gated() -> None:
    made = gating()
    large = pod("large", "web").requests(cpu="9")
    assert not placed(made, large)
    made.turn(Seen(NAMESPACE, a_namespace("web", team="ml")))
    assert "gated by Closed" in explained(made, "large", "web")


@pytest.mark.parametrize("seconds", [0.0, 0.5, 20.0])
def test_a_pod_that_backs_off_is_gated_by_the_profile_of_its_new_pool(seconds: float) -> None:
    made = gating()
    assert not placed(made, pod("p", "web").requests(cpu="5"))
    larger = node("other-1").allocatable(cpu="8", pods="10").build()
    made.turn(Seen(NODE, larger), Seen(NAMESPACE, a_namespace("web", team="ml")), after_s=seconds)
    made.turn(after_s=60)
    assert not made.of(Bind)
    assert "gated by Closed" in explained(made, "p", "web")


def test_pods_that_come_with_a_namespace_are_decided_by_its_profile() -> None:
    """The pod is seen before the labels of its namespace, in the same turn."""
    made = gating()
    moved = a_namespace("web", team="ml")
    made.turn(Seen(POD, pod("p", "web").build()), Seen(NAMESPACE, moved))
    assert not made.of(Bind)
    assert "gated by Closed" in explained(made, "p", "web")


def test_the_next_pods_of_a_namespace_that_moves_are_decided_by_the_new_profile() -> None:
    made = play()
    assert used(made, "web") == SPREAD
    made.turn(Seen(NAMESPACE, a_namespace("web", team="ml")))
    assert len({placed(made, pod(name, "web")) for name in ("p", "q", "r")}) == PACKED


def test_a_gated_pod_of_a_daemon_set_follows_its_node() -> None:
    made = gating()
    assert not placed(made, pinned("agent", "gpu-1"))
    made.turn(Seen(NODE, node("gpu-1").build()))  # of the pool `default` from now on
    assert made.the(Bind).node == "gpu-1"


def test_a_pod_of_a_daemon_set_that_is_seen_before_its_node() -> None:
    made = gating()
    late = node("late", accelerator="yes").build()
    made.turn(Seen(POD, pinned("one", "late").build()), Seen(NODE, late))
    assert not made.of(Bind)
    assert "gated by Closed" in explained(made, "one", "kube-system")


def test_a_gated_pod_is_tried_once_the_node_that_it_is_pinned_to_is_known() -> None:
    profiles = [a_profile(SPREADING, "LeastAllocated", "Closed"), a_profile(PACKING)]
    made = play(profiles=profiles, plugins=[Closed])
    assert not placed(made, pinned("agent", "late"))
    made.turn(Seen(NODE, node("late", accelerator="yes").build()))
    assert made.the(Bind).node == "late"


# --- reload ---------------------------------------------------------------------------------------


def test_a_reload_gives_a_pool_another_profile() -> None:
    made = play()
    first, second = (placed(made, pod(name, "training")) for name in ("p", "q"))
    assert first == second
    made.reload(profiles=PROFILES, pools=pools(gpu=SPREADING))
    assert placed(made, pod("r", "training")) != first


def test_a_reload_without_the_profile_of_a_pool_gives_its_pods_back() -> None:
    made = gating()
    assert not placed(made, pod("p", "training"))
    made.reload(profiles=[a_profile(SPREADING)], pools=pools())
    assert made.the(Bind).node in ("gpu-1", "gpu-2")


def test_a_reload_that_names_a_profile_gates_the_pods_that_wait() -> None:
    made = play(gpu="", plugins=[Closed])
    assert not placed(made, pod("large", "training").requests(cpu="9"))
    closed = [a_profile(SPREADING), a_profile(PACKING, "MostAllocated", "Closed")]
    made.reload(profiles=closed, pools=pools(gpu=PACKING))
    assert "gated by Closed" in explained(made, "large", "training")


# --- groups ---------------------------------------------------------------------------------------

BY_PRIORITY = {"enabled": [{"name": "PrioritySort"}], "disabled": [{"name": "*"}]}
ALONE: dict[str, Any] = {"schedulerName": SPREADING, "plugins": {"queueSort": BY_PRIORITY}}
TOGETHER: dict[str, Any] = {
    "schedulerName": PACKING,
    "plugins": {
        "queueSort": BY_PRIORITY,
        "multiPoint": {"enabled": [{"name": "Coscheduling"}]},
    },
}


def a_crew(made: Play, namespace: str, minimum: int) -> None:
    metadata = {"name": "crew", "namespace": namespace, "uid": f"crew-{namespace}"}
    spec = {"minMember": minimum}
    crew = decode(CoschedulingGroup, {"metadata": metadata, "spec": spec})
    made.turn(Seen(COSCHEDULING_GROUP, crew))


def member(name: str, namespace: str) -> PodBuilder:
    return pod(name, namespace).labels({GROUP_LABEL: "crew"})


def test_a_group_starts_together_where_the_profile_of_its_pool_has_the_plugin() -> None:
    made = play(profiles=[ALONE, TOGETHER])
    for namespace in ("training", "web"):
        a_crew(made, namespace, minimum=2)
    assert placed(made, member("w-1", "web")), "the profile of its name starts pods one by one"
    assert not placed(made, member("t-1", "training"))
    assert not placed(made, pod("other", "training").requests(cpu="9"))
    made.see(member("t-2", "training"))
    assert {bind.pod.name for bind in made.of(Bind)} == {"t-1", "t-2"}


def test_a_group_that_waits_is_let_go_when_its_namespace_leaves_the_pool() -> None:
    made = play(profiles=[ALONE, TOGETHER])
    a_crew(made, "training", minimum=9)
    assert not placed(made, member("t-1", "training"))
    made.turn(Seen(NAMESPACE, a_namespace("training")))
    assert made.the(Bind).pod.name == "t-1"


@pytest.mark.parametrize(("first", "then"), [(PACKING, ""), ("", PACKING)])
def test_a_reload_while_pods_of_a_group_back_off(first: str, then: str) -> None:
    """Their bindings failed; whether they are a group depends on the profile."""
    made = play(gpu=first, profiles=[ALONE, TOGETHER])
    a_crew(made, "training", minimum=2)
    made.turn(*(Seen(POD, member(name, "training").build()) for name in ("t-1", "t-2")))
    made.turn(*(Refused(bind.id, 403, "no") for bind in made.of(Bind)))
    made.reload(profiles=[ALONE, TOGETHER], pools=pools(gpu=then))
    made.turn(after_s=20)
    assert {bind.pod.name for bind in made.of(Bind)} == {"t-1", "t-2"}


# --- configuration --------------------------------------------------------------------------------

FILE = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: asched
- schedulerName: packing
pools:
- name: gpu
  namespaces: [training]
  profile: {}
"""


def checked(tmp_path: Path, capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str]:
    status = main(["config", *words])
    said = capsys.readouterr()
    return status, said.out + said.err


def test_a_profile_that_does_not_exist_is_refused_at_its_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "config.yaml"
    file.write_text(FILE.format("pakcing"), encoding="utf-8")
    status, said = checked(tmp_path, capsys, "check", str(file))
    assert status
    assert f'{file}:9:3: pools[0].profile: Invalid value: "pakcing"' in said
    assert 'no profile has this schedulerName (did you mean "packing"?)' in said


def test_the_effective_configuration_has_the_profile(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "config.yaml"
    file.write_text(FILE.format("packing"), encoding="utf-8")
    _, said = checked(tmp_path, capsys, "view", "--output=json", str(file))
    assert json.loads(said)["pools"][0]["profile"] == "packing"


def test_a_shadow_without_the_profile_of_a_pool_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "config.yaml"
    file.write_text(FILE.format("packing"), encoding="utf-8")
    status = main(["run", "--config", str(file), "--shadow=asched"])
    assert status
    assert "--shadow leaves out packing" in capsys.readouterr().err


# --- explain --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("namespace", "named", "said"),
    [
        ("training", SPREADING, f"profile {PACKING} decides in place of {SPREADING}, since the"),
        ("training", PACKING, f"profile {PACKING} decides, since the pool names it"),
    ],
)
def test_explain_says_which_profile_decides_and_why(namespace: str, named: str, said: str) -> None:
    made = play()
    made.see(pod("p", namespace, named))
    assert said in explained(made, "p", namespace)


def test_explain_names_the_pods_own_profile_without_a_reason() -> None:
    made = play()
    made.see(pod("p", "web"))
    text = explained(made, "p", "web")
    assert f"profile {SPREADING}" in text
    assert "decides" not in text
