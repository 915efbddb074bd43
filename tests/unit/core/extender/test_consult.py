"""What extenders are asked, and what comes of their answers, told as plays."""

from typing import Any

import pytest

from asched.core.cluster.facts import Done, Gone, Replied, Seen
from asched.core.config.gates import default_gates
from asched.core.extender.consult import (
    WASTED_NODES_MAX,
    WASTED_S,
)
from asched.core.framework.effects import (
    AskExtender,
    Bind,
    DeletePod,
    MarkVictim,
    PatchPodStatus,
    Wholes,
)
from asched.core.model.kinds import NODE, POD
from tests.builders import NodeBuilder, PodBuilder, a_node, a_pod
from tests.unit.core.extender.playing import ExtendedPlay, an_extender

DEVICE = "example.com/dev"
FILTER = an_extender(filterVerb="filter")
SCORE = an_extender(prioritizeVerb="score", weight=2)
ONLY_DEVICES = an_extender(filterVerb="filter", managedResources=[{"name": DEVICE}])


def nodes(count: int = 3, **amounts: str) -> list[NodeBuilder]:
    return [a_node(f"n{number}").allocatable({DEVICE: "9", **amounts}) for number in range(count)]


def scores(**points: int) -> list[dict[str, Any]]:
    return [{"Host": host, "Score": score} for host, score in points.items()]


# --- filter --------------------------------------------------------------------------------------


def test_names_go_to_those_that_know_the_nodes_whole_nodes_to_the_others() -> None:
    play = ExtendedPlay(*nodes(2), extenders=[FILTER])
    play.see(a_pod("web"))
    assert play.question().verb == "filter"
    body = play.question().body
    assert body["NodeNames"] == ("n0", "n1")
    assert body["Nodes"] is None
    assert (body["Pod"].kind, body["Pod"].key, body["Pod"].uid) == (POD, "default/web", "uid-web")

    play = ExtendedPlay(*nodes(2), extenders=[{**FILTER, "nodeCacheCapable": False}])
    play.see(a_pod("web"))
    body = play.question().body
    assert body["NodeNames"] is None
    assert isinstance(body["Nodes"]["items"], Wholes)
    assert body["Nodes"]["items"].keys == ("n0", "n1")


def test_only_what_fits_is_asked_about_and_only_what_is_left_is_taken() -> None:
    play = ExtendedPlay(*nodes(2), a_node("tainted").taints("a=b:NoSchedule"), extenders=[FILTER])
    play.see(a_pod("web"))
    assert play.question().body["NodeNames"] == ("n0", "n1")
    play.reply({"NodeNames": ["n1"]})
    assert play.the(Bind).node == "n1"


def test_the_second_extender_sees_what_the_first_one_left_and_nobody_an_empty_list() -> None:
    play = ExtendedPlay(*nodes(), extenders=[FILTER, {**FILTER, "urlPrefix": "http://y"}])
    play.see(a_pod("web"))
    play.reply({"NodeNames": ["n0", "n2"]})
    assert play.question().extender.url_prefix == "http://y"
    assert play.question().body["NodeNames"] == ("n0", "n2")
    play.reply({"NodeNames": ["n2"]})
    assert play.the(Bind).node == "n2"

    play.see(a_pod("other"))
    play.reply({"FailedNodes": dict.fromkeys(("n0", "n1", "n2"), "no")})
    assert play.of(AskExtender) == []
    assert play.condition()["message"].startswith("0/3 nodes are available: 3 no.")


def test_ignorable_extenders_come_last_and_their_failures_are_passed_over() -> None:
    soft = {**FILTER, "ignorable": True, "urlPrefix": "http://soft"}
    play = ExtendedPlay(*nodes(1), extenders=[soft, FILTER])
    play.see(a_pod("web"))
    play.reply({"NodeNames": ["n0"]})
    play.refuse("broken")
    assert play.the(Bind).node == "n0"


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ({"Error": "I am ill"}, "I am ill"),
        (
            {"NodeNames": ["n9"]},
            (
                'extender "http://x" claims a filtered node "n9" which is not found in the input'
                " node list"
            ),
        ),
        (
            {"Nodes": {"items": [{"metadata": {"name": "n9"}}]}},
            (
                'extender "http://x" claims a filtered node "n9" which is not found in the input'
                " node list"
            ),
        ),
        (
            {"NodeNames": "n0"},
            (
                "json: cannot unmarshal string into Go struct field ExtenderFilterResult.NodeNames"
                " of type []string"
            ),
        ),
        ([1], "json: cannot unmarshal array into Go value of type v1.ExtenderFilterResult"),
    ],
)
def test_nonsense_costs_the_pod_its_turn_with_a_reason(value: Any, why: str) -> None:
    play = ExtendedPlay(*nodes(1), extenders=[FILTER])
    play.see(a_pod("web"))
    play.reply(value)
    condition = play.condition()
    assert (condition["reason"], condition["message"]) == ("SchedulerError", why)
    play.turn(after_s=2.5)
    play.reply({"NodeNames": ["n0"]})
    assert play.the(Bind).node == "n0"


