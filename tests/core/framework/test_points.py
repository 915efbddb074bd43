"""What a plugin answers at its points as long as it does not say more."""

from typing import Any

import numpy as np

from asched.core.framework.points import (
    FilterPlugin,
    PermitPlugin,
    PostFilterPlugin,
    PreEnqueuePlugin,
    ReservePlugin,
    ScorePlugin,
)
from asched.core.framework.status import Reason, unresolvable, unschedulable
from tests.builders import a_cluster, a_pod, pending


class Mine(
    PreEnqueuePlugin, FilterPlugin, PostFilterPlugin, ScorePlugin, ReservePlugin, PermitPlugin
):
    """Only what it must have."""

    name = "Mine"
    reasons = (Reason("full", resolvable=True), Reason("wrong", resolvable=False))

    def pre_enqueue(self, pod: Any) -> Any: ...

    def filter(self, pod: Any, nodes: Any, data: Any) -> Any: ...

    def post_filter(self, pod: Any, rejection: Any, trial: Any) -> Any: ...

    def score(self, pod: Any, nodes: Any, data: Any) -> Any: ...

    def reserve(self, pod: Any, node: str, data: Any) -> Any: ...

    def unreserve(self, pod: Any, node: str) -> Any: ...

    def permit(self, pod: Any, node: str) -> Any: ...


PLUGIN: Any = Mine()
POD = pending(a_cluster(), a_pod())


def test_it_is_asked_wherever_it_might_have_something_to_say() -> None:
    assert PLUGIN.may_make_room(POD, None, None)
    assert PLUGIN.may_evict(POD, None)
    assert PLUGIN.chooses(POD)
    assert not PLUGIN.is_blind_for(POD)
    assert (PLUGIN.filter_one(POD, 0, None), PLUGIN.score_one(POD, 0, None)) == (None, None)
    assert PLUGIN.permit_late(POD, "n1") is None


def test_its_answers_hold_for_pods_of_one_class() -> None:
    cluster = a_cluster()
    one, equal = (pending(cluster, a_pod(name)) for name in ("a", "b"))
    other = pending(cluster, a_pod("c").requests(cpu="1"))
    assert PLUGIN.share_key(one) == PLUGIN.share_key(equal) == PLUGIN.verdict_key(one)
    assert PLUGIN.share_key(one) != PLUGIN.share_key(other)
    assert PLUGIN.stamp(one, None) == PLUGIN.stamp(other, "whatever it prepared")


def test_it_takes_one_thing_and_no_two_choices_of_it_are_the_same() -> None:
    assert PLUGIN.choices(POD, "n1", None) == 1
    assert PLUGIN.chosen(POD) != PLUGIN.chosen(POD)


def test_it_holds_nobody_and_expects_nobody_and_everything_may_help_whom_it_rejected() -> None:
    assert (list(PLUGIN.holding()), len(PLUGIN.expecting(POD.pod))) == ([], 0)
    assert (PLUGIN.registrations(), list(PLUGIN.extra_events())) == (None, [])


def test_its_codes_are_its_reasons_in_their_order() -> None:
    assert PLUGIN.explain(POD, 1) == unschedulable("full")
    assert PLUGIN.explain(POD, 2) == unresolvable("wrong")


def test_its_scores_are_final() -> None:
    raw = np.array([3, 100, 0], dtype=np.int64)
    assert PLUGIN.normalize(raw, None).tolist() == [3, 100, 0]
    assert not PLUGIN.heeds_feasible(POD)
    assert (PLUGIN.bounds(raw, None), PLUGIN.scaled_one(3, None)) == (None, None)
