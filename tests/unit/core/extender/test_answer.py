"""Our plugins' opinion, in the protocol's words."""

from typing import Any

import pytest

from asched.core.cluster.facts import Bound, Refused, Seen
from asched.core.config.defaults import configuration
from asched.core.extender import wire
from asched.core.extender.answer import NO_REASON, PRIORITY_MAX, UNKNOWN_NODE, Advisor
from asched.core.framework.effects import Bind
from asched.core.framework.status import SKIP, SUCCESS, Status
from asched.core.model.decode import MalformedObjectError
from asched.core.model.kinds import NODE, POD
from asched.host.assemble import Parts, build_runners
from tests.builders import NodeBuilder, PodBuilder, a_node, a_pod
from tests.volume_builders import a_claim, a_volume, lose, see

SPREAD = [{"schedulerName": "default-scheduler"}, {"schedulerName": "bare", "plugins": {
    "multiPoint": {
        "enabled": [{"name": "PrioritySort"}, {"name": "NodeName"}, {"name": "DefaultBinder"}],
        "disabled": [{"name": "*"}],
    }
}}]  # fmt: skip


def an_advisor(*objects: NodeBuilder | PodBuilder, **fields: Any) -> Advisor:
    parts = Parts.fresh()
    runners = build_runners(configuration({"profiles": SPREAD, **fields}), parts)
    for built in objects:
        kind = NODE if isinstance(built, NodeBuilder) else POD
        parts.cluster.apply(Seen(kind, built.build()))
    return Advisor(parts.cluster, runners)


def about(pod: PodBuilder, *names: str) -> wire.Arguments:
    return wire.Arguments(pod.json, None, names)


def scores(answer: list[dict[str, Any]]) -> dict[str, int]:
    return {entry["Host"]: entry["Score"] for entry in answer}


def test_nodes_are_sorted_into_passed_failed_and_hopeless() -> None:
    advisor = an_advisor(
        a_node("good"),
        a_node("small").allocatable(cpu="1"),
        a_node("tainted").taints("a=b:NoSchedule"),
        a_node("not asked about"),
    )
    names = ("good", "small", "tainted", "new")
    answer = advisor.filter(about(a_pod("web").requests(cpu="2"), *names))
    assert answer == {
        "Nodes": None,
        "NodeNames": ["good"],
        "FailedNodes": {},
        "FailedAndUnresolvableNodes": {
            "small": "Insufficient cpu",
            "tainted": "node(s) had untolerated taint(s)",
            "new": UNKNOWN_NODE,
        },
        "Error": "",
    }


def test_what_evictions_could_cure_is_told_apart() -> None:
    full = a_pod("there").requests(cpu="2").on("n1")
    advisor = an_advisor(a_node("n1").allocatable(cpu="2"), full)
    answer = advisor.filter(about(a_pod("web").requests(cpu="2"), "n1"))
    assert answer["FailedNodes"] == {"n1": "Insufficient cpu"}
    assert answer["FailedAndUnresolvableNodes"] == {}


def test_a_pod_that_prefilter_turns_away_fits_nowhere() -> None:
    pinned = a_pod("web").requires_nodes({"matchFields": [
        {"key": "metadata.name", "operator": "In", "values": ["n2"]}
    ]})  # fmt: skip
    advisor = an_advisor(a_node("n1"), a_node("n2"))
    answer = advisor.filter(about(pinned, "n1", "n2"))
    assert answer["NodeNames"] == ["n2"]
    (reason,) = answer["FailedAndUnresolvableNodes"].values()
    assert reason.startswith("node(s) didn't satisfy plugin")
    assert reason != NO_REASON


def test_the_pods_scheduler_name_picks_the_profile() -> None:
    advisor = an_advisor(a_node("n1").taints("a=b:NoSchedule"))
    assert advisor.filter(about(a_pod(), "n1"))["NodeNames"] == []
    assert advisor.filter(about(a_pod().spec(schedulerName="bare"), "n1"))["NodeNames"] == ["n1"]
    assert advisor.filter(about(a_pod().spec(schedulerName="else"), "n1"))["NodeNames"] == []


@pytest.mark.parametrize("named", ["default-scheduler", "bare", "else"])
def test_the_profile_of_its_pool_answers_for_a_pod(named: str) -> None:
    pools = [{"name": "open", "namespaces": ["default"], "profile": "bare"}]
    in_pool = a_node("n1").labels({"asched.dev/pool": "open"}).taints("a=b:NoSchedule")
    advisor = an_advisor(in_pool, pools=pools)
    assert advisor.filter(about(a_pod().spec(schedulerName=named), "n1"))["NodeNames"] == ["n1"]


def test_points_spread_between_the_worst_and_the_best() -> None:
    advisor = an_advisor(
        a_node("empty").allocatable(cpu="4"),
        a_node("half").allocatable(cpu="4"),
        a_node("tainted").taints("a=b:NoSchedule"),
        a_pod("there").requests(cpu="2").on("half"),
    )
    answer = advisor.prioritize(about(a_pod().requests(cpu="1"), "empty", "half", "tainted", "x"))
    assert scores(answer) == {"empty": PRIORITY_MAX, "half": 0, "tainted": 0, "x": 0}


def test_equal_nodes_are_equally_good() -> None:
    advisor = an_advisor(a_node("n1"), a_node("n2"))
    answer = advisor.prioritize(about(a_pod(), "n1", "n2"))
    assert scores(answer) == {"n1": PRIORITY_MAX, "n2": PRIORITY_MAX}