@pytest.mark.parametrize(
    ("is_capable", "value", "passed"),
    [
        (True, {"NodeNames": ["n1"], "Nodes": {"items": [{"metadata": {"name": "n0"}}]}}, "n1"),
        (True, {"NodeNames": [], "Nodes": {"items": [{"metadata": {"name": "n0"}}]}}, ""),
        (True, {"Nodes": {"items": [{"metadata": {"name": "n0"}}]}}, "n0"),
        (False, {"NodeNames": ["n1"], "Nodes": {"items": [{"metadata": {"name": "n0"}}]}}, "n0"),
        (False, {"NodeNames": ["n1"]}, ""),
    ],
)
def test_names_count_where_names_were_asked_about(
    is_capable: bool, value: dict[str, Any], passed: str
) -> None:
    play = ExtendedPlay(*nodes(2), extenders=[{**FILTER, "nodeCacheCapable": is_capable}])
    play.see(a_pod("web"))
    play.reply(value)
    assert [bind.node for bind in play.of(Bind)] == ([passed] if passed else [])


def test_reasons_of_all_extenders_are_told_and_those_about_other_nodes_are_not() -> None:
    tainted = a_node("tainted").taints("a=b:NoSchedule")
    play = ExtendedPlay(*nodes(2), tainted, extenders=[FILTER, {**FILTER, "urlPrefix": "http://y"}])
    play.see(a_pod("web"))
    play.reply(
        {"NodeNames": ["n1"], "FailedNodes": {"n0": "too loud", "tainted": "odd", "n9": "x"}}
    )
    play.reply({"NodeNames": [], "FailedNodes": {"n1": "too hot"}})
    assert play.condition()["message"].startswith(
        "0/3 nodes are available: 1 node(s) had untolerated taint(s), 1 too hot, 1 too loud."
    )


def test_a_node_that_is_left_is_taken_though_a_reason_against_it_is_told() -> None:
    play = ExtendedPlay(*nodes(2), extenders=[FILTER])
    play.see(a_pod("web"))
    play.reply({"NodeNames": ["n1"], "FailedNodes": {"n0": "no", "n1": "no"}})
    assert play.the(Bind).node == "n1"


def test_a_refused_pod_is_woken_by_any_change() -> None:
    play = ExtendedPlay(*nodes(1), extenders=[FILTER])
    play.see(a_pod("web"))
    play.reply({"NodeNames": []})
    assert play.condition()["reason"] == "Unschedulable"
    play.turn(Seen(NODE, a_node("n0").labels(any="thing").build()), after_s=20)
    assert play.question().body["NodeNames"] == ("n0",)


def test_a_pod_is_asked_for_only_where_it_wants_what_the_extender_manages() -> None:
    play = ExtendedPlay(*nodes(1), extenders=[ONLY_DEVICES])
    play.see(a_pod("plain"))
    assert play.the(Bind).node == "n0"
    play.see(a_pod("container").requests({DEVICE: "1"}))
    play.reply({"NodeNames": ["n0"]})
    with_init = a_pod("init").init("i")
    with_init.json["spec"]["initContainers"][0]["resources"] = {"limits": {DEVICE: "1"}}
    play.see(with_init)
    assert play.question().body["Pod"].key == "default/init"


# --- slow extenders ------------------------------------------------------------------------------


def test_a_slow_extender_costs_only_its_own_pods_their_turn() -> None:
    play = ExtendedPlay(*nodes(), extenders=[ONLY_DEVICES])
    play.see(a_pod("first").requests({DEVICE: "1"}))
    first = play.question()
    play.see(a_pod("plain"))
    assert play.the(Bind).pod.name == "plain"
    play.see(a_pod("second").requests({DEVICE: "1"}))
    play.see(a_pod("urgent").requests({DEVICE: "1"}).priority(9))
    assert play.of(AskExtender) == []
    play.answer(Replied(first.id, {"NodeNames": ["n1"]}))
    assert (play.the(Bind).pod.name, play.the(Bind).node) == ("first", "n1")
    assert play.question().body["Pod"].key == "default/urgent"
    play.refuse("too slow")
    assert play.question().body["Pod"].key == "default/second"


