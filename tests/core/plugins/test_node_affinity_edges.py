"""NodeAffinity: who shares answers with whom, the operator's preferences, wide terms in hints."""

from typing import Any

import pytest

from asched.core.config.args import NodeAffinityArgs
from asched.core.framework.points import IDLE, Hint
from asched.core.framework.status import Code
from asched.core.plugins.node_affinity import NodeAffinity
from asched.core.state.gradual import FEW
from tests.builders import Json, PodBuilder, a_cluster, a_node, a_pod, all_rows, pending, term
from tests.heard import heard

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
ENFORCED = NodeAffinityArgs(
    {REQUIRED: {"nodeSelectorTerms": [term("zone In a"), term("zone In b")]}}
)
PREFERRING = NodeAffinityArgs({PREFERRED: [{"weight": 4, "preference": term("zone In b")}]})


def a_plain() -> PodBuilder:
    return a_pod()


def a_selecting() -> PodBuilder:
    return a_pod().selects(zone="a")


def another_selecting() -> PodBuilder:
    return a_pod().selects(zone="b")


def a_requiring() -> PodBuilder:
    return a_pod().requires_nodes(term("zone In b"))


def a_preferring() -> PodBuilder:
    return a_pod().prefers_nodes((3, term("zone In a")))


MAKERS = [a_plain, a_selecting, another_selecting, a_requiring, a_preferring]


def test_only_pods_that_write_the_same_share_their_answers() -> None:
    """All of one plugin, one after the other: none is taken for another one."""
    cluster = a_cluster(a_node("n1").labels(zone="a"), a_node("n2").labels(zone="b"))
    plugin, nodes = NodeAffinity(), all_rows(cluster)
    pods = [pending(cluster, make().priority(i)) for make in MAKERS for i in range(2)]
    keys = [plugin.share_key(pod) for pod in pods]

    assert [plugin.filter(pod, nodes, None).tolist() for pod in pods[::2]] == [
        [0, 0],
        [0, 2],
        [2, 0],
        [2, 0],
        [0, 0],
    ]
    assert [plugin.score(pod, nodes, None).tolist() for pod in pods[::2]] == [
        [0, 0],
        [0, 0],
        [0, 0],
        [0, 0],
        [3, 0],
    ]
    assert [key is IDLE for key in keys] == [True] * 2 + [False] * 8
    assert len(set(keys)) == len(MAKERS)
    assert keys[::2] == keys[1::2]


@pytest.mark.parametrize("args", [ENFORCED, PREFERRING], ids=["enforced", "preferring"])
def test_nobody_is_idle_where_the_operator_asks_for_something(args: NodeAffinityArgs) -> None:
    cluster = a_cluster(a_node("n1"))
    assert NodeAffinity(args).share_key(pending(cluster, a_pod())) is not IDLE


def test_what_the_operator_prefers_counts_for_every_pod() -> None:
    cluster = a_cluster(a_node("n1").labels(zone="a"), a_node("n2").labels(zone="b"))
    plugin, nodes = NodeAffinity(PREFERRING), all_rows(cluster)

    for make, expected in ((a_plain, [0, 4]), (a_preferring, [3, 4])):
        assert plugin.score(pending(cluster, make()), nodes, None).tolist() == expected


def test_an_affinity_that_the_operator_only_enforces_scores_nothing() -> None:
    cluster = a_cluster(a_node("n1").labels(zone="a"))
    nodes = all_rows(cluster)
    result = NodeAffinity(ENFORCED).pre_score(pending(cluster, a_pod()), nodes, nodes.live)
    assert result.status.code is Code.SKIP


def raw_pod(required: dict[str, Any]) -> PodBuilder:
    return a_pod().spec(affinity={"nodeAffinity": {REQUIRED: required}})


def test_a_required_affinity_without_a_list_of_terms_matches_nothing() -> None:
    cluster = a_cluster(a_node("n1"))
    pod = pending(cluster, raw_pod({}))
    assert NodeAffinity().filter(pod, all_rows(cluster), None).tolist() == [2]


