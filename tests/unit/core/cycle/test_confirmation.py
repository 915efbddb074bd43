"""The whole table of confirmations: what each answer to a binding, or to a read, comes to."""

from collections.abc import Sequence

import pytest

from asched.core.cluster.cluster import Cluster
from asched.core.cluster.facts import (
    Answer,
    Bound,
    Done,
    ReadGone,
    ReadPending,
    ReadPlaced,
    Refused,
    Seen,
    TimedOut,
    Unknown,
)
from asched.core.cycle.confirmation import (
    CONFLICTS_MAX,
    SENDS_MAX,
    STEPS,
    BindingPhase,
    follow,
    settle,
)
from asched.core.framework.effects import (
    LANDS_WITHIN_S,
    Bind,
    Effect,
    PodRef,
    ReadPod,
    WaitFor,
)
from asched.core.model.kinds import NODE, POD
from tests.builders import a_node, a_pod

WEB = PodRef(namespace="default", name="web", uid="uid-web", resource_version="1")
BIND = Bind(pod=WEB, node="n1")
YES, LOST = Bound(0), Unknown(0, "connection reset")
NO = Refused(0, 403, "forbidden", "Forbidden")
GONE = Refused(0, 404, 'pods "web" not found', "NotFound")
OURS = Refused(0, 409, 'pod web is already assigned to node "n1"', "Conflict")
THEIRS = Refused(0, 409, 'pod web is already assigned to node "n2"', "Conflict")
CHANGED = Refused(0, 409, "the object has been modified", "Conflict")
HERE, THERE = ReadPlaced(0, "n1"), ReadPlaced(0, "n2")
PENDING, VANISHED = ReadPending(0, "1"), ReadGone(0)
NEWER = ReadPending(0, "2")


def a_cluster() -> Cluster:
    cluster = Cluster()
    cluster.apply(Seen(NODE, a_node("n1").build()))
    cluster.apply(Seen(POD, a_pod("web").build()))
    return cluster


class Course:
    """A binding driven by hand: `waits` are the pauses so far, `asked` everything else."""

    def __init__(self, cluster: Cluster, *, sent_by_us: bool = True) -> None:
        self.cluster = cluster
        self.told: list[str] = []
        self.asked: list[type[Effect]] = []
        self.waits: list[float] = []
        self.result: Bound | Refused | None = None
        self.effect: Effect | None = None
        self.still_fits = True
        if sent_by_us:
            self.steps = settle(
                BIND, cluster, self.told.append, lambda _: WEB if self.still_fits else None
            )
        else:
            lost = Unknown(0, "the plugin took too long")
            self.steps = follow(BIND, cluster, self.told.append, lost, lambda _: None)
        self._go(None)

    def _go(self, answer: Answer | None) -> None:
        try:
            self.effect = self.steps.send(answer)  # type: ignore[arg-type]
        except StopIteration as end:
            self.effect, self.result = None, end.value
            return
        if isinstance(self.effect, WaitFor):
            self.waits.append(self.effect.timeout_s)
        else:
            self.asked.append(type(self.effect))

    def sit_out(self) -> None:
        """Nothing is seen while it waits."""
        while isinstance(self.effect, WaitFor):
            self._go(Done(0) if self.effect.ready() else TimedOut(0))

    def hear(self, *answers: Answer) -> "Course":
        for answer in answers:
            self.sit_out()
            wanted = (ReadPlaced, ReadPending, ReadGone, Unknown)
            if isinstance(self.effect, Bind):
                assert self.effect.pod == WEB
                assert self.effect.node == "n1"
                wanted = (Bound, Refused, Unknown, ReadPending)
            assert isinstance(answer, wanted), f"{answer} is no answer to {self.effect}"
            self._go(answer)
        return self

    def see(self, pod: object) -> None:
        self.cluster.apply(Seen(POD, pod))  # type: ignore[arg-type]


#: What was heard -> what it comes to: "ours", or the message of the refusal.
TABLE: Sequence[tuple[tuple[Answer, ...], str]] = [
    ((YES,), "ours"),
    ((NO,), "forbidden"),
    ((GONE,), "not found"),
    ((OURS,), "ours"),
    ((THEIRS,), 'already assigned to node "n2"'),
    ((CHANGED, HERE), "ours"),
    ((CHANGED, THERE), 'already assigned to node "n2"'),
    ((CHANGED, VANISHED), "not found"),
    ((CHANGED, PENDING, YES), "ours"),
    ((CHANGED, PENDING, NO), "forbidden"),
    ((CHANGED, LOST, LOST, PENDING, YES), "ours"),
    ((CHANGED, PENDING, LOST, PENDING, YES), "ours"),
    ((CHANGED, PENDING) * CONFLICTS_MAX + (CHANGED, PENDING), "has been modified"),
    # a request with an older version than the pod has now is never carried out
    ((LOST, NEWER, CHANGED, NEWER, NO), "forbidden"),
    # given up for want of answers, not because the pod changed once
    ((LOST, NEWER, CHANGED, NEWER, LOST, NEWER, LOST, NEWER), "lost on its way"),
    # not sent, since a write of ours has changed the pod
    ((NEWER, YES), "ours"),
    ((LOST, HERE), "ours"),
    ((LOST, THERE), 'already assigned to node "n2"'),
    ((LOST, VANISHED), "not found"),
    ((LOST, LOST, HERE), "ours"),
    ((LOST, LOST, LOST, VANISHED), "not found"),
    ((LOST, PENDING, YES), "ours"),
    ((LOST, PENDING, OURS), "ours"),
    ((LOST, PENDING, THEIRS), 'already assigned to node "n2"'),
    ((LOST, PENDING, GONE), "not found"),
    ((LOST, PENDING, LOST, HERE), "ours"),
    ((LOST, PENDING, LOST, THERE), 'already assigned to node "n2"'),
    ((LOST, PENDING, LOST, PENDING, YES), "ours"),
    # a refusal of the second request says nothing about the first one
    ((LOST, PENDING, NO, HERE), "ours"),
    ((LOST, PENDING, NO, PENDING), "lost on its way"),
    ((LOST, PENDING, CHANGED, THERE), 'already assigned to node "n2"'),
    ((LOST, PENDING, NO, VANISHED), "not found"),
    ((LOST, PENDING, NO, LOST, LOST, PENDING), "lost on its way"),
    ((LOST, PENDING, NO, LOST, HERE), "ours"),
]


