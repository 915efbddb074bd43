"""Components of deploy/ for plugins of `asched.hardware` grant what the plugin declares, and the
doctor names them.
"""

from itertools import product

import pytest
import yaml

from asched.hardware.sharing.plugin import GpuShare, HamiVGPU, VolcanoVGPU
from asched.ops.doctor.permissions import HARDWARE_COMPONENTS, Right, rights_of
from tests.support import ROOT

PATCH_PODS = Right("patch", "", "pods")
PATCH_NODES = Right("patch", "", "nodes")


def granted_by(component: str) -> list[Right]:
    text = (ROOT / "deploy/components" / component / "rbac.yaml").read_text(encoding="utf-8")
    role, binding = yaml.safe_load_all(text)
    assert binding["roleRef"]["name"] == role["metadata"]["name"]
    return [
        Right(verb, group, resource)
        for rule in role["rules"]
        for verb, group, resource in product(rule["verbs"], rule["apiGroups"], rule["resources"])
    ]


@pytest.mark.parametrize(
    ("plugin", "rights"),
    [
        (HamiVGPU, {PATCH_PODS, PATCH_NODES}),
        (VolcanoVGPU, {PATCH_PODS}),
        (GpuShare, {PATCH_PODS}),
    ],
)
def test_a_gpu_plugin_is_granted_what_it_declares_and_no_more(
    plugin: type, rights: set[Right]
) -> None:
    granted = [right for one in HARDWARE_COMPONENTS[plugin.name] for right in granted_by(one)]
    assert sorted(granted) == sorted(rights) == sorted(rights_of(plugin))
