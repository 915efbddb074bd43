"""What cannot be built is refused with one line that names the plugin and the cure."""

import pytest

from asched.core.config.defaults import configuration
from asched.core.config.gates import DEFAULT_GATES, parse
from asched.core.framework.profile import CannotBuildError
from asched.edge.host.assemble import Parts, build_runners

TOPOLOGY = parse(["GenericWorkload=true,TopologyAwareWorkloadScheduling=true"]).enabled
GANGS = parse(["GenericWorkload=true,GangScheduling=true"]).enabled


def profile(*disabled: str) -> dict[str, object]:
    off = [{"name": name} for name in disabled]
    return {"schedulerName": "default-scheduler", "plugins": {"multiPoint": {"disabled": off}}}


@pytest.mark.parametrize(
    ("disabled", "plugin"),
    [
        ((), "TopologyPlacementGenerator"),
        (("TopologyPlacementGenerator",), "PodGroupPodsCount"),
    ],
)
def test_a_plugin_that_is_not_covered_is_refused_with_its_gate(
    disabled: tuple[str, ...], plugin: str
) -> None:
    wanted = configuration({"profiles": [profile(*disabled)]}, TOPOLOGY)

    with pytest.raises(CannotBuildError) as caught:
        build_runners(wanted, Parts.fresh())

    assert str(caught.value) == (
        f'plugin "{plugin}" is not covered: switch the feature gate'
        " TopologyAwareWorkloadScheduling off, or disable the plugin in the profile"
    )


def test_without_both_of_them_the_gate_may_be_on() -> None:
    off = profile("TopologyPlacementGenerator", "PodGroupPodsCount")

    assert build_runners(configuration({"profiles": [off]}, TOPOLOGY), Parts.fresh())


def test_gangs_are_known_behind_their_gate() -> None:
    document = {"profiles": [profile()]}
    for gates, known in ((DEFAULT_GATES, False), (GANGS, True)):
        runners = build_runners(configuration(document, gates), Parts.fresh())

        plugins = runners["default-scheduler"].profile.plugins
        assert ("GangScheduling" in plugins) is known
