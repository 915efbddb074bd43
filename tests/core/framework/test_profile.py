"""Which plugins stand where in a profile, what wakes whom they reject, and what cannot be built."""

import pytest

from asched.core.config.defaults import configuration
from asched.core.config.gates import DEFAULT_GATES, parse
from asched.core.config.merge import ResolvedProfile, WeightedPlugin
from asched.core.config.v1 import KubeSchedulerProfile
from asched.core.framework.points import PermitPlugin, Plugin, QueueSortPlugin, Registration
from asched.core.framework.profile import CannotBuildError, build, with_implicit
from asched.core.state.changes import WILDCARD, Action, Trigger
from asched.core.state.cluster import Cluster
from asched.host.assemble import Parts, build_runners

TOPOLOGY = parse(["GenericWorkload=true,TopologyAwareWorkloadScheduling=true"]).enabled
GANGS = parse(["GenericWorkload=true,GangScheduling=true"]).enabled


def profile(*disabled: str) -> dict[str, object]:
    off = [{"name": name} for name in disabled]
    return {"schedulerName": "default-scheduler", "plugins": {"multiPoint": {"disabled": off}}}


def test_the_gate_brings_the_plugins_of_placements_along() -> None:
    runners = build_runners(configuration({"profiles": [profile()]}, TOPOLOGY), Parts.fresh())

    (built,) = [runner.profile for runner in runners.values()]
    assert [p.name for p in built.placement_generators] == ["TopologyPlacementGenerator"]
    assert [(s.plugin.name, s.weight) for s in built.placement_scorers] == [
        ("NodeResourcesFit", 1),
        ("PodGroupPodsCount", 1),
    ]


def test_without_both_of_them_the_gate_may_be_on() -> None:
    off = profile("TopologyPlacementGenerator", "PodGroupPodsCount")

    assert build_runners(configuration({"profiles": [off]}, TOPOLOGY), Parts.fresh())


def test_gangs_are_known_behind_their_gate() -> None:
    document = {"profiles": [profile()]}
    for gates, known in ((DEFAULT_GATES, False), (GANGS, True)):
        runners = build_runners(configuration(document, gates), Parts.fresh())

        plugins = runners["default-scheduler"].profile.plugins
        assert ("GangScheduling" in plugins) is known


class Sort(QueueSortPlugin):
    name = "Sort"

    def sort_key(self, pod: object, timestamp_s: float) -> float:
        return timestamp_s


class Bare(Plugin):
    name = "Bare"


class Raising(PermitPlugin):
    name = "Raising"

    def permit(self, pod: object, node: str) -> None: ...  # type: ignore[override]

    def registrations(self) -> None:
        raise SystemExit("no list")


def resolved(**points: str) -> ResolvedProfile:
    at = {point: (WeightedPlugin(name),) for point, name in points.items()}
    return ResolvedProfile(
        KubeSchedulerProfile("s"), {"queueSort": (WeightedPlugin("Sort"),), **at}
    )


FACTORIES = {cls.name: (lambda _a, _c, cls=cls: cls()) for cls in (Sort, Bare, Raising)}


@pytest.mark.parametrize(
    ("points", "said"),
    [
        ({"permit": "Nobody"}, "plugin 'Nobody' is enabled but nobody provides it"),
        ({"permit": "Bare"}, 'plugin "Bare" does not extend permit plugin'),
        (
            {"permit": "Raising"},
            'plugin "Raising" cannot tell its registrations: SystemExit: no list',
        ),
    ],
)
def test_what_cannot_be_built_is_told_in_a_line(points: dict[str, str], said: str) -> None:
    with pytest.raises(CannotBuildError) as told:
        build(resolved(**points), FACTORIES, Cluster())
    assert str(told.value) == said


def test_a_profile_with_no_percentage_of_its_own_has_that_of_the_configuration() -> None:
    """None at all is 0, which stands for all nodes here (docs/parity.md)."""
    built = [build(resolved(), FACTORIES, Cluster(), *more) for more in ((), (30,))]
    assert [one.percentage_of_nodes_to_score for one in built] == [0, 30]
    own = ResolvedProfile(
        KubeSchedulerProfile("s", percentage_of_nodes_to_score=0), resolved().points
    )
    assert build(own, FACTORIES, Cluster(), 30).percentage_of_nodes_to_score == 0


def wakes(resource: str, action: Action) -> Registration:
    return Registration(Trigger(resource, action), lambda *_: None)  # type: ignore[arg-type,return-value]


TAINT = Registration(Trigger("Node", Action.UPDATE_NODE_TAINT))


@pytest.mark.parametrize(
    ("own", "more"),
    [
        ((), ()),
        ((wakes("Pod", Action.ADD),), ()),
        ((wakes("Node", Action.UPDATE_NODE_LABEL),), ()),
        ((wakes("Node", Action.ADD),), (TAINT,)),
        ((wakes("Node", Action.ADD | Action.UPDATE_NODE_LABEL),), (TAINT,)),
        ((wakes("Node", Action.ADD), wakes("Node", Action.UPDATE_NODE_LABEL)), (TAINT,)),
        ((wakes("Node", Action.UPDATE_NODE_LABEL), wakes("Node", Action.ADD)), (TAINT,)),
        ((wakes("Node", Action.ADD | Action.UPDATE_NODE_TAINT),), ()),
        ((wakes("Node", Action.UPDATE_NODE_TAINT), wakes("Node", Action.ADD)), ()),
        ((wakes("Pod", Action.UPDATE_NODE_TAINT), wakes("Node", Action.ADD)), (TAINT,)),
    ],
)
def test_who_hears_of_new_nodes_hears_of_every_change_of_taints(
    own: tuple[Registration, ...], more: tuple[Registration, ...]
) -> None:
    """kube-scheduler adds it with a function that always says Queue, since a node may be added
    with a taint and lose it before anybody looks.
    """
    assert with_implicit(own) == (*own, *more)


def test_who_names_nothing_hears_of_everything() -> None:
    assert with_implicit(None) == (Registration(Trigger(WILDCARD, Action.ALL)),)
