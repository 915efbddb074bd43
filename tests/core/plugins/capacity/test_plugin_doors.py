"""CapacityScheduling at its doors: what it hears of, who is asked anew, and what it says."""

import contextlib
import itertools
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from asched.core.config.args import CapacitySchedulingArgs
from asched.core.framework.points import IDLE, PostFilterResult
from asched.core.framework.trial import Candidate
from asched.core.framework.waiting import WaitingPods
from asched.core.model.decode import decode
from asched.core.model.kinds import NODE
from asched.core.model.kinds import POD_DISRUPTION_BUDGET as BUDGET
from asched.core.plugins.capacity import plugin as capacity
from asched.core.plugins.capacity.plugin import CapacityScheduling
from asched.core.state.budget import OutOfTurn
from asched.core.state.facts import Seen
from tests.builders import PodBuilder, a_pod
from tests.core.cycle.playbook import Play
from tests.core.plugins.capacity.test_plugin import GPU, a_play, big, bound, pod, quota, room
from tests.heard import heard

NONE_MAY_GO = {
    "metadata": {"name": "db", "namespace": "b", "uid": "uid-db"},
    "spec": {"selector": {"matchLabels": {"app": "db"}}},
    "status": {"disruptionsAllowed": 0},
}


def plugin_of(play: Play) -> CapacityScheduling:
    found = play.machine.context.runners["default-scheduler"].profile.plugins["CapacityScheduling"]
    assert isinstance(found, CapacityScheduling)
    return found


def info_of(play: Play, one: PodBuilder) -> Any:
    return play.parts.cluster.classes.info_of(one.build())


def test_what_it_listens_to() -> None:
    assert list(heard(plugin_of(a_play()).registrations())) == [
        "AssignedPod: Delete",
        "scheduling.x-k8s.io/ElasticQuota: Add, Delete, Update",
        "kueue.x-k8s.io/LocalQueue: Add, Delete",
    ]


def test_without_arguments_a_min_is_no_guarantee() -> None:
    cluster = a_play().parts.cluster
    assert CapacityScheduling(None, cluster).args == CapacitySchedulingArgs()
    args = CapacitySchedulingArgs(guarantees_min=True)
    assert CapacityScheduling(args, cluster).args is args


def test_only_pods_of_namespaces_with_a_quota_are_asked_about_one_by_one() -> None:
    play = a_play(room("n1"))
    quota(play, "a", min=big(2))
    plugin = plugin_of(play)
    keys = [plugin.share_key(info_of(play, pod("p", "a", cpu=cpus))) for cpus in (1, 2, 1)]
    assert keys[0] == keys[2] != keys[1]
    assert IDLE not in keys
    assert plugin.share_key(info_of(play, pod("p", "free"))) is IDLE


# --- what nominated pods are to use --------------------------------------------------------------


def test_of_nominated_pods_count_equals_of_the_namespace_and_others_within_their_min() -> None:
    """In whatever order they are known; neither the pod itself nor who is placed counts twice."""
    others = {
        "itself": (pod("new", "a", cpu=1, priority=5), False),
        "lower": (pod("lower", "a", cpu=2, priority=4), False),
        "equal": (pod("equal", "a", cpu=4, priority=5), False),
        "free": (pod("free", "c", cpu=8), False),
        "within": (pod("within", "b", cpu=16), False),
        "placed": (pod("placed", "a", cpu=1, priority=9), True),
    }
    for order in itertools.islice(itertools.permutations(others), 0, None, 37):
        play = a_play(room("n1", cpu=100))
        play.machine.is_active = False
        quota(play, "a", min=big(50))
        quota(play, "b", min=big(50))
        plugin = plugin_of(play)
        for name in order:
            one, _ = others[name]
            play.see(one)
            plugin._nominator.add(one.build(), "n1")
        for name, (one, is_placed) in others.items():
            if is_placed:
                info = play.parts.cluster.classes.info_of(one.build())
                play.parts.cluster.placed[f"uid-{name}"] = info
        ours, everybodys = plugin.wanted(info_of(play, others["itself"][0]))
        assert (ours["cpu"], everybodys["cpu"]) == (5000, 21000), order


