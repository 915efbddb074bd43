"""Which plugins stand where in a profile, what wakes whom they reject, and what cannot be built."""

from asched.core.config.defaults import configuration
from asched.core.config.gates import DEFAULT_GATES, parse
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
