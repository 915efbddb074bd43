"""A group in numbers: needs and room, who may not stand together, and rules about domains."""

from typing import Any

import numpy as np
import pytest

from asched.core.cycle import group_problem
from asched.core.cycle.group_board import GroupBoard
from asched.core.cycle.group_problem import CLASSES_MIN, RULES_MAX, Description, described
from asched.core.gang.domains import Rule
from asched.core.model.decode import decode
from asched.core.model.kinds import NAMESPACE, NODE
from asched.core.model.workload import Namespace
from asched.core.state.facts import Gone, Seen
from asched.core.state.pods import HostPort
from tests.builders import NodeBuilder, PodBuilder, a_node, a_pod, term
from tests.core.cycle.attempts import GroupScene, members
from tests.core.cycle.test_gang_plays import a_member

ZONE = "topology.kubernetes.io/zone"


def room(name: str, cpu: int = 4, **labels: str) -> NodeBuilder:
    node = a_node(name).allocatable(cpu=str(cpu), memory="8Gi", pods="10")
    return node.labels({ZONE: labels["zone"]} if labels else {})


ZONES = (room("n0", zone="a"), room("n1", zone="a"), room("n2", zone="b"))


def maybe(
    *pods: PodBuilder, nodes: Any = (), placed: tuple[PodBuilder, ...] = ()
) -> Description | None:
    scene = GroupScene(*(nodes or (room("n0"), room("n1", 2))), placed=placed)
    group = scene.group(*pods)
    return described(GroupBoard(scene.context, group, len(pods), None, 10_000))


def of(*pods: PodBuilder, nodes: Any = (), placed: tuple[PodBuilder, ...] = ()) -> Description:
    found = maybe(*pods, nodes=nodes, placed=placed)
    assert found is not None
    return found


def test_needs_and_room_by_class_and_resource() -> None:
    found = of(*members(2), a_member("large", cpu="3"))
    problem, at = found.problem, found.resources.index("cpu")
    assert (problem.counts, problem.needed) == ((2, 1), 3)
    assert problem.needs[:, at].tolist() == [1000, 3000]
    assert problem.free[at].tolist() == [4000, 2000]
    assert found.resources[-1] == "pods"
    assert problem.needs[:, -1].tolist() == [1, 1]
    assert problem.free[-1].tolist() == [10, 10]
    assert problem.rows.tolist() == [[True, True], [True, False]]
    assert found.names == ["p0", "large"]


def test_amounts_that_cannot_be_summed_are_not_written_down() -> None:
    huge = str(1 << 61)
    node = a_node("n0").allocatable(cpu="4", memory=huge, pods="10")
    assert maybe(a_member("a").requests(memory=huge), nodes=(node,)) is not None
    pods = [a_member(name).requests(memory=huge) for name in "abc"]
    assert maybe(*pods[:2], nodes=(node,)) is not None, "two of them are as much as can be"
    both = [a_member(name).requests(memory=huge, ephemeral_storage=huge) for name in "ab"]
    assert maybe(*both, nodes=(node,)) is not None, "of each resource"
    assert maybe(*pods, nodes=(node,)) is None


def test_what_a_class_does_not_ask_for_it_needs_none_of() -> None:
    node = room("n0").allocatable({"example.com/gpu": "8"})
    found = of(
        a_member("a").requests({"example.com/gpu": "2"}),
        a_member("b").requests(memory="1Gi"),
        nodes=(node,),
    )
    needs = dict(zip(found.resources, found.problem.needs.T.tolist(), strict=True))
    assert needs == {"memory": [0, 1 << 30], "example.com/gpu": [2, 0], "pods": [1, 1]}


