"""Which labels of a node would have to change for a pod to select it."""

import pytest

from asched.insight.explain.of_nodes import LabelChange, Selecting
from tests.builders import PodBuilder, a_pod, term


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
