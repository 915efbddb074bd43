"""The load of one node: what is measured, what is expected beyond it, and until when it counts."""

import pytest

from asched.core.model.kinds import NODE, POD
from asched.core.state.facts import Gone, Seen
from asched.hardware.koordinator.node_load import FILTER, PROD_LOAD, SCORE, Profile
from asched.hardware.koordinator.node_metric import NODE_METRIC
from tests.hardware.koordinator.worlds import (
    INTERVAL_S,
    MID,
    NEW_S,
    NOW_S,
    OLD_S,
    PROD,
    REPORT_S,
    Json,
    Node,
    a_condition,
    usage,
)


@pytest.mark.parametrize(
    ("kind", "since_s", "told", "load", "prod"),
    [
        # not measured: all that it will use
        (MID, OLD_S, None, 3000, 0),
        (PROD, OLD_S, None, 3000, 1000),
        (PROD, OLD_S, usage("400m", name="other"), 3000, 1000),
        (PROD, OLD_S, usage("400m", namespace="other"), 3000, 1000),
        (PROD, OLD_S, usage("400m", podUsage={}), 3000, 1000),
        # measured since long
        (MID, OLD_S, usage("400m", MID), 2000, 0),
        (MID, OLD_S, usage("400m"), 2000, 0),
        (PROD, OLD_S, usage("400m"), 2000, 400),
        (PROD, OLD_S, usage("1500m"), 2000, 1500),
        # measured as something else: as if it were not measured
        (PROD, OLD_S, usage("400m", MID), 2000, 1000),
        # measured in part
        (MID, NEW_S, usage("400m", MID), 2600, 0),
        (MID, NEW_S, usage("400m"), 2600, 0),
        (PROD, NEW_S, usage("400m"), 2600, 1000),
        (PROD, NEW_S, usage("1500m"), 2000, 1500),
        (PROD, NEW_S, usage("400m", MID), 2600, 1000),
        # placed now, for all we know
        (PROD, None, usage("400m"), 2600, 1000),
    ],
)
@pytest.mark.parametrize("with_system", [False, True])
def test_what_pods_will_use_beyond_what_was_measured_counts(
    kind: str, since_s: float | None, told: Json | None, load: int, prod: int, *, with_system: bool
) -> None:
    node = Node(with_system=with_system)
    node.pod("p", since_s, kind)
    node.report(*([told] if told else ()))
    assert (node.load(FILTER), node.load(SCORE)) == (load, load)
    assert node.load(PROD_LOAD) == prod + (500 if with_system else 0)


def test_loads_of_several_pods_add_up_and_go_with_them() -> None:
    node = Node()
    node.report(usage("300m", name="a"), None, usage("100m", MID, name="c"))
    pods = [
        node.pod("a", NEW_S, PROD),
        node.pod("b", NEW_S, PROD),
        node.pod("c", NEW_S, MID),
    ]
    assert (node.load(), node.load(PROD_LOAD)) == (2000 + 700 + 1000 + 900, 300 + 700 + 1000)
    node.cluster.apply(Gone(POD, pods[0].build()))
    assert (node.load(), node.load(PROD_LOAD)) == (3900, 1000)
    node.report(podsMetric=None)
    assert (node.load(), node.load(PROD_LOAD)) == (4000, 1000)


def test_a_pod_of_which_nothing_is_expected_counts_as_measured() -> None:
    node = Node(resources=("example.com/x",))
    node.pod("p", NEW_S, PROD)
    node.report(
        usage("1", podUsage={"example.com/x": "7"}),
        nodeMetric={"nodeUsage": {"example.com/x": "9"}},
    )
    assert (node.load(), node.load(PROD_LOAD)) == (9, 7)


@pytest.mark.parametrize(
    ("seconds", "said", "conditions", "is_new"),
    [
        ((None, None), {}, [], False),
        ((90, None), {}, [], False),  # until the second of the report
        ((91, None), {}, [], True),
        ((0, None), {"scheduled": "91"}, [], True),
        ((91, None), {"scheduled": "90"}, [], False),
        ((91, None), {"scheduled": "0"}, [], False),
        # whoever is initialized counts from then on
        ((None, 40), {}, [a_condition("Initialized", REPORT_S - 40)], False),
        ((None, 41), {}, [a_condition("Initialized", REPORT_S - 40)], True),
        ((91, 40), {}, [a_condition("Initialized", REPORT_S - 40)], False),
        ((91, 0), {}, [a_condition("Initialized", REPORT_S - 40)], True),
        ((None, 0), {"initialized": "41"}, [a_condition("Initialized", REPORT_S - 40)], True),
        # and whoever is not, or nobody knows since when, from when it was scheduled
        ((91, 40), {}, [], True),
        ((None, 400), {}, [], False),
        ((91, 40), {}, [a_condition("Initialized", REPORT_S - 40, "False")], True),
        ((91, 40), {}, [a_condition("Ready", REPORT_S - 40)], True),
        ((91, 40), {}, [a_condition("Initialized", "")], True),
        ((None, 400), {}, [a_condition("Initialized", "soon")], False),
    ],
)
def test_a_pod_may_count_as_expected_for_longer(
    seconds: tuple[int | None, int | None],
    said: dict[str, str],
    conditions: list[Json],
    *,
    is_new: bool,
) -> None:
    """It was scheduled 90 seconds before the report, of which the last 60 are measured."""
    node = Node(seconds=seconds)
    made = node.pod("p", REPORT_S - 90, **said)
    made.status(conditions=[*conditions, a_condition("PodScheduled", REPORT_S - 90)])
    node.cluster.apply(Seen(POD, made.build()))
    node.report(usage("400m"))
    assert node.load() == (2600 if is_new else 2000)


