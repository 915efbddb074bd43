"""TaintToleration: taints against tolerations, scores, and who is woken."""

from dataclasses import dataclass
from operator import attrgetter

import pytest

from asched.core.framework.registrations import Hint
from asched.core.plugins.taint_toleration import TaintToleration
from tests.builders import a_cluster, a_node, a_pod, all_rows, pending


@dataclass(frozen=True)
class Case:
    name: str
    taints: str  # of the only node, as kubectl prints them
    tolerations: str  # same notation; no value means Exists, no effect every effect, * every key
    rejected: bool


CASES = [
    Case("a bare node takes any pod", "", "", rejected=False),
    Case("a hard taint stops a bare pod", "gpu=yes:NoSchedule", "", rejected=True),
    Case("NoExecute stops scheduling as well", "gpu=yes:NoExecute", "", rejected=True),
    Case("the value must be equal", "gpu=yes:NoSchedule", "gpu=no:NoSchedule", rejected=True),
    Case("the effect must be equal", "gpu=yes:NoSchedule", "gpu=yes:NoExecute", rejected=True),
    Case("the key must be equal", "gpu=yes:NoSchedule", "cpu:NoSchedule", rejected=True),
    Case("Exists ignores the value", "gpu=yes:NoSchedule", "gpu:NoSchedule", rejected=False),
    Case("no effect tolerates every effect", "gpu=yes:NoExecute", "gpu=yes", rejected=False),
    Case("no key tolerates every key", "gpu=yes:NoSchedule a=1:NoExecute", "*", rejected=False),
    Case("one of two is not enough", "a=1:NoSchedule b=1:NoExecute", "a=1", rejected=True),
    Case("one key may carry two taints", "a=1:NoSchedule a=1:NoExecute", "a:NoSchedule", True),
    Case("a soft taint never rejects", "gpu=yes:PreferNoSchedule", "", rejected=False),
    Case("an empty value is a value", "gpu=:NoSchedule", "gpu=", rejected=False),
]

SCORES = [
    ("no taints at all are best for all", ["", "a=1:NoSchedule"], "a", [100, 100]),
    (
        "rounding comes before reversing",
        [
            "",
            "a=1:PreferNoSchedule",
            "a=1:PreferNoSchedule b=1:PreferNoSchedule c=:PreferNoSchedule",
        ],
        "",
        [100, 67, 0],
    ),
    (
        "a toleration of the hard effect does not tolerate the soft one",
        ["a=1:PreferNoSchedule", ""],
        "a:NoSchedule",
        [0, 100],
    ),
    ("a toleration of every effect does", ["a=1:PreferNoSchedule", ""], "a", [100, 100]),
]


@pytest.mark.parametrize("case", CASES, ids=attrgetter("name"))
def test_filter(case: Case) -> None:
    cluster = a_cluster(a_node("n1").taints(case.taints))
    pod = pending(cluster, a_pod().tolerates(case.tolerations))

    codes = TaintToleration(cluster).filter(pod, all_rows(cluster), None)

    assert codes.tolist() == [int(case.rejected)]


@pytest.mark.parametrize(("name", "taints", "tolerations", "expected"), SCORES)
def test_score(name: str, taints: list[str], tolerations: str, expected: list[int]) -> None:
    cluster = a_cluster(*(a_node(f"n{i}").taints(text) for i, text in enumerate(taints)))
    plugin = TaintToleration(cluster)

    raw = plugin.score(pending(cluster, a_pod().tolerates(tolerations)), all_rows(cluster), None)

    assert plugin.normalize(raw, None).tolist() == expected


@pytest.mark.parametrize(
    ("name", "before", "after", "expected"),
    [
        ("a new node that is tolerated", None, "a=1:NoSchedule", Hint.QUEUE),
        ("a new node that is not", None, "b=1:NoSchedule", Hint.SKIP),
        ("the offending taint goes", "b=1:NoSchedule", "", Hint.QUEUE),
        ("another taint goes", "a=1:NoSchedule", "", Hint.SKIP),
        (
            "one of two offending taints goes",
            "b=1:NoSchedule c=1:NoExecute",
            "c=1:NoExecute",
            Hint.SKIP,
        ),
    ],
)
def test_a_changed_node_wakes_the_pod(
    name: str, before: str | None, after: str, expected: Hint
) -> None:
    node_changed = TaintToleration(a_cluster()).registrations()[0].hint
    assert node_changed is not None
    old = None if before is None else a_node("n1").taints(before).build()

    hint = node_changed(a_pod().tolerates("a").build(), old, a_node("n1").taints(after).build())

    assert hint is expected


def test_only_its_own_toleration_wakes_the_pod() -> None:
    pod_changed = TaintToleration(a_cluster()).registrations()[1].hint
    assert pod_changed is not None
    pod, other = a_pod("web").build(), a_pod("db").build()

    assert pod_changed(pod, pod, pod) is Hint.QUEUE
    assert pod_changed(pod, other, other) is Hint.SKIP
