"""Small replays: what is promised is kept, and the cluster is as full as with EASY."""

import pytest

from asched.batch.backfill.expected_ends import GRACE_S
from tests.backfill.easy import Easy, utilisation
from tests.backfill.replay import Kept, Replay
from tests.backfill.workload import Job, jobs

#: Points that may be lost, in per cent of the cluster.
POINTS_MAX = 3.0


@pytest.mark.parametrize(("reservations", "promised_min"), [(1, 1), (8, 6)])
def test_no_start_comes_later_than_promised_and_the_cluster_is_as_full_as_with_easy(
    reservations: int, promised_min: int
) -> None:
    drawn = jobs(1, 80, 32, 1.1, pace=20.0)
    ours = Replay(32, {"reservations": reservations, "horizonSeconds": 31 * 86_400})

    started = ours.run(drawn)

    assert len(started) == len(drawn)
    assert sum(bool(kept.promises) for kept in ours.kept.values()) >= promised_min
    assert ours.broken() == []
    easy = Easy(32, GRACE_S).run(drawn)
    full = 100 * utilisation(drawn, easy, 32)
    assert 100 * utilisation(drawn, started, 32) >= full - POINTS_MAX


def test_easy_lets_the_short_one_go_first_and_the_long_one_wait() -> None:
    drawn = [
        Job("runs", 0.0, 3, 100.0, 100),
        Job("large", 1.0, 4, 50.0, 50),
        Job("short", 2.0, 1, 50.0, 50),
        Job("long", 3.0, 1, 500.0, 500),
    ]

    started = Easy(4, 0.0).run(drawn)

    assert started == {"runs": 0.0, "short": 2.0, "large": 100.0, "long": 150.0}
    assert utilisation(drawn, started, 4) == pytest.approx((3 * 3 + 1) / 12)


def test_a_promise_that_moves_back_without_a_word_is_found() -> None:
    replay = Replay(4)
    replay.kept["quiet"] = Kept([(100.0, ""), (200.0, "")])
    replay.kept["named"] = Kept([(100.0, ""), (200.0, "node n1 went")], 200.0)
    replay.kept["late"] = Kept([(100.0, "")], 500.0)

    assert replay.broken() == [
        "quiet: 100 became 200 without a cause",
        "late: promised by 100, started at 500",
    ]