def test_where_nothing_is_counted_there_is_nothing_to_be_summed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As in a profile without the filters that count."""
    monkeypatch.setattr(GroupBoard, "takes", lambda _, c: {})
    found = of(*members(2), a_member("large", cpu="3"))
    assert (found.problem.needs.shape, found.problem.free.shape) == ((2, 0), (0, 2))
    assert found.resources == []


@pytest.mark.parametrize(
    ("first", "second", "caps", "clash"),
    [
        ((80, "", ""), (81, "", ""), (1, 1), False),
        ((80, "", ""), (80, "", ""), (1, 1), True),
        ((80, "TCP", ""), (80, "UDP", ""), (1, 1), False),
        ((80, "", "10.0.0.1"), (80, "", "10.0.0.2"), (1, 1), False),
        ((80, "", "10.0.0.1"), (80, "", ""), (1, 1), True),
        ((80, "", ""), (80, "", "10.0.0.1"), (1, 1), True),
    ],
)
def test_pods_with_one_port_do_not_stand_on_one_row(
    first: Any, second: Any, caps: tuple[int, ...], clash: bool
) -> None:
    found = of(a_member("a").host_port(*first), a_member("b", cpu="2").host_port(*second)).problem
    assert found.caps == caps
    assert found.apart.tolist() == [[False, clash], [clash, False]]


@pytest.mark.parametrize("address", ["", "10.0.0.1"])
def test_of_a_class_with_a_port_a_row_takes_one(address: str) -> None:
    found = of(*(a_member(name).host_port(80, "", address) for name in "ab")).problem
    assert (found.counts, found.caps, found.apart.tolist()) == ((2,), (1,), [[False]])


def test_without_ports_a_row_takes_as_many_as_there_are() -> None:
    assert of(*members(3)).problem.caps == (3,)


def rules(*pods: PodBuilder, placed: tuple[PodBuilder, ...] = ()) -> list[Rule]:
    return of(*pods, nodes=ZONES, placed=placed).rules


def affine(kind: str, app: str) -> dict[str, Any]:
    term = {"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": ZONE}
    return {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


def web(name: str, **spec: Any) -> PodBuilder:
    return a_member(name).labels(app="web").spec(**spec)


@pytest.mark.parametrize(
    ("kind", "told"), [("podAffinity", "together"), ("podAntiAffinity", "apart")]
)
def test_terms_about_others_of_the_group_are_rules(kind: str, told: str) -> None:
    db, other = a_member("db", cpu="2").spec(affinity=affine(kind, "web")), a_member("x", cpu="3")
    (rule,) = rules(db, web("w"), other)
    assert (rule.kind, rule.owner, rule.about) == (told, 0, {1})
    zones = rule.domains.tolist()
    assert zones[0] == zones[1] != zones[2]
    assert 0 not in zones


@pytest.mark.parametrize(
    ("where", "is_about_them"),
    [
        ({}, True),
        ({"namespaces": ["other"]}, False),
        ({"namespaces": ["other", "default"]}, True),
        ({"namespaceSelector": {}}, True),
        ({"namespaceSelector": {"matchLabels": {"team": "a"}}}, True),
        ({"namespaceSelector": {"matchLabels": {"team": "b"}}}, False),
        ({"namespaceSelector": {"matchLabels": {"team": "b"}}, "namespaces": ["default"]}, True),
    ],
)
@pytest.mark.parametrize("kind", ["podAffinity", "podAntiAffinity"])
def test_terms_are_about_the_group_where_they_look_into_its_namespace(
    kind: str, where: dict[str, Any], is_about_them: bool
) -> None:
    """A pod of another namespace may be told by the same labels: that ties no two of these."""
    affinity = affine(kind, "web")
    affinity[kind]["requiredDuringSchedulingIgnoredDuringExecution"][0].update(where)
    namespace = decode(Namespace, {"metadata": {"name": "default", "labels": {"team": "a"}}})
    scene = GroupScene(*ZONES)
    scene.cluster.apply(Seen(NAMESPACE, namespace))
    group = scene.group(*(web(name, affinity=affinity) for name in "ab"))
    found = described(GroupBoard(scene.context, group, 2, None, 10_000))
    assert found is not None
    assert [rule.about for rule in found.rules] == [{0}] * is_about_them


def test_terms_and_spread_without_a_selector_are_about_nobody() -> None:
    term = {"topologyKey": ZONE}
    near = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    even = {"topologyKey": ZONE, "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}
    pods = [web(name, affinity=near, topologySpreadConstraints=[even]) for name in "ab"]
    (rule,) = rules(*pods, placed=(a_pod("x").labels(app="web").on("n0"),))
    assert (rule.kind, rule.about) == ("even", frozenset())
    assert not rule.there.any()


def test_terms_about_nobody_of_the_group_are_none() -> None:
    assert rules(a_member("a").spec(affinity=affine("podAffinity", "else"))) == []
    alone = web("w", affinity=affine("podAntiAffinity", "web"))
    assert rules(alone) == [], "there is no other one"
    pair = [web(name, affinity=affine("podAntiAffinity", "web")) for name in "ab"]
    (rule,) = rules(*pair)
    assert rule.about == {0}


def spread(when: str = "DoNotSchedule", skew: int = 2) -> list[dict[str, Any]]:
    selector = {"matchLabels": {"app": "web"}}
    constraint = {"topologyKey": ZONE, "maxSkew": skew, "whenUnsatisfiable": when}
    return [{**constraint, "labelSelector": selector}]


def test_hard_spread_counts_who_is_there_already() -> None:
    there = (
        a_pod("x").labels(app="web").on("n0"),
        a_pod("y").labels(app="web").on("n1"),
        a_pod("z").labels(app="other").on("n2"),
        a_pod("else", "team").labels(app="web").on("n2"),
        a_pod("lost").labels(app="web").on("gone"),
        a_pod("leaving")
        .labels(app="web")
        .on("n2")
        .metadata(deletionTimestamp="2026-01-01T00:00:00Z"),
    )
    pods = [web(name, topologySpreadConstraints=spread()) for name in "ab"]
    nodes = (*ZONES, room("without a zone"))
    there = (*there, a_pod("nowhere").labels(app="web").on("without a zone"))
    (rule,) = of(*pods, nodes=nodes, placed=there).rules
    assert (rule.kind, rule.skew, rule.about) == ("even", 2, {0})
    assert rule.there[rule.domains].tolist() == [2, 2, 0, 0]
    assert rule.there[0] == 0
    assert rules(web("a", topologySpreadConstraints=spread("ScheduleAnyway"))) == []


def test_hard_spread_is_about_pods_that_have_what_its_label_keys_name() -> None:
    there = (
        a_pod("x").labels(app="web", version="1").on("n0"),
        a_pod("y").labels(app="web", version="2").on("n2"),
    )
    (one,) = spread()
    keyed = [{**one, "matchLabelKeys": ["version", "no such label"]}]
    new = [web(n, topologySpreadConstraints=keyed).labels(version="2") for n in "ab"]
    old = web("c").labels(version="1")
    (rule,) = of(*new, old, nodes=ZONES, placed=there).rules
    assert rule.about == {0}
    assert rule.there[rule.domains].tolist() == [0, 0, 1]


def test_a_class_that_fits_nowhere_just_now_is_hoped_for_where_it_may_ever_go() -> None:
    """Its affinity has nobody to be near yet: that may change with the others' places."""
    near = a_member("near").labels(app="x").spec(affinity=affine("podAffinity", "web"))
    found = of(near, web("w"), nodes=ZONES)
    assert found.hopeful.rows[0].tolist() == [True, True, True]
    assert found.problem.rows[0].tolist() == [True, True, True]
    tainted = (room("n0", zone="a").taints("a=b:NoSchedule"), *ZONES[1:])
    assert of(near, web("w"), nodes=tainted).problem.rows[0].tolist() == [False, True, True]


