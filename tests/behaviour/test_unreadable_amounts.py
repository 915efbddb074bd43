"""An amount that cannot be parsed costs the pod that has it, and no other pod, its place."""

import pytest

from asched.core.cluster.facts import Bound
from asched.core.framework.effects import Bind
from tests.builders import a_node, a_pod
from tests.playbook import Play
from tests.support import plugins_along

PLUGINS = [
    "CapacityScheduling",
    "GpuFractions",
    "GpuShare",
    "GpuSharing",
    "HamiVGPU",
    "LoadAwareScheduling",
    "LoadVariationRiskBalancing",
    "LowRiskOverCommitment",
    "NodeResourceTopologyMatch",
    "TargetLoadPacking",
    "VolcanoVGPU",
]
#: The API server writes neither; pods from another source may have them.
AMOUNTS = ["1e+308", "one"]


@pytest.mark.parametrize("amount", AMOUNTS)
@pytest.mark.parametrize("plugin", PLUGINS)
def test_a_pod_beside_one_with_an_unreadable_amount_is_bound(plugin: str, amount: str) -> None:
    profile = {
        "schedulerName": "default-scheduler",
        "plugins": {"multiPoint": {"enabled": [{"name": plugin}]}},
    }
    play = Play(a_node("n1"), installed=plugins_along(), profiles=[profile])
    resources = {
        "cpu": amount,
        "nvidia.com/gpu": amount,
        "aliyun.com/gpu-mem": amount,
        "volcano.sh/vgpu-number": amount,
    }
    for name, node in [("placed", "n1"), ("waits", "")]:
        bad = a_pod(name).requests(resources)
        bad.first["resources"]["limits"] = resources
        play.see(bad.on(node) if node else bad)
        assert not play.of(Bind)
    for name in ("first", "second"):
        play.see(a_pod(name).requests(cpu="1"))
        bind = play.the(Bind)
        assert bind.pod.name == name
        play.answer(Bound(bind.id))
