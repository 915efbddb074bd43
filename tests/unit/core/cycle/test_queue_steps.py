"""What follows for the queue from what was seen: who hears of it, and whose place is given back."""

import pytest

from asched.core.framework.effects import Bind
from tests.builders import PodBuilder, a_node, a_pod
from tests.playbook import Play


@pytest.mark.parametrize(
    "seen", [a_pod().requests(cpu="2").on("n2"), a_pod().requests(cpu="1").on("n1")]
)
def test_a_place_that_the_api_does_not_confirm_is_free_for_others_at_once(seen: PodBuilder) -> None:
    """Somebody else bound it elsewhere, or it has become smaller meanwhile."""
    play = Play(a_node("n1").allocatable(cpu="2"), a_node("n2").allocatable(cpu="500m"))
    play.see(a_pod().requests(cpu="2"))
    assert play.the(Bind).node == "n1"
    play.see(a_pod("late").requests(cpu="1"))
    assert not play.of(Bind)

    play.see(seen)
    play.turn(after_s=10.0)

    assert play.node_of("uid-late") == "n1"