@pytest.mark.parametrize(("heard", "comes_to"), TABLE, ids=str)
def test_what_each_course_of_answers_comes_to(heard: tuple[Answer, ...], comes_to: str) -> None:
    course = Course(a_cluster()).hear(*heard)
    assert course.effect is None, "it has come to an end"
    if comes_to == "ours":
        assert isinstance(course.result, Bound)
    else:
        assert isinstance(course.result, Refused)
        assert comes_to in course.result.message
    assert course.told.count("connection reset") == heard.count(LOST)


def test_the_table_leaves_no_step_out() -> None:
    ends = {BindingPhase.ACCEPTED, BindingPhase.RELEASED}
    answers = {BindingPhase.SENT: Bind.answers, BindingPhase.RESENT: Bind.answers}
    wanted = {
        (phase, answer)
        for phase in BindingPhase
        if phase not in ends
        for answer in answers.get(phase, ReadPod.answers)
    }
    assert set(STEPS) == wanted


def test_no_number_of_unknown_reads_ends_it() -> None:
    course = Course(a_cluster()).hear(LOST)
    for _ in range(200):
        course.hear(LOST)
        assert course.result is None
    assert set(course.asked[1:]) == {ReadPod}
    assert course.waits[:6] == [0.2, 0.4, 0.8, 1.6, 3.2, 5.0]
    assert max(course.waits) == 5.0


def test_a_binding_is_sent_so_often_and_then_its_place_is_held() -> None:
    course = Course(a_cluster()).hear(*(LOST, PENDING) * SENDS_MAX)
    assert course.asked.count(Bind) == SENDS_MAX
    assert isinstance(course.effect, WaitFor)
    assert course.effect.timeout_s == LANDS_WITHIN_S
    course.hear(PENDING)
    assert isinstance(course.result, Refused)
    assert course.asked.count(Bind) == SENDS_MAX


def test_nothing_is_sent_once_more_for_somebody_else() -> None:
    course = Course(a_cluster(), sent_by_us=False)
    assert course.told == ["the plugin took too long"]
    course.hear(PENDING)
    assert course.waits == [LANDS_WITHIN_S]
    course.hear(HERE)
    assert isinstance(course.result, Bound)
    assert Bind not in course.asked


@pytest.mark.parametrize("heard", [(LOST, LOST), (LOST, PENDING) * SENDS_MAX], ids=["lost", "held"])
@pytest.mark.parametrize("node", ["n1", "n2"])
def test_the_watch_may_settle_it(heard: tuple[Answer, ...], node: str) -> None:
    course = Course(a_cluster()).hear(*heard)
    assert isinstance(course.effect, WaitFor)
    assert course.effect.on == (("Pod", "default/web"),)
    assert not course.effect.ready()
    course.see(a_pod("web").metadata(resourceVersion="2").build().on(node))
    assert course.effect.ready()
    course.sit_out()
    if node == "n1":
        assert isinstance(course.result, Bound)
    else:
        assert isinstance(course.result, Refused)
        assert f'already assigned to node "{node}"' in course.result.message


def test_a_refusal_counts_for_nothing_where_the_watch_has_shown_our_node() -> None:
    course = Course(a_cluster())
    course.see(a_pod("web").metadata(resourceVersion="2").build().on("n1"))
    course.hear(CHANGED)
    assert isinstance(course.result, Bound)


def test_a_place_is_held_for_so_long_once_and_then_read_until_it_is_known() -> None:
    course = Course(a_cluster()).hear(*(LOST, PENDING) * SENDS_MAX, LOST, LOST, PENDING)
    assert isinstance(course.result, Refused)
    assert course.waits.count(LANDS_WITHIN_S) == 1
    assert course.result.code == 0, "ours: the server refused nothing"


def test_a_pod_that_the_watch_does_not_know_is_settled_by_what_is_read() -> None:
    course = Course(Cluster()).hear(LOST, PENDING, LOST, VANISHED)
    assert isinstance(course.result, Refused)
    assert course.result.code == 404