def test_what_was_granted_is_taken_only_if_it_still_fits() -> None:
    play = ExtendedPlay(*nodes(2, pods="1"), extenders=[ONLY_DEVICES])
    play.see(a_pod("slow").requests({DEVICE: "1"}))
    question = play.question()
    play.see(a_pod("quick").selects())
    taken = play.the(Bind).node
    play.answer(Replied(question.id, {"NodeNames": ["n0", "n1"]}))
    assert play.the(Bind).node == {"n0": "n1", "n1": "n0"}[taken]


def test_a_node_that_went_away_meanwhile_is_not_taken_nor_the_one_on_its_row() -> None:
    play = ExtendedPlay(*nodes(1), extenders=[FILTER])
    play.see(a_pod("web"))
    question = play.question()
    play.turn(Gone(NODE, a_node("n0").build()))
    play.turn(Seen(NODE, a_node("other").build()))
    play.answer(Replied(question.id, {"NodeNames": ["n0"]}))
    assert play.of(Bind) == []
    assert play.condition()["reason"] == "Unschedulable"


def test_points_for_a_node_do_not_go_to_the_one_on_its_row() -> None:
    play = ExtendedPlay(*nodes(2), extenders=[SCORE])
    play.see(a_pod("web"))
    question = play.question()
    play.turn(Gone(NODE, a_node("n1").build()))
    play.turn(Seen(NODE, a_node("other").build()))
    play.answer(Replied(question.id, scores(n1=9, other=9)))
    assert play.the(Bind).node == "n0"


def test_a_pod_that_went_away_meanwhile_leaves_nothing_behind() -> None:
    play = ExtendedPlay(*nodes(1), extenders=[FILTER])
    pod = a_pod("web")
    play.see(pod)
    question = play.question()
    play.lose(pod)
    play.answer(Replied(question.id, {"NodeNames": []}))
    assert play.of(PatchPodStatus) == []
    play.see(a_pod("next"))
    assert play.question().body["Pod"].key == "default/next"


# --- prioritize ----------------------------------------------------------------------------------


def test_points_are_weighted_and_repeated_hosts_add_up() -> None:
    play = ExtendedPlay(*nodes(), extenders=[SCORE])
    play.see(a_pod("web"))
    play.reply([*scores(n0=6, n1=4), *scores(n1=3, elsewhere=99)])
    assert play.the(Bind).node == "n1"


@pytest.mark.parametrize("points", [0, 1])
def test_one_point_of_an_extender_outweighs_ten_of_a_hundred(points: int) -> None:
    """n1 is emptier by half: 50 points of NodeResourcesFit and nothing else; n0 gets 10 a point."""
    fit = [{"name": "NodeResourcesFit"}]
    off = {"enabled": fit, "disabled": [{"name": "*"}]}
    play = ExtendedPlay(
        *nodes(2, cpu="4", memory="4Gi"),
        extenders=[{**SCORE, "weight": 3}],
        profiles=[{"schedulerName": "default-scheduler", "plugins": {"score": off}}],
    )
    play.see(a_pod("there").requests(cpu="800m", memory="800Mi").on("n0"))  # 20 of a hundred less
    play.see(a_pod("web").requests(cpu="1", memory="1Gi"))
    play.reply(scores(n0=points))
    assert play.the(Bind).node == ("n0" if points else "n1")


def test_all_that_score_are_asked_at_the_same_time() -> None:
    play = ExtendedPlay(*nodes(), extenders=[SCORE, {**SCORE, "weight": 9}])
    play.see(a_pod("web"))
    one, two = play.of(AskExtender)
    play.answer(Replied(two.id, scores(n2=5)))
    assert play.of(Bind) == []
    play.answer(Replied(one.id, scores(n0=9)))
    assert play.the(Bind).node == "n2"


@pytest.mark.parametrize("value", [None, [{"Host": "n1", "Score": 1.5}], "nonsense", [3]])
def test_points_that_make_no_sense_are_no_points(value: Any) -> None:
    play = ExtendedPlay(*nodes(), extenders=[SCORE])
    play.see(a_pod("web"))
    play.reply(value)
    assert play.the(Bind).node in {"n0", "n1", "n2"}