def test_without_any_condition_a_pod_is_there_since_it_was_first_seen() -> None:
    node = Node(seconds=(None, 5))
    made = node.pod("p", None)
    made.status(conditions=None)
    node.cluster.apply(Seen(POD, made.build()))
    for seconds, load in ((0, 2600), (INTERVAL_S - 1, 2600), (1, 2000)):
        node.wait(seconds)
        node.report(usage("400m"), at_s=node.now_s)
        assert node.load() == load
    node.cluster.apply(Gone(POD, made.build()))
    assert node.load() == 2000
    node.pod("p", None)  # another of the same uid
    assert node.load() == 2600


@pytest.mark.parametrize(
    ("told_s", "load"), [(INTERVAL_S, 2000), (61, 2600), (0, 2000), (None, 2000)]
)
def test_the_agent_tells_how_long_it_measures(told_s: int | None, load: int) -> None:
    node = Node()
    node.pod("p", OLD_S)
    policy = {"metricCollectPolicy": {"reportIntervalSeconds": told_s}}
    node.report(usage("400m"), spec=policy)
    assert node.load() == load


def test_of_a_node_that_is_gone_and_of_a_report_nothing_is_left() -> None:
    node = Node(profile=Profile({"cpu": 65}, {"cpu": 40}))
    node.put("n2")
    node.report().report(name="n2")
    node.pod("p", NEW_S, PROD, "n2")
    assert (node.load(), node.load(name="n2")) == (2000, 3000)
    row = node.cluster.nodes.row_of["n2"]
    node.cluster.apply(Gone(NODE, node.cluster.node_of("n2")))
    node.kept.refresh()
    assert not node.kept.loads[:, :, row].any()
    assert not node.kept.thresholds[:, :, row].any()
    assert not node.kept.allocatable[:, row].any()
    assert not node.kept.has_report[row]
    assert not node.kept.has_info[row]
    assert node.kept.is_expired.tolist() == [False, True]
    told = node.cluster.get(NODE_METRIC, "n1")
    node.report(nodeMetric=None)
    node.kept.refresh()
    assert (bool(node.kept.has_report[0]), bool(node.kept.has_info[0])) == (True, False)
    node.cluster.apply(Gone(NODE_METRIC, told))
    assert node.load() == 0
    assert node.kept.is_expired.all()
    assert node.kept.thresholds[0, 0, 0] == 65


def test_the_version_moves_as_reports_expire_and_at_no_other_time() -> None:
    node = Node()
    node.put("n2")
    node.report(at_s=NOW_S - 100).report(name="n2", at_s=NOW_S - 50)
    seen = []
    for seconds in (0, 79, 1, 10, 39, 1, 100):
        node.wait(seconds)
        node.kept.refresh()
        seen.append((node.kept.is_expired.tolist(), node.kept.version))
    versions = [version for _, version in seen]
    assert [expired for expired, _ in seen] == [
        [False, False], [False, False], [True, False], [True, False], [True, False],
        [True, True], [True, True],
    ]  # fmt: skip
    assert len(set(versions)) == 3
    assert versions == sorted(versions)
    node.report(at_s=node.now_s)
    node.kept.refresh()
    assert node.kept.is_expired.tolist() == [False, True]
    node.report(at_s=0, updateTime="soon")  # nobody knows of when it is
    node.kept.refresh()
    assert node.kept.is_expired.tolist() == [True, True]
    node.report(at_s=0, updateTime=None)
    node.kept.refresh()
    assert node.kept.is_expired.tolist() == [True, True]


def test_one_report_among_many_is_read_alone_and_all_are_known_again_from_the_start() -> None:
    node = Node()
    for at in range(2, 21):
        node.put(f"n{at}")
        node.pod(f"p{at}", None, node=f"n{at}")
        node.report(usage("400m", name=f"p{at}"), name=f"n{at}", at_s=NOW_S)
    node.kept.refresh()
    passes = node.kept.full_version
    node.wait(INTERVAL_S)
    for at in (5, 6):
        node.report(usage("400m", name=f"p{at}"), name=f"n{at}", at_s=node.now_s)
    loads = [node.load(name=f"n{at}") for at in range(4, 8)]
    assert loads == [2600, 2000, 2000, 2600]
    assert node.kept.full_version == passes
    node.put("n21")  # all are made anew; since when a pod is there is not forgotten
    assert [node.load(name=f"n{at}") for at in range(4, 8)] == loads
    assert node.kept.full_version == passes + 1