def test_a_min_guarantees_what_is_asked_beside_what_is_used() -> None:
    """Three of four are used: one more is within the min, two are not."""
    for cpus, expected in ((1, ["new"]), (2, [])):
        play = a_play(room("n1", cpu=20), guaranteesMin=True)
        quota(play, "a", min=big(4))
        quota(play, "b", min=big(0))
        play.see(pod("a0", "a", cpu=3).on("n1"))
        play.see(pod("b0", "b", cpu=3).on("n1"))
        play.see(pod("new", "a", cpu=cpus))
        assert bound(play) == expected


def test_a_min_guarantees_what_the_pod_asks_for_whatever_else_is_used_beyond_it() -> None:
    """Two GPUs are used of one that is guaranteed: that is no matter of who asks for none."""
    for asks, expected in (({}, ["new"]), ({GPU: "1"}, [])):
        play = a_play(room("n1", cpu=20, **{GPU: "8"}), guaranteesMin=True)
        quota(play, "a", min={**big(4), GPU: "1"})
        quota(play, "b", min=big(0))
        play.see(a_pod("a0", "a").requests({"cpu": "1", GPU: "2"}).on("n1"))
        play.see(pod("b0", "b", cpu=9).on("n1"))
        play.see(a_pod("new", "a").requests({"cpu": "1", **asks}))
        assert bound(play) == expected


# --- making room ---------------------------------------------------------------------------------


def full(*nodes: str, **args: Any) -> Play:
    """Namespace b has borrowed all of what a is guaranteed, on every node; nobody is asked yet."""
    play = a_play(*(room(name, cpu=2) for name in nodes), **args)
    quota(play, "a", min=big(2 * len(nodes)))
    quota(play, "b", min=big(0))
    for name in nodes:
        for number in range(2):
            play.see(pod(f"{name}-{number}", "b", priority=number).on(name))
    return play


class Asking:
    """A pod that no node takes, and whom the plugin may push out of them."""

    def __init__(self, play: Play, one: PodBuilder) -> None:
        play.machine.is_active = False
        play.see(one)
        self.play, self.plugin, self.cluster = play, plugin_of(play), play.parts.cluster
        self.info = info_of(play, one)
        runner = play.machine.context.runners["default-scheduler"]
        state = runner.cache.state_of(self.info)
        state.update(self.info)
        self.trial = runner.trial(state, WaitingPods(), 0, play.now_s)
        rows = np.array(sorted(self.cluster.nodes.row_of.values()), dtype=np.int64)
        self.rejection: Any = SimpleNamespace(candidates=rows, node_count=len(rows))

    def ask(self) -> PostFilterResult:
        found = self.plugin.post_filter(self.info, self.rejection, self.trial)
        assert isinstance(found, PostFilterResult)
        return found


@pytest.mark.parametrize("is_gone", [True, False])
def test_who_must_not_preempt_or_is_gone_does_not(is_gone: bool) -> None:
    new = pod("new", "a")
    asking = Asking(full("n1"), new if is_gone else new.spec(preemptionPolicy="Never"))
    if is_gone:
        asking.play.lose(new)
    result = asking.ask()
    assert result.status.message == "preemption: not eligible due to preemptionPolicy=Never."
    assert result.nomination.node is None


