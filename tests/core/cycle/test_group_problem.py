"""A group in numbers: needs and room, who may not stand together, and rules about domains."""

from typing import Any

import pytest

from asched.batch.groups.board import GroupBoard
from asched.batch.groups.problem import Description, described
from asched.batch.placement.domains import Rule
from asched.core.model.decode import decode
from asched.core.model.kinds import NAMESPACE
from asched.core.model.workload import Namespace
from asched.core.state.facts import Seen
from tests.builders import NodeBuilder, PodBuilder, a_node, a_pod
from tests.core.cycle.attempts import GroupScene, members
from tests.core.cycle.gang_plays import a_member

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
