"""Whose decisions are judged, when they are looked at again, and by which rules."""

import math
from typing import Any

import pytest

from asched.core.config.defaults import configuration
from asched.core.model.kinds import NODE, POD
from asched.core.shadow.following import AGAIN_S, BACKOFF_S
from asched.core.shadow.neighbours import NEAR
from asched.core.state.budget import SLICE_STEPS
from asched.core.state.cluster import Sight
from asched.core.state.facts import Listed, Seen
from asched.host.assemble import build_runners
from tests.builders import PodBuilder, a_node, a_pod
from tests.core.cycle.playbook import ours
from tests.core.shadow.test_following import NAME, REFUSED, Looking, equal, small


def said(status: str, reason: str = "") -> dict[str, str]:
    return {"type": "PodScheduled", "status": status, "reason": reason, "message": REFUSED}


def test_nodes_are_no_decisions() -> None:
    looking = Looking(*equal("n1"))
    looking.play.turn(Seen(NODE, a_node("n2").build()))
    assert looking.tally.told()["profiles"] == {}


@pytest.mark.parametrize("condition", [None, said("False"), said("Unknown")])
def test_a_namesake_that_was_made_with_a_node_is_nobodys_decision(condition: Any) -> None:
    looking = Looking(*equal("n1"))
    looking.waits(small())
    anew = small().metadata(uid="anew").status(conditions=[condition] if condition else [])
    looking.binds(anew, "n1")
    assert looking.tally.told()["profiles"] == {}


def test_a_decision_is_judged_once_however_many_versions_of_the_pod_follow() -> None:
    looking = Looking(*equal("n1"))
    looking.waits(small(), small("other"))
    came = dict(looking.shadow._arrived)
    looking.waits(small().labels(a="1"))
    assert looking.shadow._arrived == came, "it came when it came"
    looking.binds(small(), "n1")
    looking.binds(small().labels(a="2"), "n1")
    assert looking.found() == {"same": 1}
    assert list(looking.shadow._arrived) == ["uid-other"]


def test_judging_takes_nothing_of_the_turns_own_budget() -> None:
    looking = Looking(*equal("n1", "n2"))
    cluster = looking.play.parts.cluster
    looking.waits(a_pod("there").requests(cpu="3", memory="1Gi").on("n1"), small())
    cluster.budget.open()
    looking.shadow.about_to_see(ours(Seen(POD, small().build().on("n1"))))
    assert cluster.budget.left == SLICE_STEPS
    looking.binds(small(), "n1")
    looking.play.now_s += AGAIN_S
    cluster.budget.open()
    assert looking.shadow.look_again(looking.play.now_s)
    assert cluster.budget.left == math.inf, "between turns nobody counts"


def test_of_a_list_only_our_pods_were_missed_whatever_else_it_shows() -> None:
    looking = Looking(*equal("n1"))
    theirs = small("theirs").spec(schedulerName="batch")
    looking.waits(small(), theirs)
    bound = small().spec(schedulerName=NAME).on("n1").metadata(resourceVersion="2").build()
    other = theirs.on("n1").metadata(resourceVersion="2").build()
    looking.play.turn(Listed(POD, (bound, other)))
    assert looking.found() == {"missed": 1}
    assert list(looking.tally.told()["profiles"]) == [NAME]
    assert looking.shadow._arrived == {}
    waiting = small("more").spec(schedulerName=NAME)
    node = a_node("n1").build()
    placed = waiting.build().on("n1")
    looking.shadow.listed([Sight(NODE, node, node), Sight(POD, waiting.build(), placed)])
    assert looking.found() == {"missed": 2}


@pytest.mark.parametrize(
    "condition", [said("True", "Unschedulable"), said("False", "SchedulingGated"), said("False")]
)
def test_other_conditions_refuse_nobody(condition: dict[str, str]) -> None:
    looking = Looking(*equal("n1"))
    looking.waits(small())
    looking.waits(small().status(conditions=[condition]).metadata(resourceVersion="2"))
    assert looking.shadow.doubts == 0
    assert looking.tally.told()["profiles"] == {}


def a_big() -> PodBuilder:
    return a_pod("big").requests(cpu="9")


def test_after_a_reload_the_new_rules_judge() -> None:
    looking = Looking(*equal("n1"))
    looking.waits(a_big(), small())
    looking.binds(small(), "n1")
    off = {"multiPoint": {"disabled": [{"name": "NodeResourcesFit"}]}}
    document = {"profiles": [{"schedulerName": NAME, "plugins": off}]}
    parts = looking.play.parts
    looking.play.machine.context.runners = build_runners(configuration(document), parts)
    looking.refuses(a_big(), REFUSED)
    looking.later(BACKOFF_S)
    assert looking.found("unschedulable") == {"placeable": 1}


def test_what_a_profile_decided_that_is_gone_is_counted_as_it_was_found() -> None:
    looking = Looking(*equal("n1", "n2"))
    looking.waits(a_pod("there").requests(cpu="3", memory="1Gi").on("n1"), small(), a_big())
    looking.binds(small(), "n1")
    looking.refuses(a_big(), "other words")
    looking.play.machine.context.runners = {}
    for _ in range(4):
        looking.later(BACKOFF_S)
    assert looking.shadow.doubts == 0
    assert (looking.found(), looking.found("unschedulable")) == ({"score": 1}, {"words": 1})


def test_a_refusal_is_looked_at_again_after_its_time_and_not_for_bindings_nor_at_the_end() -> None:
    looking = Looking(*equal("n1", cpu="400"))
    big = a_pod("big").requests(cpu="900")
    looking.waits(big)
    looking.refuses(big, "other words")
    for number in range(NEAR + 1):
        looking.waits(a_pod(f"p{number}"))
        looking.binds(a_pod(f"p{number}"), "n1")
    assert not looking.shadow.look_again(looking.play.now_s)
    assert looking.shadow.doubts == 1
    assert looking.shadow.look_again(looking.play.now_s, is_ending=True), "at the end all are due"
    assert looking.found("unschedulable") == {"words": 1}


def test_what_became_of_a_namesake_says_nothing_of_a_refusal() -> None:
    looking = Looking(*equal("n1"))
    looking.waits(small())
    looking.refuses(small(), REFUSED)
    looking.play.lose(small())
    looking.waits(small().metadata(uid="anew"))
    looking.binds(small().metadata(uid="anew"), "n1")
    looking.later(BACKOFF_S)
    assert looking.found("unschedulable") == {"placeable": 1}


def test_that_a_pod_was_placed_later_explains_no_other_words() -> None:
    looking = Looking(*equal("n1"))
    looking.waits(a_big())
    looking.refuses(a_big(), "other words")
    looking.play.turn(Seen(NODE, a_node("n1").allocatable(cpu="40").build()))
    looking.binds(a_big(), "n1")
    looking.later(BACKOFF_S)
    assert looking.found("unschedulable") == {"words": 1}