def test_what_may_change_while_nothing_leaves_is_hoped_for_but_not_believed() -> None:
    """The affinity of one has somebody in zone a by now, and may have others elsewhere then."""
    near = a_member("near").spec(affinity=affine("podAffinity", "web"))
    placed = (a_pod("there").labels(app="web").on("n0"),)
    found = of(near, a_member("w", cpu="2"), nodes=ZONES, placed=placed)
    assert found.hopeful.rows.tolist() == [[True, True, False], [True] * 3]
    assert found.problem.rows.tolist() == [[True] * 3, [True] * 3]


@pytest.mark.parametrize("affinity", [{}, affine("podAffinity", "web")])
def test_nobody_goes_where_there_is_no_node_or_none_that_may_be_used(affinity: Any) -> None:
    """Be it a class that is judged by things that never relent, or one that waits for somebody."""
    scene = GroupScene(*ZONES, room("n3", zone="b"))
    group = scene.group(a_member("a").spec(affinity=affinity))
    scene.cluster.apply(Gone(NODE, ZONES[1].build()))
    within = np.array([True, True, True, False])
    found = described(GroupBoard(scene.context, group, 1, within, 10_000))
    assert found is not None
    assert (
        found.problem.rows.tolist() == found.hopeful.rows.tolist() == [[True, False, True, False]]
    )