@pytest.mark.parametrize("is_ours", [True, False], ids=["by us", "told by the API"])
def test_who_was_promised_a_node_waits_for_those_who_leave_it(is_ours: bool) -> None:
    play = full("n1", "n2")
    leaving = pod("n1-0", "b").metadata(deletionTimestamp="2026-01-01T00:00:00Z")
    play.see(leaving.on("n1"))
    new = pod("new", "a")
    asking = Asking(play, new if is_ours else new.status(nominatedNodeName="n1"))
    if is_ours:
        asking.trial.nominator.add(new.build(), "n1")
    else:
        asking.trial.nominator.delete("uid-new")
    result = asking.ask()
    expected = "preemption: not eligible due to a terminating pod on the nominated node."
    assert result.status.message == expected
    assert result.nomination.node is None


def test_without_victims_every_node_says_so() -> None:
    play = a_play(room("n1", cpu=2), room("n2", cpu=2))
    quota(play, "a", min=big(4))
    result = Asking(play, pod("new", "a", cpu=3)).ask()
    said = "0/2 nodes are available: 2 No preemption victims found for incoming pod."
    assert result.status.message == f"preemption: {said}"
    assert result.nomination.node == ""


def test_where_nobody_may_be_pushed_out_every_node_says_so() -> None:
    asking = Asking(full("n1", "n2"), pod("new", "a"))
    asking.rejection.candidates = np.zeros(0, dtype=np.int64)
    assert "2 No preemption victims found" in asking.ask().status.message


@pytest.mark.parametrize("guarantees", [False, True])
def test_a_guaranteed_min_is_taken_back_even_where_all_use_too_much(guarantees: bool) -> None:
    """Whichever node gives its borrowed pods up, those on the other one are above all min."""
    play = a_play(room("n1", cpu=2), room("n2", cpu=2), guaranteesMin=guarantees)
    quota(play, "a", min=big(1))
    quota(play, "b", min=big(0))
    for name in ("n1-0", "n1-1", "n2-0", "n2-1"):
        play.see(pod(name, "b").on(name[:2]))
    result = Asking(play, pod("new", "a")).ask()
    assert len(result.victims) == (1 if guarantees else 0)
    if not guarantees:
        assert "2 global quota max exceeded" in result.status.message


def test_what_others_are_promised_is_not_what_the_namespace_asks_for() -> None:
    """Within its min it pushes out who borrows, though it is beyond it with others' promises."""
    play = a_play(room("n1", cpu=2), room("n2", cpu=9))
    play.machine.is_active = False
    quota(play, "a", min=big(2))
    quota(play, "b", min=big(2))
    quota(play, "c", min=big(0))
    promised = pod("promised", "b", cpu=2)
    play.see(promised)
    plugin_of(play)._nominator.add(promised.build(), "n2")
    for number in range(2):
        play.see(pod(f"c{number}", "c", priority=number).on("n1"))
    asking = Asking(play, pod("new", "a"))
    asking.rejection.candidates = np.zeros(1, dtype=np.int64)
    assert asking.ask().victims == ("c/c0",)


def test_pods_that_a_budget_protects_are_spared() -> None:
    """On their node for another pod there, and their node for another one."""
    play = full("n1", "n2")
    for name, node in (("n1-0", "n1"), ("n1-1", "n1"), ("n2-0", "n2")):
        play.see(pod(name, "b", priority=int(name[-1])).labels(app="db").on(node))
    play.turn(Seen(BUDGET, decode(BUDGET.record, NONE_MAY_GO)))
    result = Asking(play, pod("new", "a")).ask()
    assert (result.nomination.node, result.victims) == ("n2", ("b/n2-1",))


def test_each_row_is_told_how_many_protected_pods_go() -> None:
    play = full("n1")
    play.see(pod("n1-0", "b").labels(app="db").on("n1"))
    play.turn(Seen(BUDGET, decode(BUDGET.record, NONE_MAY_GO)))
    for cpus, violations in ((1, 0), (2, 1)):
        asking = Asking(play, pod("new", "a", cpu=cpus))
        plugin = asking.plugin
        plugin._budgets.catch_up()
        wanted = plugin.wanted(asking.info)
        victims = capacity.Victims(
            asking.cluster, plugin._quotas, plugin._budgets, asking.info, *wanted
        )
        found = victims.on(0, asking.trial)
        assert isinstance(found, Candidate)
        assert (len(found.victims), found.violations) == (cpus, violations)


