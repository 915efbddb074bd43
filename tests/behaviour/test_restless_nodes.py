"""A node that changes many times in a second takes a tenth of the time; its newest change counts.

Each change of a node notifies the waiting pods that it may help. Here these are so many that this
takes longer than a turn. Time is virtual.
"""

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from asched.core.cluster.facts import Gone, Seen
from asched.core.framework.effects import Bind
from asched.core.model.kinds import NODE, POD
from asched.plugin import (
    Action,
    Codes,
    FilterPlugin,
    Hint,
    NodeView,
    PodInfo,
    Reason,
    Registration,
    Trigger,
)
from tests.builders import NodeBuilder, a_node, a_pod
from tests.playbook import Play

#: More than a turn's work: some ten microseconds each.
WAITING = 600
NOTICE_S = 10e-6
#: So long a version of a node waits at most, in seconds.
REST_S = 2.0


class Shy(FilterPlugin):
    """Rejects pods with the label `shy`, and counts how often a change of a node was noticed."""

    name = "Shy"
    reasons = (Reason("node(s) were too loud", resolvable=False),)
    notices: ClassVar[list[str]] = []

    def registrations(self) -> Sequence[Registration]:
        return (Registration(Trigger(NODE.resource, Action.UPDATE_NODE_LABEL), self._noticed),)

    def _noticed(self, _pod: Any, _old: Any, new: Any) -> Hint:
        self.notices.append(new.name)
        return Hint.SKIP

    def filter(self, pod: PodInfo, nodes: NodeView, data: Any) -> Codes:
        is_shy = "shy" in (pod.pod.metadata.labels or {})
        return np.full(nodes.size, int(is_shy), dtype=np.int32)


def restless(version: int) -> NodeBuilder:
    return a_node("restless").labels(version=str(version)).metadata(resourceVersion=str(version))


def a_play() -> Play:
    play = Play(restless(0), a_node("calm"), plugins=[Shy])
    shy = (a_pod(f"shy{n}").labels(shy=str(n)).build() for n in range(WAITING))
    play.turn(*(Seen(POD, pod) for pod in shy))
    rest(play)
    Shy.notices.clear()
    return play


def rest(play: Play) -> list[str]:
    """Run turns until nothing is left to do at once; the nodes of the bindings."""
    nodes = [bind.node for bind in play.of(Bind)]
    while (due_s := play.machine.next_deadline_s()) is not None and due_s <= play.now_s:
        play.turn()
        nodes += [bind.node for bind in play.of(Bind)]
    return nodes


def see(play: Play, node: NodeBuilder) -> None:
    play.turn(Seen(NODE, node.build()))
    rest(play)


def placed(play: Play, name: str, **labels: str) -> list[str]:
    """The node that a pod gets which selects these labels."""
    play.see(a_pod(name).selects(**labels))
    return rest(play)


def test_the_changes_of_one_node_take_a_tenth_of_the_time() -> None:
    play = a_play()
    for version in range(1, 101):
        play.now_s += 0.02
        see(play, restless(version))
    first, later_s = WAITING * NOTICE_S, (len(Shy.notices) - WAITING) * NOTICE_S
    assert 0.0 < later_s <= (2.0 - first) / 10


def test_the_newest_version_counts_after_a_while() -> None:
    play = a_play()
    for version in range(1, 11):
        see(play, restless(version))
    assert placed(play, "early", version="10") == []
    due_s = play.machine.next_deadline_s()
    assert due_s is not None
    assert due_s - play.now_s <= REST_S
    play.now_s = due_s
    play.turn()
    assert rest(play) == ["restless"]
    assert len(Shy.notices) == 2 * WAITING, "the versions between were not handled"


def test_a_node_that_has_rested_is_handled_at_once() -> None:
    play = a_play()
    see(play, restless(1))
    play.now_s += REST_S
    see(play, restless(2))
    assert placed(play, "web", version="2") == ["restless"]


def test_other_nodes_do_not_wait() -> None:
    play = a_play()
    see(play, restless(1))
    see(play, a_node("calm").labels(quiet="yes"))
    assert placed(play, "web", quiet="yes") == ["calm"]


def test_a_deletion_does_not_wait_and_a_new_node_of_the_name_counts() -> None:
    play = a_play()
    see(play, restless(1))
    see(play, restless(2))
    play.turn(Gone(NODE, restless(2).build()))
    rest(play)
    assert placed(play, "early", version="2") == []
    see(play, restless(3).metadata(uid="another"))
    assert placed(play, "late", version="3") == ["restless"]