def test_candidates_are_left_where_the_pod_fits_without_the_victims() -> None:
    advisor = an_advisor(
        *(a_node(name).allocatable(cpu="2") for name in ("n1", "n2")),
        a_node("n3").taints("a=b:NoSchedule"),
        *(a_pod(f"on-{name}").requests(cpu="2").on(name) for name in ("n1", "n2")),
    )
    victims = {
        "n1": wire.MetaVictims(("uid-on-n1",), 1),
        "n2": wire.MetaVictims(("uid-unknown",), 0),
        "n3": wire.MetaVictims((), 0),
        "n4": wire.MetaVictims((), 0),
    }
    question = wire.PreemptionArguments(a_pod("web").requests(cpu="2").json, victims)
    assert advisor.preempt(question) == {
        "NodeNameToMetaVictims": {"n1": {"Pods": [{"UID": "uid-on-n1"}], "NumPDBViolations": 1}}
    }


@pytest.mark.parametrize("is_known", [True, False])
def test_bind_plugins_bind_pods_seen_or_not(is_known: bool) -> None:
    advisor = an_advisor(*((a_pod("web"),) if is_known else ()))
    steps = advisor.bind(wire.BindingArguments("web", "default", "uid-web", "n1"))
    bind = next(steps)
    assert isinstance(bind, Bind)
    assert (bind.pod.key, bind.pod.uid, bind.node) == ("default/web", "uid-web", "n1")
    with pytest.raises(StopIteration) as end:
        steps.send(Bound(bind.id) if is_known else Refused(bind.id, 409, "taken"))
    assert end.value.value.message == ("" if is_known else "taken")


def test_a_pod_that_is_none_is_a_bad_question() -> None:
    with pytest.raises(MalformedObjectError, match="Pod"):
        an_advisor(a_node("n1")).filter(wire.Arguments({"spec": 1}, None, ("n1",)))


def test_a_node_whose_room_is_promised_to_another_gets_no_points() -> None:
    promised = a_pod("first").requests(cpu="2").priority(9).status(nominatedNodeName="n1")
    advisor = an_advisor(*(a_node(n).allocatable(cpu="2") for n in ("n1", "n2")), promised)
    advisor._cluster.nominator.add(promised.build())
    question = about(a_pod("web").requests(cpu="1"), "n1", "n2")
    assert advisor.filter(question)["NodeNames"] == ["n2"]
    assert scores(advisor.prioritize(question)) == {"n1": 0, "n2": PRIORITY_MAX}


def pinned(name: str) -> PodBuilder:
    terms = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [name]}]}
    return a_pod("web").requires_nodes(terms)


def test_nobody_is_evicted_on_nodes_that_prefilter_rules_out() -> None:
    advisor = an_advisor(
        *(a_node(name).allocatable(cpu="2") for name in ("n1", "n2")),
        *(a_pod(f"on-{name}").requests(cpu="2").on(name) for name in ("n1", "n2")),
    )
    victims = {name: wire.MetaVictims((f"uid-on-{name}",), 0) for name in ("n1", "n2")}
    body = pinned("n2").requests(cpu="2").json
    answer = advisor.preempt(wire.PreemptionArguments(body, victims))
    assert list(answer["NodeNameToMetaVictims"]) == ["n2"]
    lost = claiming("missing").json
    answer = advisor.preempt(wire.PreemptionArguments(lost, victims))
    assert answer["NodeNameToMetaVictims"] == {}


def claiming(claim: str) -> PodBuilder:
    volume = {"name": "v", "persistentVolumeClaim": {"claimName": claim}}
    return a_pod("web").spec(volumes=[volume])


def test_what_passed_before_prefilter_turned_the_pod_away_passes_no_more() -> None:
    advisor = an_advisor(a_node("n1"))
    claim = a_claim("data", volume="pv")
    see(advisor._cluster, a_volume("pv", claim=("data", claim.metadata.uid), phase="Bound"))
    for is_there in (True, False, True):
        (see if is_there else lose)(advisor._cluster, claim)
        answer = advisor.filter(about(claiming("data"), "n1"))
        assert (answer["NodeNames"] == ["n1"]) is is_there
        points = scores(advisor.prioritize(about(claiming("data"), "n1")))
        assert points == {"n1": PRIORITY_MAX if is_there else 0}


def test_another_pod_of_the_name_is_bound_as_itself() -> None:
    advisor = an_advisor(a_node("n1"), a_pod("web"))
    bind = next(advisor.bind(wire.BindingArguments("web", "default", "uid-other", "n1")))
    assert isinstance(bind, Bind)
    assert bind.pod.uid == "uid-other"


def test_the_first_binder_that_does_not_pass_it_on_binds(monkeypatch: pytest.MonkeyPatch) -> None:
    class Saying:
        def __init__(self, *said: Status) -> None:
            self.said = list(said)

        def bind(self, _pod: object, _node: str) -> Any:
            yield from ()
            return self.said.pop()

    advisor = an_advisor(a_node("n1"))
    question = wire.BindingArguments("web", "default", "uid-web", "n1")
    for codes, left in (((SKIP, SUCCESS, SKIP), [0, 0, 1]), ((SKIP, SKIP), [0, 0])):
        binders = [Saying(code) for code in codes]
        for runner in advisor._runners.values():
            monkeypatch.setattr(runner, "binders", lambda _, binders=binders: binders)
        with pytest.raises(StopIteration) as end:
            next(advisor.bind(question))
        assert end.value.value.is_success is (SUCCESS in codes)
        assert [len(one.said) for one in binders] == left