def test_each_node_says_why_it_is_no_candidate() -> None:
    play = full("n1", "n2")
    play.turn(Seen(NODE, room("n3", cpu=1).build()))
    result = Asking(play, pod("new", "a", cpu=3)).ask()
    assert "2 Insufficient cpu" in result.status.message
    assert "1 No preemption victims found" in result.status.message


def test_every_row_is_tried_once_and_paid_for_by_its_pods() -> None:
    """An attempt that pauses goes on with the rows it has not tried."""
    asking = Asking(full("n1", "n2", "n3"), pod("new", "a"))
    budget, steps = asking.cluster.budget, 1 + capacity.POD_STEPS * 2
    before = budget.spent
    for _ in range(2):
        budget.open(1)
        with pytest.raises(OutOfTurn):
            asking.ask()
    budget.open(1)
    result = asking.ask()
    budget.close()
    assert budget.spent - before == 3 * steps
    assert result.victims == (f"b/{result.nomination.node}-0",)


def test_the_attempt_that_paused_longest_ago_begins_anew() -> None:
    """TRIED_MAX of them are kept: one that goes on counts as young."""
    monkeys = [f"m{number}" for number in range(capacity.TRIED_MAX + 1)]
    play = full("n1", "n2", "n3")
    asking = {name: Asking(play, pod(name, "a")) for name in monkeys}
    budget = play.parts.cluster.budget

    def spent(name: str) -> float:
        """How much a slice of one row comes to, or all that is left."""
        before = budget.spent
        budget.open(1)
        with contextlib.suppress(OutOfTurn):
            asking[name].ask()
        budget.close()
        return budget.spent - before

    def rest(name: str) -> float:
        before = budget.spent
        asking[name].ask()
        return budget.spent - before

    row = 1 + capacity.POD_STEPS * 2
    for name in monkeys[:-1]:
        assert spent(name) == row
    assert spent(monkeys[0]) == row  # two rows of three
    assert spent(monkeys[-1]) == row
    assert rest(monkeys[0]) == row
    assert rest(monkeys[-1]) == 2 * row
    assert rest(monkeys[1]) == 3 * row, "forgotten"
    assert rest(monkeys[2]) == 2 * row


@pytest.mark.parametrize("has_others", [True, False])
def test_a_candidate_that_changed_while_others_were_tried_is_judged_again(
    has_others: bool,
) -> None:
    """What was found before the pause holds no more: the victim is gone, or is another one."""
    play = full("n1", "n2")
    asking = Asking(play, pod("new", "a"))
    budget = play.parts.cluster.budget
    budget.open(1)
    with pytest.raises(OutOfTurn):
        asking.ask()
    budget.close()
    play.lose(pod("n1-0", "b", priority=0).on("n1"))
    if has_others:
        play.see(pod("n1-lowest", "b", priority=-9).on("n1"))
    result = asking.ask()
    expected = ("n1", ("b/n1-lowest",)) if has_others else ("n2", ("b/n2-0",))
    assert (result.nomination.node, result.victims) == expected


def test_a_candidate_that_became_a_worse_one_gives_way() -> None:
    play = full("n1", "n2")
    play.see(pod("n1-0", "b", priority=-5).on("n1"))
    asking = Asking(play, pod("new", "a"))
    budget = play.parts.cluster.budget
    budget.open(1)
    with pytest.raises(OutOfTurn):
        asking.ask()
    budget.close()
    play.lose(pod("n1-0", "b", priority=-5).on("n1"))
    play.see(pod("n1-2", "b", priority=5).on("n1"))
    result = asking.ask()
    assert (result.nomination.node, result.victims) == ("n2", ("b/n2-0",))