# --- preempt -------------------------------------------------------------------------------------


def a_full_cluster(count: int = 2, **extender: Any) -> ExtendedPlay:
    """Nodes, each with room for its victim alone."""
    play = ExtendedPlay(*nodes(count, cpu="2"), extenders=[an_extender(**extender)])
    for number in range(count):
        play.see(a_pod(f"victim-{number}").requests(cpu="2").on(f"n{number}"))
    return play


def preemptor() -> PodBuilder:
    return a_pod("web").requests(cpu="2").priority(5)


def victims(**uids: str) -> dict[str, Any]:
    return {"NodeNameToMetaVictims": {node: {"Pods": [{"UID": uid}]} for node, uid in uids.items()}}


def test_candidates_are_proposed_and_the_answer_is_followed() -> None:
    play = a_full_cluster(preemptVerb="preempt")
    play.see(preemptor())
    assert play.question().body["NodeNameToMetaVictims"] == {
        "n0": {"Pods": [{"UID": "uid-victim-0"}], "NumPDBViolations": 0},
        "n1": {"Pods": [{"UID": "uid-victim-1"}], "NumPDBViolations": 0},
    }
    play.reply(victims(n1="uid-victim-1"))
    patches = {patch.pod.name: patch for patch in play.of(PatchPodStatus)}
    assert patches["web"].nominated_node_name == "n1"
    play.answer(Done(patches["victim-1"].id))
    assert play.the(DeletePod).pod.name == "victim-1"


@pytest.mark.parametrize(
    ("value", "why"),
    [
        (victims(elsewhere="x"), 'nodeinfo not found for node name "elsewhere"'),
        (
            victims(n0="x"),
            (
                "extender: http://x claims to preempt pod (UID: &{x}) on node: n0, but the pod is"
                " not found on that node"
            ),
        ),
        (
            {"NodeNameToMetaVictims": {"n0": {"Pods": []}}},
            'expected at least one victim pod on node "n0"',
        ),
        (
            victims(n0="uid-important"),
            (
                "extender: http://x claims to preempt pod (UID: &{uid-important}) on node: n0, but"
                " its priority is not lower"
            ),
        ),
        (
            victims(n0="uid-equal"),
            (
                "extender: http://x claims to preempt pod (UID: &{uid-equal}) on node: n0, but"
                " its priority is not lower"
            ),
        ),
        (
            victims(free="uid-victim-0"),
            "extender: http://x claims a candidate node: free, which was not proposed to it",
        ),
        ({}, "no candidate node for preemption"),
    ],
)
def test_nobody_is_evicted_on_a_false_answer(value: Any, why: str) -> None:
    play = a_full_cluster(preemptVerb="preempt")
    play.see(a_pod("important").priority(7).on("n0"))
    play.see(a_pod("equal").priority(5).on("n0"))
    play.turn(Seen(NODE, a_node("free").taints("a=b:NoSchedule").build()))
    play.see(preemptor())
    play.reply(value)
    assert play.condition()["message"].endswith(f"preemption: {why}")
    assert play.of(DeletePod) == []
    assert [patch.pod.name for patch in play.of(PatchPodStatus)] == ["web"]


LACKS = 'preemption: expected at least one victim pod on node "n0"'
NONE = "preemption: 0/1 nodes are available: 1 No preemption victims found for incoming pod."
CHOSEN = "preemption: found a potential placement for pod on node n0, preempting 1 victims"


@pytest.mark.parametrize(
    ("minor", "verbs", "answer", "why", "goes"),
    [
        ("1.37", {"preemptVerb": "preempt"}, None, LACKS, ""),
        ("1.38", {"preemptVerb": "preempt"}, victims(n0="uid-low"), CHOSEN, "low"),
        (
            "1.38",
            {"preemptVerb": "preempt"},
            {"NodeNameToMetaVictims": {"n0": {"Pods": []}}},
            "preemption: no candidate node for preemption",
            "",
        ),
        ("1.38", {}, None, NONE, ""),
    ],
)
def test_extenders_find_victims_by_version(
    minor: str, verbs: dict[str, str], answer: Any, why: str, goes: str
) -> None:
    """Only the extender rejects the node, for something that a less important pod uses there."""
    extender = an_extender(filterVerb="filter", **verbs)
    play = ExtendedPlay(*nodes(1), extenders=[extender], gates=default_gates(minor))
    play.see(a_pod("low").requests(cpu="1").on("n0"))
    play.see(a_pod("web").requests(cpu="1").priority(5))
    play.reply({"FailedNodes": {"n0": "no device is free"}})
    if answer is not None:
        assert play.question().verb == "preempt"
        empty = {"n0": {"Pods": [], "NumPDBViolations": 0}}
        assert play.question().body["NodeNameToMetaVictims"] == empty
        play.reply(answer)
        if play.of(AskExtender):
            play.reply({"FailedNodes": {"n0": "no device is free"}})
    (note,) = play.notes()
    assert note.endswith(why)
    assert [mark.pod.name for mark in play.of(MarkVictim)] == [goes][: bool(goes)]