def test_a_class_that_is_rejected_for_good_is_believed_to_go_nowhere() -> None:
    """No node has two names."""
    names = term(fields=["metadata.name In n0", "metadata.name In n1"])
    lost = a_member("lost").requires_nodes(names)
    found = of(lost, a_member("w", cpu="2"), nodes=ZONES).problem
    assert found.rows.tolist() == [[False] * 3, [True] * 3]


def test_thousands_of_ports_are_compared_once_each(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two pods with 5,000 ports each: not every port of the one with every port of the other."""
    looks = 0
    whole = HostPort.__getattribute__

    def counted(self: HostPort, name: str) -> object:
        nonlocal looks
        looks += name in HostPort._fields
        return whole(self, name)

    monkeypatch.setattr(HostPort, "__getattribute__", counted)
    pods = (a_member("a"), a_member("b", cpu="2"))
    for at, pod in enumerate(pods):
        for port in range(500):
            pod.host_port(1 + 500 * at + port, "", "")
    found = maybe(*pods)
    assert found is not None
    assert not found.problem.apart.any()
    assert looks < 60 * 1_000


def test_of_more_rules_than_plans_can_use_the_first_are_told() -> None:
    selector = {"matchLabels": {"app": "web"}}
    many = [
        {"topologyKey": f"k{at}", "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}
        | {"labelSelector": selector}
        for at in range(RULES_MAX + 5)
    ]
    assert len(rules(web("a", topologySpreadConstraints=many))) == RULES_MAX
    wide = {"matchExpressions": [{"key": f"x{at}", "operator": "DoesNotExist"} for at in range(9)]}
    long = spread() + [{**one, "labelSelector": wide} for one in many]
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(group_problem, "LOOKS_MAX", 25)
        assert len(rules(web("a", topologySpreadConstraints=long))) == 3


def test_each_class_and_each_set_of_labels_is_asked_about_each_requirement() -> None:
    """And once for itself: with one requirement, these are two looks for each of them."""
    placed = tuple(a_pod(f"x{n}").labels(app=f"x{n}").on("n0") for n in range(3))
    even = web("a", topologySpreadConstraints=spread())
    near = [web(name, affinity=affine("podAffinity", "web")) for name in "ab"]
    for pods, looks in (((even,), (1 + 3) * 2), (near, 1 * 2)):
        for allowed, count in ((looks - 1, 0), (looks, 1)):
            with pytest.MonkeyPatch.context() as patched:
                patched.setattr(group_problem, "LOOKS_MAX", allowed)
                assert len(rules(*pods, placed=placed)) == count


def test_more_kinds_of_pods_than_can_be_counted_at_once_are_not_written_down() -> None:
    pods = [a_member(f"p{at}", cpu=f"{at + 1}m") for at in range(CLASSES_MIN + 1)]
    assert maybe(*pods) is not None
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(group_problem, "CELLS_MAX", 2 * CLASSES_MIN)
        assert maybe(*pods) is None, "two rows, and more kinds than eight"
        assert maybe(*pods[:CLASSES_MIN]) is not None
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(group_problem, "CLASSES_MAX", CLASSES_MIN)
        assert maybe(*pods) is None
