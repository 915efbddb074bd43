"""Which labels of a node would have to change for a pod to select it."""

import pytest

from asched.insight.explain.labels import LabelChange, Selecting, relabelled
from tests.builders import PodBuilder, a_node, a_pod, term


@pytest.mark.parametrize(
    ("pod", "labels", "changes"),
    [
        (a_pod().selects(zone="a"), {"zone": "a"}, [{}]),
        (a_pod().selects(zone="a"), {"zone": "b"}, [{"zone": "a"}]),
        (a_pod().selects(zone="a"), {}, [{"zone": "a"}]),
        (a_pod().requires_nodes(term("zone In b,a")), {}, [{"zone": "a"}]),
        (a_pod().requires_nodes(term("zone NotIn a")), {"zone": "a"}, [{"zone": "true"}]),
        (a_pod().requires_nodes(term("zone Exists")), {}, [{"zone": "true"}]),
        (a_pod().requires_nodes(term("zone DoesNotExist")), {"zone": "a"}, [{"zone": None}]),
        (a_pod().requires_nodes(term("cores Gt 4")), {"cores": "4"}, [{"cores": "5"}]),
        (a_pod().requires_nodes(term("cores Lt 4")), {"cores": "4"}, [{"cores": "3"}]),
        (a_pod().requires_nodes(term("cores Gt many")), {"cores": "4"}, []),
        (a_pod().requires_nodes(term("cores Gt 4", "cores Lt 6")), {}, [{"cores": "5"}]),
        (a_pod().requires_nodes(term("zone In a", "zone NotIn a")), {}, []),
        (a_pod().requires_nodes(term("zone In a,b", "zone NotIn a")), {}, [{"zone": "b"}]),
        (
            a_pod().requires_nodes(term("zone In a"), term("disk Exists")),
            {"zone": "b"},
            [{"zone": "a"}, {"disk": "true"}],
        ),
        (
            a_pod().selects(zone="a").requires_nodes(term("disk In ssd")),
            {},
            [{"zone": "a", "disk": "ssd"}],
        ),
        (a_pod().requires_nodes(term("zone In")), {}, []),
        (
            a_pod().requires_nodes(term("cores Gt many", "zone In a"), term("zone In b")),
            {},
            [{"zone": "b"}],
        ),
    ],
)
def test_the_fewest_changes_of_each_term(
    pod: PodBuilder, labels: dict[str, str], changes: list[LabelChange]
) -> None:
    assert Selecting(pod.build()).fewest_changes(labels) == changes


def test_keys_are_those_of_the_selector_and_of_the_affinity() -> None:
    pod = a_pod().selects(zone="a").requires_nodes(term("disk Exists"), term("cores Gt 4"))
    assert Selecting(pod.build()).keys == ("zone", "disk", "cores")
    assert Selecting(a_pod().build()).keys == ()


def test_labels_are_set_and_taken_away() -> None:
    node = a_node("n1").labels(zone="a", disk="ssd").build()
    assert relabelled(node, {"zone": "b", "disk": None, "new": "x"}).labels == {
        "zone": "b",
        "new": "x",
    }
    assert node.labels == {"zone": "a", "disk": "ssd"}


def test_terms_and_values_are_paid_for_at_each_look() -> None:
    """A tenant may write thousands of terms about the host's name, of which each node has its own:
    each is asked of each node.
    """
    spent: list[float] = []
    pod = a_pod().requires_nodes(*(term(f"host In h{at}") for at in range(200)))
    selecting = Selecting(pod.build(), spent.append)
    for row in range(3):
        assert len(selecting.fewest_changes({"host": f"n{row}"})) == 200
    assert sum(spent) >= 3 * 200 / 20

    spent.clear()
    values = [f"v{at}" for at in range(100)]
    wide = a_pod().requires_nodes(
        term(f"k In {','.join(values)}", *(f"k NotIn {value}" for value in values))
    )
    assert Selecting(wide.build(), spent.append).fewest_changes({}) == []
    assert sum(spent) >= 100 * 2 / 20