def test_a_node_the_extenders_never_want_is_not_emptied() -> None:
    play = a_full_cluster(filterVerb="filter")
    play.see(preemptor())
    assert sorted(play.question().body["NodeNames"]) == ["n0", "n1"]
    play.reply({"FailedAndUnresolvableNodes": {"n0": "never"}, "NodeNames": []})
    nominated = {p.pod.name: p.nominated_node_name for p in play.of(PatchPodStatus)}
    assert nominated == {"web": "n1", "victim-1": None}


def test_a_node_freed_in_vain_is_left_alone_and_three_end_evictions_for_a_minute() -> None:
    play = a_full_cluster(4, filterVerb="filter")
    play.see(preemptor())
    full, freed = {f"n{number}" for number in range(4)}, set[str]()
    while len(freed) < WASTED_NODES_MAX:
        assert set(play.question().body["NodeNames"]) == full - freed  # may one be emptied?
        play.reply({"NodeNames": sorted(full - freed)})
        patches = {patch.pod.name: patch for patch in play.of(PatchPodStatus)}
        node = patches["web"].nominated_node_name or ""
        victim = next(name for name in patches if name != "web")
        play.answer(Done(patches[victim].id))
        play.answer(Done(play.the(DeletePod).id))
        play.see(preemptor().status(nominatedNodeName=node))
        play.turn(Gone(POD, a_pod(victim).requests(cpu="2").on(node).build()), after_s=1)
        freed.add(node)
        for _ in range(2):  # about the nominated node, then about all that fit
            play.reply({"FailedNodes": dict.fromkeys(freed, "no")})
    why = "an extender refused the node on which room was made for this pod"
    assert play.condition()["message"].endswith(why)
    assert play.the(PatchPodStatus).nominated_node_name == ""

    play.turn(Seen(NODE, a_node("another").taints("a=b:NoSchedule").build()), after_s=WASTED_S)
    for _ in range(2):
        play.reply({"FailedNodes": dict.fromkeys(freed, "no")})
    assert set(play.question().body["NodeNames"]) == full - freed


@pytest.mark.parametrize("violating", ["n0", "n1"])
def test_the_violations_an_extender_counts_are_counted(violating: str) -> None:
    play = a_full_cluster(preemptVerb="preempt")
    play.see(preemptor())
    value = victims(n0="uid-victim-0", n1="uid-victim-1")
    value["NodeNameToMetaVictims"][violating]["NumPDBViolations"] = 1
    play.reply(value)
    patches = {patch.pod.name: patch for patch in play.of(PatchPodStatus)}
    assert patches["web"].nominated_node_name == {"n0": "n1", "n1": "n0"}[violating]


@pytest.mark.parametrize(
    ("value", "nominated"),
    [
        ({"FailedNodes": {"n0": "not now", "n1": "not now"}}, {"n0", "n1"}),
        (
            {"FailedNodes": {"n0": "x", "n1": "x"}, "FailedAndUnresolvableNodes": {"n0": "never"}},
            {"n1"},
        ),
        ({"FailedAndUnresolvableNodes": {"n0": "never", "n1": "never"}}, {""}),
        ({"NodeNames": ["n0"], "FailedAndUnresolvableNodes": {"n0": "x", "n1": "x"}}, {"n0"}),
    ],
)
def test_what_is_refused_for_now_may_be_emptied(value: Any, nominated: set[str]) -> None:
    play = a_full_cluster(filterVerb="filter")
    play.see(preemptor())
    play.reply(value)
    patches = {patch.pod.name: patch.nominated_node_name for patch in play.of(PatchPodStatus)}
    assert (patches["web"] or "") in nominated


# --- what is needed ------------------------------------------------------------------------------
