"""A gang in full: what it lacks, and which of its pods find no place."""

from asched.core.cluster.facts import Seen
from asched.core.model.kinds import COSCHEDULING_GROUP
from asched.serve.view.gangs import one_gang
from tests.builders import room
from tests.playbook import a_label_group, a_label_member, label_gang_play, settled


def test_a_gang_is_told_with_its_min_resources() -> None:
    play = label_gang_play(room("n1", 4))
    group = a_label_group("pi", 1, minResources={"cpu": "3"})
    play.turn(Seen(COSCHEDULING_GROUP, group))
    play.see(a_label_member("driver", "pi"))
    settled(play)
    told = one_gang(play.machine.context, "default/pi")
    assert told is not None
    assert (told["group"], told["placed"], told["minCount"]) == (
        *("scheduling.x-k8s.io:default/pi", 1, 1),
    )
    assert told["minResources"] == {"cpu": "3"}


def test_a_gang_without_pods_or_without_its_object_says_what_it_lacks() -> None:
    play = label_gang_play(room("n1", 4))
    play.turn(Seen(COSCHEDULING_GROUP, a_label_group("crew", 3)))
    told = one_gang(play.machine.context, "default/crew")
    assert told is not None
    assert (told["minCount"], told["pods"]) == (3, [])
    play.see(a_label_member("a", "crew"))
    told = one_gang(play.machine.context, "default/crew")
    assert told is not None
    assert "1 of minMember 3 pods exist" in told["lacks"]
    play.see(a_label_member("b", "other"))
    told = one_gang(play.machine.context, "default/other")
    assert told is not None
    assert "does not exist" in told["lacks"]
    assert one_gang(play.machine.context, "default/none") is None


def test_the_pod_that_no_node_takes_is_named() -> None:
    play = label_gang_play(room("n1", 4))
    play.turn(Seen(COSCHEDULING_GROUP, a_label_group("crew", 2)))
    play.see(a_label_member("a", "crew"))
    play.see(a_label_member("large", "crew", cpu="8"))
    told = one_gang(play.machine.context, "default/crew")
    assert told is not None
    assert told["rejected"] == "default/large", told
