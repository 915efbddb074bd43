"""Vast pods that come enter the queue one by one, when others had their share."""

from collections.abc import Callable

import pytest

from asched.core.cluster import pod_classes
from asched.core.cluster.facts import Gone, Seen
from asched.core.cycle.place_faults import fault_of
from asched.core.cycle.turn_limit import CountedLimit
from asched.core.model.kinds import POD
from asched.core.model.pod import Pod
from asched.core.model.vast import VAST_BYTES
from tests.builders import PodBuilder, a_node, a_pod
from tests.plays.gang_plays import bound
from tests.plays.playbook import Play

KEYS_OF_VAST = [{"key": f"k{i}", "operator": "Exists"} for i in range(VAST_BYTES // 16)]


def vast(pod: str | PodBuilder) -> PodBuilder:
    return (a_pod(pod) if isinstance(pod, str) else pod).spec(tolerations=KEYS_OF_VAST)


def a_play(**about: object) -> Play:
    """Where such a pod was met a moment ago."""
    play = Play(a_node("n1").allocatable(cpu="64", memory="8Gi", pods="110"), **about)
    play.machine.limit = CountedLimit(10)  # nobody resumes while others have something to do
    warning = vast("warning").build()
    play.turn(Seen(POD, warning))
    play.turn(Gone(POD, warning))
    play.turn()  # the attempt that was to begin ends
    return play


def rest(play: Play) -> set[str]:
    """Whoever is bound in turns until nothing is left to do at once."""
    found: set[str] = set()
    for _ in range(100):
        play.turn()
        found |= bound(play)
        if play.machine.next_deadline_s() != 0.0:
            return found
    raise AssertionError("it never ends")


@pytest.fixture
def keys_made(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of pods of which the key was made."""
    made: list[str] = []
    make: Callable[..., bytes] = pod_classes.spec_key

    def spec_key(pod: Pod) -> bytes:
        made.append(pod.metadata.name)
        return make(pod)

    monkeypatch.setattr(pod_classes, "spec_key", spec_key)
    return made


def test_nothing_is_made_of_them_while_others_come(keys_made: list[str]) -> None:
    play = a_play()
    crowd = [Seen(POD, vast(f"vast-{i}").build()) for i in range(5)]
    for turn in range(4):
        other = a_pod(f"other-{turn}").build()
        play.turn(*(crowd if turn == 0 else ()), Seen(POD, other))
        assert bound(play) == {other.metadata.name}
    assert not [name for name in keys_made if name.startswith("vast")]
    assert play.machine.next_deadline_s() == 0.0
    keys = play.parts.cluster.pods_seen
    assert not [key for key in keys if fault_of(play.machine.context, key)], "an audit knows"

    play.turn()
    assert len({name for name in keys_made if name.startswith("vast")}) == 1, "one by one"
    assert rest(play) | bound(play) == {f"vast-{i}" for i in range(5)}
