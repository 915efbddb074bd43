"""Pod groups whose places an extender has a say in: while it thinks, the world goes on."""

from typing import Any

from asched.core.cluster.facts import Fact, Refused, Replied, Seen
from asched.core.framework.effects import AskExtender, Bind, Effect
from asched.core.model.kinds import POD_GROUP
from tests.builders import PodBuilder, a_node, a_pod
from tests.playbook import GANGS, a_group, a_member, bound, places, seen_group
from tests.unit.core.extender.playing import ExtendedPlay, an_extender

ITS_OWN = [{"name": "example.com/dev", "ignoredByScheduler": True}]


class ThinkingPlay(ExtendedPlay):
    """`open`: questions that nobody has answered yet."""

    def turn(self, *facts: Fact, after_s: float = 0.0) -> list[Effect]:
        effects = super().turn(*facts, after_s=after_s)
        if not hasattr(self, "open"):
            self.open: list[AskExtender] = []
        self.open += self.of(AskExtender)
        return effects

    def allow(self) -> None:
        """The pod it was asked about may go to every node."""
        question = self.open.pop(0)
        self.answer(Replied(question.id, {"NodeNames": list(question.body["NodeNames"])}))

    def turn_down(self) -> None:
        question = self.open.pop(0)
        self.answer(Replied(question.id, {"NodeNames": [], "FailedNodes": {"n1": "not today"}}))


def wanting(name: str, group: str = "crew") -> PodBuilder:
    return a_member(name, group).requests({"example.com/dev": "1"}, cpu="1")


def a_play(cpu: int) -> ThinkingPlay:
    """One node; an extender that cares for pods that ask for its device; three pods that do."""
    play = ThinkingPlay(
        a_node("n1").allocatable({"example.com/dev": "9"}, cpu=str(cpu), pods="20"),
        extenders=[an_extender(filterVerb="filter", managedResources=ITS_OWN)],
        **GANGS,
    )
    for name in ("a", "b", "c"):
        play.see(wanting(name))
    seen_group(play)
    return play


def test_it_is_asked_about_one_pod_after_the_other() -> None:
    play = a_play(cpu=3)
    for _ in range(3):
        assert not bound(play)
        assert len(play.open) == 1
        play.allow()

    assert bound(play) == {"a", "b", "c"}


def test_a_pod_it_turns_down_costs_the_gang_its_quorum() -> None:
    play = a_play(cpu=3)
    play.allow()
    play.turn_down()
    play.allow()

    assert not bound(play)
    assert not places(play)
    assert "FailedScheduling: 0/1 nodes are available: 1 not today." in " ".join(play.notes())


def test_meanwhile_others_find_the_room_taken_and_hear_when_it_is_not() -> None:
    play = a_play(cpu=3)
    play.allow()
    play.allow()
    assert len(places(play)) == 2
    play.see(a_pod("other").requests(cpu="2"))
    assert not play.node_of("uid-other")

    play.turn_down()
    assert not places(play)
    play.turn(after_s=2)

    assert play.node_of("uid-other") == "n1"


def test_a_pod_that_goes_while_it_thinks_leaves_nothing_behind() -> None:
    play = a_play(cpu=3)
    play.allow()
    (first,) = places(play)

    play.lose(wanting(first))
    while play.open:
        play.allow()
    play.turn(*(Refused(b.id, 404, "gone", "NotFound") for b in play.of(Bind)))

    assert not places(play)
    requested: Any = play.parts.cluster.nodes.columns.read("requested")
    assert requested[0].tolist()[0] == 0


def test_another_group_that_needs_it_waits_for_its_turn() -> None:
    play = a_play(cpu=6)
    play.allow()
    for name in ("x", "y"):
        play.see(wanting(name, "other"))
    play.turn(Seen(POD_GROUP, a_group("other", 2)))
    assert [q.body["Pod"].key for q in play.open] == ["default/b"]

    play.allow()
    play.allow()
    assert bound(play) == {"a", "b", "c"}
    assert [q.body["Pod"].key for q in play.open] == ["default/x"]
    play.allow()
    play.allow()

    assert bound(play) == {"x", "y"}


def test_a_pod_of_the_group_that_comes_meanwhile_waits_for_the_outcome() -> None:
    """It needs no extender, and with the places of those on trial the gang would be complete."""
    play = a_play(cpu=3)
    play.allow()
    play.allow()
    play.see(a_member("d"))
    assert not bound(play)
    assert not places(play) & {"d"}

    play.turn_down()  # two of three have places, and give them back

    assert not bound(play)
    assert not play.node_of("uid-d")
