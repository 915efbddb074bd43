"""Who goes first when several pods wait: priority, then age, whatever the queue sort is called."""

import json
from pathlib import Path

import pytest

from asched.cli.main import main
from asched.core.cluster.facts import Fact, Listed, Seen
from asched.core.framework.effects import Bind
from asched.core.model.kinds import COSCHEDULING_GROUP, NODE, POD
from tests.builders import PodBuilder, a_node, a_pod
from tests.playbook import Play, a_label_group, a_label_member, label_gang_play, ours


def made_at(pod: PodBuilder, second: int) -> PodBuilder:
    return pod.metadata(creationTimestamp=f"2026-01-01T00:00:{second:02}Z")


def room_for(count: int) -> Fact:
    return Seen(NODE, a_node("n").allocatable(cpu=str(count), pods="100").build())


def listed(*pods: PodBuilder) -> Listed:
    return Listed(POD, tuple(ours(Seen(POD, pod.build())).obj for pod in pods))


def bound(play: Play) -> list[str]:
    return [bind.pod.name for bind in play.of(Bind)]


OLDER = (made_at(a_label_member("z0", "zz"), 1), made_at(a_label_member("z1", "zz"), 1))
YOUNGER_GANG = (made_at(a_label_member("a0", "aa"), 5), made_at(a_label_member("a1", "aa"), 5))
YOUNGER_PODS = tuple(made_at(a_pod(name).requests(cpu="1"), 5) for name in ("a0", "a1"))
GROUPS = (a_label_group("zz", 2), a_label_group("aa", 2))


@pytest.mark.parametrize("younger", [YOUNGER_GANG, YOUNGER_PODS])
@pytest.mark.parametrize("groups_come_last", [True, False])
def test_after_a_start_an_older_gang_goes_before_what_is_younger(
    younger: tuple[PodBuilder, ...], *, groups_come_last: bool
) -> None:
    play = label_gang_play()
    play.machine.is_active = False
    facts = [listed(*younger, *OLDER), Listed(COSCHEDULING_GROUP, GROUPS)]
    play.turn(*(facts if groups_come_last else reversed(facts)))
    play.machine.is_active = True

    play.turn(room_for(2))

    assert sorted(bound(play)) == ["z0", "z1"]


@pytest.mark.parametrize("younger", [YOUNGER_GANG, YOUNGER_PODS])
def test_within_one_turn_the_gang_that_came_first_goes_first(
    younger: tuple[PodBuilder, ...],
) -> None:
    play = label_gang_play()
    play.turn(*(Seen(COSCHEDULING_GROUP, group) for group in GROUPS))
    play.machine.is_active = False
    play.turn(*(Seen(POD, pod.build()) for pod in (*OLDER, *younger)))
    play.machine.is_active = True

    play.turn(room_for(2))

    assert sorted(bound(play)) == ["z0", "z1"]


@pytest.mark.parametrize("younger", [YOUNGER_GANG, YOUNGER_PODS])
def test_simulate_tries_an_older_gang_before_what_is_younger(
    younger: tuple[PodBuilder, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    node = a_node("n").allocatable(cpu="2", memory="8Gi", pods="100").json
    groups = [
        {
            "apiVersion": "scheduling.x-k8s.io/v1alpha1",
            "kind": "PodGroup",
            "metadata": {"name": name, "namespace": "default"},
            "spec": {"minMember": 2},
        }
        for name in ("aa", "zz")
    ]
    pods = [pod.spec(schedulerName="default-scheduler").json for pod in (*younger, *OLDER)]
    items = [
        {"apiVersion": "v1", "kind": "Node", **node},
        *groups,
        *({"apiVersion": "v1", "kind": "Pod", **pod} for pod in pods),
    ]
    (tmp_path / "cluster.json").write_text(json.dumps({"kind": "List", "items": items}))
    (tmp_path / "config.yaml").write_text(
        "apiVersion: kubescheduler.config.k8s.io/v1\n"
        "kind: KubeSchedulerConfiguration\n"
        "profiles:\n"
        "- plugins:\n"
        "    multiPoint: {enabled: [{name: Coscheduling}], disabled: [{name: PrioritySort}]}\n"
    )

    words = ["--dump", str(tmp_path / "cluster.json"), "--config", str(tmp_path / "config.yaml")]
    assert main(["simulate", *words, "-o", "json"]) == 0

    pods = json.loads(capsys.readouterr().out)["pods"]
    assert sorted(pod["pod"] for pod in pods if pod["node"]) == ["default/z0", "default/z1"]
