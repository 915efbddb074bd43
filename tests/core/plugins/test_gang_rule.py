"""What the rules of gangs have in common: gate, permit, and who is worth another try."""

from typing import Any

from asched.core.framework.points import Hint
from asched.core.framework.status import Code, Status, unresolvable
from asched.core.framework.waiting import WaitingPod, WaitingPods
from asched.core.model.kinds import POD, POD_GROUP
from asched.core.plugins.gang_rule import GangRule
from asched.core.state.cluster import Cluster
from asched.core.state.facts import Seen
from tests.builders import PodBuilder, a_cluster, a_node, a_pod, pending
from tests.core.preemption.group_stage import a_group


class Rule(GangRule):
    name = "Rule"
    is_coscheduled = False
    too_few_pods = unresolvable("too few pods")
    too_few_places = Status(Code.WAIT, ("too few places",))

    def unknown_group(self, name: str) -> str:
        return f"no group {name}"

    def not_found(self, name: str) -> str:
        return f"{name} not found"

    def ready(self, pods: Any) -> int:
        return len(pods.unplaced) + len(pods.placed)

    def placed(self, pods: Any) -> int:
        return len(pods.placed)

    def patience_s(self, gang: Any) -> float:
        return 7.0

    def _offered_by_object(self, _old: Any, new: Any) -> tuple[str, ...]:
        return (new.metadata.key,)


class OfLabels(Rule):
    is_coscheduled = True


def member(name: str) -> PodBuilder:
    return a_pod(name).spec(schedulingGroup={"podGroupName": "crew"})


def labelled(name: str) -> PodBuilder:
    return a_pod(name).labels({"scheduling.x-k8s.io/pod-group": "crew"})


def a_rule(*pods: PodBuilder, minimum: int | None = 2) -> tuple[Rule, Cluster]:
    cluster = a_cluster(a_node("n1"), pods=pods)
    if minimum is not None:
        group = a_group("crew", min_count=minimum or None)
        cluster.apply(Seen(POD_GROUP, group))
    return Rule(cluster), cluster


def test_a_rule_minds_the_groups_of_its_own_api() -> None:
    rule, cluster = a_rule()
    theirs = OfLabels(cluster)
    assert (rule.key_of(member("a").build()), theirs.key_of(member("a").build())) == (
        "default/crew",
        "",
    )
    assert rule.key_of(labelled("a").build()) == ""
    assert theirs.key_of(labelled("a").build()) == "scheduling.x-k8s.io:default/crew"
    assert rule.key_of(a_pod().build()) == ""


def test_a_pod_waits_outside_for_its_group_and_enough_of_it() -> None:
    pod = member("a").build()
    assert a_rule(member("a"), minimum=None)[0].pre_enqueue(pod).message == "no group crew"
    assert a_rule(member("a"))[0].pre_enqueue(pod) == Rule.too_few_pods
    assert a_rule(member("a"), member("b"))[0].pre_enqueue(pod).is_success
    assert a_rule(member("a"), minimum=0)[0].pre_enqueue(pod).is_success, "it is no gang"
    assert a_rule()[0].pre_enqueue(a_pod("alone").build()).is_success


def permitted(rule: Rule, cluster: Cluster, name: str) -> tuple[Status, float]:
    info = pending(cluster, member(name))
    cluster.assume(info, "n1")
    status, patience_s = rule.permit(info, "n1")
    if status.code is Code.WAIT:
        waiting = WaitingPod(info, "n1", "default-scheduler")
        waiting.deadlines = {"Rule": (patience_s, patience_s), "Other": (1.0, 1.0)}
        cluster.singleton(WaitingPods.of).add(waiting)
    return status, patience_s


def test_the_last_place_lets_all_of_them_go() -> None:
    rule, cluster = a_rule(member("a"), member("b"))
    assert permitted(rule, cluster, "a") == (Rule.too_few_places, 7.0)
    status, _ = permitted(rule, cluster, "b")
    assert status.is_success
    waiting = cluster.singleton(WaitingPods.of).get("uid-a")
    assert waiting is not None
    assert list(waiting.deadlines) == ["Other"], "this one is content, others may not be"


def test_who_has_no_gang_has_no_companions_to_wait_for() -> None:
    rule, cluster = a_rule(minimum=0)
    assert permitted(rule, cluster, "a") == (Status(Code.SUCCESS), 0.0)
    assert rule.permit(pending(cluster, a_pod("alone")), "n1")[0].is_success


def test_a_group_that_went_is_an_error() -> None:
    rule, cluster = a_rule(minimum=None)
    status, _ = permitted(rule, cluster, "a")
    assert status.code is Code.ERROR
    assert status.message == "failed to get podGroup default/crew: crew not found"


def test_another_pod_of_a_complete_group_is_worth_a_try() -> None:
    rule, cluster = a_rule(member("a"))
    own, other = member("a").build(), member("b").build()
    assert rule.pod_appeared(own, None, other) is Hint.SKIP, "it would be stopped at the gate"
    cluster.apply(Seen(POD, other))
    assert rule.pod_appeared(own, None, other) is Hint.QUEUE
    assert rule.pod_appeared(own, None, a_pod("alone").build()) is Hint.SKIP
    assert rule.pod_appeared(a_pod("alone").build(), None, other) is Hint.SKIP
    unknown, _ = a_rule(member("a"), member("b"), minimum=None)
    assert unknown.pod_appeared(own, None, other) is Hint.SKIP
    assert rule.has_all_pods("default/crew")
