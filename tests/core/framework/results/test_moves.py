"""What moved since the last look, as bits."""

from asched.core.framework.results.moves import ALWAYS, COUNTS, EVERYTHING, OBJECTS, Moves
from asched.core.model.kinds import SERVICE
from asched.core.model.meta import ObjectMeta
from asched.core.model.workload import Service
from asched.core.state.facts import Seen
from asched.core.state.nodes import Aspect
from tests.builders import a_cluster, a_node

LABELS, TAINTS = int(Aspect.LABELS), int(Aspect.TAINTS)


def test_bits_say_what_moved_since_the_last_look_that_was_settled() -> None:
    cluster = a_cluster(a_node("n0"), a_node("n1"))
    moves = Moves(cluster)
    assert moves.look() == EVERYTHING
    assert moves.look() == EVERYTHING  # what came of the first one, nobody said
    moves.settle()
    assert moves.look() == ALWAYS
    moves.settle()
    cluster.nodes.log.add(0, LABELS)
    assert moves.look() == ALWAYS | LABELS
    cluster.nodes.log.add(1, TAINTS)
    assert moves.look() == ALWAYS | LABELS | TAINTS
    moves.settle()
    cluster.counts += 1
    assert moves.look() == ALWAYS | COUNTS
    cluster.apply(Seen(SERVICE, Service(ObjectMeta(name="s", namespace="d"))))
    assert moves.look() == ALWAYS | COUNTS | OBJECTS
    moves.settle()
    assert moves.look() == ALWAYS


def test_a_look_at_an_empty_cluster_or_at_a_log_that_forgot_tells_everything() -> None:
    cluster = a_cluster()
    moves = Moves(cluster)
    assert moves.look() == EVERYTHING
    moves.settle()
    cluster.nodes.log.forget()
    assert moves.look() == EVERYTHING
