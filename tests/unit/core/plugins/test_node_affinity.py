"""NodeAffinity: selectors, required and preferred terms, the operator's own, and the hints."""

from dataclasses import dataclass
from operator import attrgetter

import pytest

from asched.core.config.args import NodeAffinityArgs
from asched.core.framework.registrations import Hint
from asched.core.framework.status import Code
from asched.core.plugins.node_affinity import NodeAffinity
from tests.builders import Json, PodBuilder, a_cluster, a_node, a_pod, all_rows, pending, term

ENFORCED = NodeAffinityArgs(
    {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term("zone In a")]}}
)


@dataclass(frozen=True)
class Case:
    name: str
    terms: tuple[Json, ...]
    fits: bool  # on node n1 with zone=a, cores=8 and an empty label `bare`


CASES = [
    Case("In lists the value", (term("zone In a,b"),), fits=True),
    Case("In does not", (term("zone In b"),), fits=False),
    Case("In wants the label to be there", (term("rack In r1"),), fits=False),
    Case("NotIn is content without the label", (term("rack NotIn r1"),), fits=True),
    Case("NotIn lists the value", (term("zone NotIn a"),), fits=False),
    Case("Exists is content with an empty value", (term("bare Exists"),), fits=True),
    Case("DoesNotExist is not", (term("bare DoesNotExist"),), fits=False),
    Case("Gt compares numbers, not text", (term("cores Gt 10"),), fits=False),
    Case("Lt compares numbers, not text", (term("cores Lt 10"),), fits=True),
    Case("Gt of a word is false", (term("zone Gt 1"),), fits=False),
    Case("Gt without the label is false", (term("rack Gt 1"),), fits=False),
    Case("requirements of a term are all wanted", (term("zone In a", "cores Gt 9"),), fits=False),
    Case("one of several terms is enough", (term("zone In b"), term("zone In a")), fits=True),
    Case("an empty term matches nothing", ({},), fits=False),
    Case("no term at all matches nothing", (), fits=False),
    Case("a name among the fields", (term(fields=["metadata.name In n1"]),), fits=True),
    Case("another name", (term(fields=["metadata.name In n2"]),), fits=False),
    Case("not another name", (term(fields=["metadata.name NotIn n2"]),), fits=True),
    Case("not this name", (term(fields=["metadata.name NotIn n1"]),), fits=False),
    Case("a senseless number spoils its term", (term("cores Gt many"),), fits=False),
    Case("but not its neighbour", (term("cores Gt many"), term("zone In a")), fits=True),
    Case("Exists takes no values", (term("zone Exists a"),), fits=False),
]


@pytest.mark.parametrize("case", CASES, ids=attrgetter("name"))
def test_required_terms(case: Case) -> None:
    node = a_node("n1").labels(zone="a", cores="8", bare="")
    cluster = a_cluster(node, a_node("n2").labels(rack="r1"))
    plugin = NodeAffinity()
    pod = pending(cluster, a_pod().requires_nodes(*case.terms))

    codes = plugin.filter(pod, all_rows(cluster), None)

    assert codes[0] == (0 if case.fits else 2)


@pytest.mark.parametrize(
    ("name", "labels", "codes"),
    [
        ("an empty selector wants nothing", {}, [0, 0]),
        ("the value must be equal", {"zone": "a"}, [0, 2]),
        ("all labels are wanted", {"zone": "a", "rack": "r1"}, [2, 2]),
        ("an empty value is a value", {"bare": ""}, [0, 2]),
        ("an unknown value is nowhere", {"zone": "z"}, [2, 2]),
    ],
)
def test_node_selector(name: str, labels: dict[str, str], codes: list[int]) -> None:
    cluster = a_cluster(a_node("n1").labels(zone="a", bare=""), a_node("n2").labels(zone="b"))
    pod = pending(cluster, a_pod().selects(**labels))

    assert NodeAffinity().filter(pod, all_rows(cluster), None).tolist() == codes


