"""Who would have to go from a node so that a pod fits there, and within the quotas."""

from typing import Any

import pytest

from asched.core.cluster.audit import recount
from asched.core.framework.preemption_trial import Candidate
from asched.core.framework.status import Status
from asched.core.framework.waiting import WaitingPods
from asched.core.plugins.capacity.plugin import CapacityScheduling, Victims
from tests.builders import PodBuilder
from tests.playbook import Play
from tests.unit.core.plugins.capacity.quota_plays import a_play, big, pod, quota, room

NO_VICTIMS = "No preemption victims found for incoming pod"


class Scene:
    """One node of four CPUs, and namespaces that are guaranteed two each."""

    def __init__(self, *placed: PodBuilder, **args: Any) -> None:
        self.play: Play = a_play(room("n1", cpu=4), **args)
        self.play.machine.is_active = False
        for namespace in ("a", "b"):
            quota(self.play, namespace, min={**big(0), "cpu": "2"}, max={**big(0), "cpu": "4"})
        for low in placed:
            self.play.see(low.on("n1"))

    def victims(self, wanted: PodBuilder) -> Victims:
        self.play.see(wanted)
        context = self.play.machine.context
        self.runner = context.runners["default-scheduler"]
        plugin = self.runner.profile.plugins["CapacityScheduling"]
        assert isinstance(plugin, CapacityScheduling)
        self.info = context.cluster.classes.info_of(wanted.build())
        cluster, asked = context.cluster, self.info.cls.accounted
        found = Victims(cluster, plugin._quotas, plugin._budgets, self.info, asked, asked)
        found.guarantees_min = plugin.args.guarantees_min
        return found

    def on_the_node(self, wanted: PodBuilder) -> Candidate | Status:
        found = self.victims(wanted)
        state = self.runner.cache.state_of(self.info)
        state.update(self.info)
        trial = self.runner.trial(state, WaitingPods(), 0, 1000.0)
        result = found.on(0, trial)
        assert recount(self.play.parts.cluster) == []
        return result

    def names(self, wanted: PodBuilder) -> list[str] | str:
        found = self.on_the_node(wanted)
        if isinstance(found, Status):
            return found.message
        assert (found.node, found.row) == ("n1", 0)
        return [info.pod.metadata.name for info in found.victims]


def test_within_its_min_it_takes_back_what_others_borrow() -> None:
    borrowed = [pod(f"b{number}", "b", priority=9 - number) for number in range(4)]
    assert Scene(*borrowed).names(pod("new", "a")) == ["b3"]
    assert Scene(*borrowed).names(pod("new", "a", cpu=2)) == ["b2", "b3"]


def test_no_more_is_taken_than_is_borrowed() -> None:
    full = [pod(f"b{number}", "b") for number in range(2)] + [pod(f"c{n}", "c") for n in range(2)]
    assert Scene(*full).names(pod("new", "a")) == NO_VICTIMS, "who is within his min keeps it"


def test_who_borrows_himself_pushes_out_his_own_of_lower_priority() -> None:
    own = [pod(f"a{number}", "a", priority=number) for number in range(4)]
    scene = Scene(*own)
    assert scene.names(pod("new", "a", priority=2)) == ["a0"]
    assert Scene(*own).names(pod("new", "a", priority=0)) == NO_VICTIMS


def test_pods_without_a_quota_push_out_their_like() -> None:
    others = [pod("c0", "c"), pod("c1", "c", priority=5), pod("b0", "b"), pod("b1", "b")]
    assert Scene(*others).names(pod("new", "c", priority=3)) == ["c0"]
    assert Scene(*others).names(pod("new", "c", priority=0)) == NO_VICTIMS
    assert Scene(*others).names(pod("new", "a")) == NO_VICTIMS, "and nobody with one pushes these"


def test_a_pod_that_would_not_fit_even_so_says_why() -> None:
    borrowed = [pod(f"b{number}", "b") for number in range(3)]
    found = Scene(*borrowed, pod("c", "c")).names(pod("new", "a", cpu=2))
    assert found == "Insufficient cpu", "one of three is borrowed, and that is not enough"


def test_quotas_may_forbid_what_would_fit() -> None:
    found = Scene(*[pod(f"b{number}", "b") for number in range(4)]).names(pod("new", "a", cpu=3))
    assert found == NO_VICTIMS, "beyond its min it has none of its own to push out"


@pytest.mark.parametrize(("deleted", "leaving"), [(False, False), (True, True)])
def test_room_that_is_about_to_be_made_is_waited_for(deleted: bool, leaving: bool) -> None:
    borrowed = [pod(f"b{number}", "b") for number in range(4)]
    if deleted:
        borrowed[0].metadata(deletionTimestamp="2026-01-01T00:00:00Z")
    victims = Scene(*borrowed).victims(pod("new", "a"))
    assert victims.are_leaving("n1") == leaving
    assert not victims.are_leaving("")
    assert not victims.are_leaving("gone")
