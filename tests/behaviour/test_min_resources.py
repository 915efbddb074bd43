"""minResources of a PodGroup: checked before it starts, and nothing is reserved afterwards."""

from pathlib import Path

import pytest

from asched.cli.main import main
from asched.core.cluster.facts import Gone, Seen
from asched.core.framework.effects import Bind
from asched.core.model.kinds import COSCHEDULING_GROUP, POD
from tests.builders import a_pod, room
from tests.playbook import (
    a_label_group,
    a_label_member,
    bound,
    label_gang_play,
    label_group_seen,
    settled,
)


def test_a_group_starts_only_where_its_min_resources_are_free() -> None:
    play = label_gang_play(room("n1", 4))
    label_group_seen(play, "app", 1, minResources={"cpu": "6"})
    play.see(a_label_member("driver", "app"))
    assert not play.of(Bind)
    assert "cpu 2 found no room" in play.notes()[0]


def test_what_a_started_group_does_not_use_is_free_for_other_pods() -> None:
    play = label_gang_play(room("n1", 4))
    label_group_seen(play, "app", 1, minResources={"cpu": "4"})
    play.see(a_label_member("driver", "app"))
    assert settled(play) == {"driver"}

    play.see(a_pod("other").requests(cpu="3"))

    assert bound(play) == {"other"}


def test_min_resources_that_grow_after_the_start_keep_no_room() -> None:
    play = label_gang_play(room("n1", 4), room("n2", 4))
    label_group_seen(play, "app", 1, minResources={"cpu": "10m"})
    play.see(a_label_member("driver", "app", cpu="10m"))
    assert settled(play) == {"driver"}
    label_group_seen(
        play,
        "app",
        1,
        minResources={"cpu": "100000", "memory": "100000Gi"},
        scheduleTimeoutSeconds=2147483647,
    )
    play.see(a_label_member("second", "app", cpu="10m"))
    settled(play)

    play.see(a_pod("other").requests(cpu="3"))

    assert bound(play) == {"other"}


def test_room_that_a_nominated_pod_waits_for_is_not_taken_by_a_group_that_grows() -> None:
    play = label_gang_play(room("n1", 2))
    label_group_seen(play, "app", 1, minResources={"cpu": "10m"})
    play.see(a_label_member("driver", "app", cpu="10m"))
    settled(play)
    victim = a_pod("victim").requests(cpu="1900m")
    play.see(victim)
    settled(play)
    play.see(a_pod("vip").requests(cpu="1900m").priority(1000))
    assert not bound(play)

    grown = Seen(COSCHEDULING_GROUP, a_label_group("app", 1, minResources={"cpu": "100"}))
    left = victim.spec(schedulerName="default-scheduler").on("n1").build()
    play.turn(grown, Gone(POD, left))
    play.turn(after_s=2.0)

    assert play.node_of("uid-vip") == "n1"


def test_the_argument_that_reserved_room_is_refused_by_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = tmp_path / "config.yaml"
    lines = (
        "apiVersion: kubescheduler.config.k8s.io/v1",
        "kind: KubeSchedulerConfiguration",
        "profiles:",
        "- pluginConfig:",
        "  - name: Coscheduling",
        "    args: {minResourcesHoldSeconds: 300}",
    )
    given.write_text("\n".join(lines), encoding="utf-8")
    assert main(["config", "check", str(given)]) == 2
    said = capsys.readouterr().err
    assert 'args.minResourcesHoldSeconds"' in said
    assert "delete the line" in said