def test_only_a_list_of_names_narrows() -> None:
    cluster = a_cluster(a_node("n1"))

    def narrowed(*fields: Json) -> Any:
        pod = raw_pod({"nodeSelectorTerms": [{"matchFields": list(fields)}]})
        result = NodeAffinity().pre_filter(pending(cluster, pod))
        return result.node_names if result.status.is_success else result.status.message

    name = {"key": "metadata.name", "operator": "In"}
    other = {"key": "metadata.namespace", "operator": "In", "values": ["n1"]}
    assert narrowed({**name, "values": ["n1"]}, other) == {"n1"}
    assert narrowed(other) is None
    assert narrowed(name) == "pod affinity terms conflict"


# --- hints ---------------------------------------------------------------------------------------

NODE = a_node("n1").labels(zone="a").build()


def hinted(pod: PodBuilder, old: Any = None, args: NodeAffinityArgs | None = None) -> Hint:
    """What the plugin says of n1 in zone a."""
    (registration,) = NodeAffinity(args).registrations()
    assert registration.hint is not None
    return registration.hint(pod.build(), old, NODE)


def widths() -> list[tuple[str, list[Json], bool]]:
    """Required terms that n1 does not match, and whether they are too many to be judged: more than
    FEW terms and requirements by labels together.
    """
    by_name = term(fields=["metadata.name In n9"])
    by_label = [f"key{i} Exists" for i in range(FEW)]
    return [
        ("one of few", [term("zone In z")], False),
        ("as many names as are judged", [by_name] * FEW, False),
        ("one name more", [by_name] * (FEW + 1), True),
        ("names in one term cost one", [term(fields=["metadata.name In n9"] * FEW)], False),
        ("as many labels as are judged", [term(*by_label[1:])], False),
        ("one label more", [term(*by_label)], True),
        ("many terms of one label each", [term("zone In z")] * FEW, True),
        ("half as many", [term("zone In z")] * (FEW // 2), False),
        ("and one more", [term("zone In z")] * (FEW // 2 + 1), True),
    ]


@pytest.mark.parametrize(("name", "terms", "is_wide"), widths())
def test_wide_terms_are_not_judged_by_the_hint(name: str, terms: list[Json], is_wide: bool) -> None:
    assert hinted(a_pod().requires_nodes(*terms)) is (Hint.QUEUE if is_wide else Hint.SKIP)


@pytest.mark.parametrize(
    ("name", "pod", "hint"),
    [
        ("nothing asked", a_pod(), Hint.QUEUE),
        ("only preferences", a_pod().prefers_nodes((1, term("zone In z"))), Hint.QUEUE),
        ("the label", a_pod().selects(zone="a"), Hint.QUEUE),
        ("another label", a_pod().selects(zone="z"), Hint.SKIP),
        ("a term", a_pod().requires_nodes(term("zone In a")), Hint.QUEUE),
        ("no list of terms", raw_pod({}), Hint.SKIP),
    ],
)
def test_a_node_that_appears(name: str, pod: PodBuilder, hint: Hint) -> None:
    assert hinted(pod) is hint


def test_one_senseless_term_among_others_is_an_error_of_the_hint() -> None:
    with pytest.raises(ValueError, match="makes no sense"):
        hinted(a_pod().requires_nodes(term("cores Gt many"), term("zone In z")))
    pod = a_pod().requires_nodes(term("cores Gt many"), term("zone In a"))
    assert hinted(pod) is Hint.QUEUE


def test_one_of_the_operators_terms_is_enough() -> None:
    assert hinted(a_pod(), args=ENFORCED) is Hint.QUEUE


def test_what_is_told_of_the_operators_affinity() -> None:
    ((told, hint),) = heard(NodeAffinity(ENFORCED).extra_events()).items()
    assert told == "Node: UpdateNodeLabel"
    outside = a_node("n1").labels(zone="z").build()
    assert hint(a_pod().build(), outside, outside) is Hint.SKIP
    assert hint(a_pod().build(), outside, NODE) is Hint.QUEUE