@pytest.mark.parametrize(
    ("name", "pod", "node_names"),
    [
        ("no field leaves all", a_pod().requires_nodes(term("zone In a")), None),
        ("a name narrows", a_pod().requires_nodes(term(fields=["metadata.name In n1"])), {"n1"}),
        (
            "names of several terms are joined",
            a_pod().requires_nodes(
                term(fields=["metadata.name In n1"]), term(fields=["metadata.name In n9"])
            ),
            {"n1", "n9"},
        ),
        (
            "one term without a name leaves all",
            a_pod().requires_nodes(term(fields=["metadata.name In n1"]), term("zone In a")),
            None,
        ),
        (
            "NotIn narrows nothing",
            a_pod().requires_nodes(term(fields=["metadata.name NotIn n1"])),
            None,
        ),
    ],
)
def test_narrowing_by_name(name: str, pod: PodBuilder, node_names: set[str] | None) -> None:
    cluster = a_cluster(a_node("n1"))

    result = NodeAffinity().pre_filter(pending(cluster, pod))

    assert result.status.is_success
    assert result.node_names == node_names


def test_a_term_in_conflict_with_itself_rejects_the_pod_everywhere() -> None:
    cluster = a_cluster(a_node("n1"))
    conflict = term(fields=["metadata.name In n1", "metadata.name In n2"])

    result = NodeAffinity().pre_filter(pending(cluster, a_pod().requires_nodes(conflict)))

    assert result.status.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE
    assert result.status.message == "pod affinity terms conflict"


def test_the_operators_affinity_speaks_first() -> None:
    nodes = [a_node(f"n{i}").labels(zone=zone) for i, zone in enumerate("abc")]
    cluster = a_cluster(*nodes)
    plugin = NodeAffinity(ENFORCED)
    pod = pending(cluster, a_pod().requires_nodes(term("zone In c")))

    codes = plugin.filter(pod, all_rows(cluster), None).tolist()

    assert codes == [2, 1, 1]
    assert plugin.explain(pod, 1).message == "node(s) didn't match scheduler-enforced node affinity"
    assert plugin.explain(pod, 2).message == "node(s) didn't match Pod's node affinity/selector"


@pytest.mark.parametrize(
    ("name", "preferred", "raw"),
    [
        (
            "weights of matching terms add up",
            [(5, term("zone In a")), (3, term("cores Gt 1"))],
            [8, 0],
        ),
        ("an empty term never counts", [(5, {}), (3, term("zone In b"))], [0, 3]),
        ("nor does one without weight", [(0, term("zone In a"))], [0, 0]),
        ("nor one that makes no sense", [(5, term("zone In"))], [0, 0]),
    ],
)
def test_raw_scores(name: str, preferred: list[tuple[int, Json]], raw: list[int]) -> None:
    cluster = a_cluster(a_node("n1").labels(zone="a", cores="8"), a_node("n2").labels(zone="b"))
    pod = pending(cluster, a_pod().prefers_nodes(*preferred))

    assert NodeAffinity().score(pod, all_rows(cluster), None).tolist() == raw


def test_hints() -> None:
    (registration,) = NodeAffinity(ENFORCED).registrations()
    changed = registration.hint
    assert changed is not None
    pod = a_pod().selects(disk="ssd").build()
    good = a_node("n1").labels(zone="a", disk="ssd").build()
    elsewhere = a_node("n1").labels(zone="b", disk="ssd").build()
    slow = a_node("n1").labels(zone="a", disk="hdd").build()

    assert changed(pod, None, good) is Hint.QUEUE
    assert changed(pod, slow, good) is Hint.QUEUE
    assert changed(pod, good, good) is Hint.SKIP
    assert changed(pod, good, slow) is Hint.SKIP
    assert changed(pod, slow, elsewhere) is Hint.SKIP
    # Only the pod's own part is compared: coming to match the operator's alone is overlooked.
    assert changed(pod, elsewhere, good) is Hint.SKIP


def test_coming_to_match_the_operators_affinity_alone_is_overlooked_by_the_hint() -> None:
    assert NodeAffinity().extra_events() == ()
    (registration,) = NodeAffinity(ENFORCED).extra_events()
    assert registration.hint is not None
    inside, outside = a_node("n1").labels(zone="a").build(), a_node("n1").labels(zone="b").build()

    assert registration.hint(a_pod().build(), outside, inside) is Hint.QUEUE
    assert registration.hint(a_pod().build(), inside, outside) is Hint.SKIP
    assert registration.hint(a_pod().build(), inside, inside) is Hint.SKIP
