"""Plans of moves, compared with brute force."""

from collections import Counter

from asched_lab.measure import moves


def test_plans_of_small_clusters_are_found_with_few_moves() -> None:
    verdicts = Counter(moves.judged(seed)[0] for seed in range(16))
    assert set(verdicts) <= {"none", "fewest"}
    assert verdicts["fewest"] > 3
