import argparse
import io
from pathlib import Path
from typing import Any

import pytest
import yaml

from asched.cli import config
from asched.cli.flags import parse
from asched.cli.run_config import load
from asched.core.config.defaults import default_configuration
from asched.core.config.merge import resolve
from asched.core.config.text import effective
from asched.core.config.v1 import KIND
from asched.core.plugins import IN_TREE_POINTS
from asched.host.configuration.file import ConfigError, load_config
from tests.support import ROOT, plugins_along, recorded_lines, recorded_text

HEAD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"


def run(*words: str) -> int:
    parser = argparse.ArgumentParser()
    config.add_parser(parser.add_subparsers())
    args = parser.parse_args(["config", *words])
    code: int = args.run(args)
    return code


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "config.yaml"
    path.write_text(HEAD, encoding="utf-8")
    return path


def test_check_lists_every_fault_with_its_place(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file.write_text(f"{HEAD}parallelism: 0\nclientConnection:\n  burst: -1\n", encoding="utf-8")
    assert run("check", str(file)) == 2
    out = capsys.readouterr()
    assert out.out == ""
    assert out.err.splitlines() == [
        f"{file}:3:1: parallelism: Invalid value: 0: should be an integer value greater than zero",
        f"{file}:5:3: clientConnection.burst: Invalid value: -1: must be non-negative",
        "2 errors",
    ]


def test_view_of_a_minimal_file_is_every_default(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("view", str(file)) == 0
    shown = yaml.safe_load(capsys.readouterr().out)
    assert shown == effective(default_configuration())
    recorded = yaml.safe_load(recorded_text("outside/flags/written_config.yaml"))
    recorded["clientConnection"] |= {"kubeconfig": "", "qps": -1}
    recorded["profiles"][0]["pluginConfig"][0]["args"]["minCandidateNodesPercentage"] = 100
    assert shown == recorded


def behaviour_of(file: Path) -> dict[str, Any]:
    """What `asched run --config=FILE` decides by."""
    return effective(load(parse([f"--config={file}"]), plugins_along().known).configuration)


SHIPPED = sorted(
    [
        *(path for path in (ROOT / "config").iterdir()),
        *(
            path
            for path in (ROOT / "deploy/overlays").rglob("*.yaml")
            if KIND in path.read_text("utf-8")
        ),
    ]
)


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_viewed_file_behaves_as_the_file(
    path: Path, file: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """`run` gets the same configuration from what `view` prints."""
    monkeypatch.setattr(config, "discover", lambda *_: plugins_along())
    for part in config.parts(path.read_text("utf-8")):
        file.write_text(part.text)
        expected = behaviour_of(file)
        assert run("view", str(file)) == 0
        file.write_text(capsys.readouterr().out)
        assert behaviour_of(file) == expected


def test_recorded_files_are_viewed_as_they_behave(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    recorded = [
        case["input"] for case in recorded_lines("outside/config/config.jsonl.gz") if case["ok"]
    ]
    for text in recorded:
        file.write_text(text)
        try:
            expected = behaviour_of(file)
        except ConfigError:  # needs a feature gate
            continue
        assert run("view", str(file)) == 0
        file.write_text(capsys.readouterr().out)
        assert behaviour_of(file) == expected


def test_view_knows_feature_gates(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    gates = "GenericWorkload=true,GangScheduling=true"
    assert run("view", str(file), f"--feature-gates={gates}") == 0
    assert "name: GangScheduling" in capsys.readouterr().out
    assert run("view", str(file), "--feature-gates=GangScheduling=true") == 2
    assert "depends on features" in capsys.readouterr().err


def test_a_file_that_is_not_there_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("check", "/nonexistent/x.yaml") == 2
    assert capsys.readouterr().err == (
        "asched config: open /nonexistent/x.yaml: no such file or directory\n"
    )


MANIFESTS = """\
# what a tutorial gives to kubectl apply
apiVersion: v1
kind: ServiceAccount
metadata: {name: my-scheduler}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: my-config, namespace: kube-system}
data:
  readme.txt: not a configuration
  my.yaml: |
    apiVersion: kubescheduler.config.k8s.io/v1
    kind: KubeSchedulerConfiguration
    parallelism: PARALLELISM
    profiles:
    - schedulerName: mine
  policy.cfg: '{"kind": "Policy", "apiVersion": "v1"}'
---
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
podInitialBackoffSeconds: INITIAL
"""


def manifests(tmp_path: Path, parallelism: int, initial: int) -> Path:
    path = tmp_path / "all.yaml"
    text = MANIFESTS.replace("PARALLELISM", str(parallelism)).replace("INITIAL", str(initial))
    path.write_text(text, encoding="utf-8")
    return path


def test_every_configuration_in_a_file_of_manifests_is_checked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = manifests(tmp_path, 4, 1)
    assert run("check", str(path)) == 0
    rest = "valid; serves default-scheduler; 0 extenders"
    assert capsys.readouterr().out.splitlines() == [
        f"{path} (ConfigMap my-config, my.yaml): valid; serves mine; 0 extenders",
        f"{path} (ConfigMap my-config, policy.cfg): {rest}",
        f"{path} (KubeSchedulerConfiguration of line 19): {rest}",
    ]


def test_all_faults_of_all_stages_are_told_at_once(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """An unknown field, a value out of range, a plugin that is none, a name used twice."""
    file.write_text(
        f"""{HEAD}paralelism: 3
percentageOfNodesToScore: 200
profiles:
- schedulerName: a
  plugins: {{score: {{enabled: [{{name: Nope}}]}}}}
- schedulerName: a
""",
        encoding="utf-8",
    )
    assert run("check", str(file)) == 2
    told = capsys.readouterr().err
    for line, text in (
        (3, 'unknown field "paralelism" (did you mean "parallelism"?)'),
        (4, "percentageOfNodesToScore: Invalid value: 200"),
        (7, 'plugin "Nope" does not exist'),
        (8, 'schedulerName: Duplicate value: "a"'),
    ):
        assert any(f"{file}:{line}:" in fault and text in fault for fault in told.splitlines())
    assert told.splitlines()[-1] == "4 errors"


PLUGIN = """\
from dataclasses import dataclass


@dataclass
class Args:
    free_cores: float = 0.5


class SpareCores:
    def __init__(self, args: Args) -> None:
        raise AssertionError("a check must not run this")

    def filter(self, pod, node):
        return None
"""


def test_args_of_a_plugin_of_ones_own_are_checked_without_making_one(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plugin = tmp_path / "spare_cores.py"
    plugin.write_text(PLUGIN, encoding="utf-8")
    profile = """\
profiles:
- plugins: {{multiPoint: {{enabled: [{{name: SpareCores}}]}}}}
  pluginConfig:
  - name: SpareCores
    args: {{{}: 1}}
"""
    file.write_text(HEAD + profile.format("freeCores"), encoding="utf-8")
    assert run("check", "--plugin", str(plugin), str(file)) == 0

    file.write_text(HEAD + profile.format("freeCors"), encoding="utf-8")
    assert run("check", "--plugin", str(plugin), str(file)) == 2
    fault, count = capsys.readouterr().err.splitlines()
    assert fault.startswith(f'{file}:7:5: initializing plugin "SpareCores": args.freeCors: unknown')
    assert count == "1 error"


@pytest.mark.parametrize(("scope", "warns"), [("", True), ('    scope = "node"\n', False)])
def test_a_plugin_of_ones_own_whose_pods_wait_while_there_are_pools(
    scope: str, warns: bool, file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plugin = tmp_path / "spare_cores.py"
    plugin.write_text(PLUGIN.replace("SpareCores:\n", f"SpareCores:\n{scope}"), encoding="utf-8")
    profile = "profiles:\n- plugins: {multiPoint: {enabled: [{name: SpareCores}]}}\n"
    pools = "pools:\n- {name: batch, namespaces: [jobs]}\n"
    file.write_text(HEAD + profile + pools, encoding="utf-8")
    assert run("check", "--plugin", str(plugin), str(file)) == 0
    said = capsys.readouterr().err
    assert ("plugin SpareCores has the scope cluster" in said) is warns
    assert ("so all would have to share a pool" in said) is warns
    file.write_text(HEAD + profile, encoding="utf-8")
    assert run("check", "--plugin", str(plugin), str(file)) == 0
    assert "scope" not in capsys.readouterr().err


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        (
            "extenders:\n- {urlPrefix: http://e/, filterVerb: filter}\n",
            "extenders[0] may concern pods of any namespace, so all would have to share a pool",
        ),
        ("extenders:\n- {urlPrefix: http://e/, prioritizeVerb: p, weight: 1}\n", ""),
        (
            "profiles:\n- plugins: {multiPoint: {enabled: [{name: CapacityScheduling}]}}\n",
            "CapacityScheduling: namespaces with an ElasticQuota have to share a pool",
        ),
    ],
    ids=["an extender that filters", "an extender that scores", "quotas"],
)
def test_rules_across_pools_and_which_namespaces_have_to_share_one(
    fields: str, said: str, file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file.write_text(f"{HEAD}{fields}pools:\n- {{name: a, namespaces: [x]}}\n", encoding="utf-8")
    assert run("check", str(file)) == 0
    warnings = capsys.readouterr().err
    assert said in warnings
    assert bool(warnings) is bool(said)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"\xff", "read <stdin>: not UTF-8 at byte 0"),
        (b" " * 2_000_000, "read <stdin>: larger than 1500000 bytes"),
        (b"[" * 20_000 + b"]" * 20_000, "nested too deeply"),
    ],
)
def test_what_cannot_be_read_is_told_in_one_line(data, said, monkeypatch, capsys):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(data)))
    assert run("check", "-") == 2
    assert said in capsys.readouterr().err


BATCH = f"""{HEAD}profiles:
- schedulerName: asched
  plugins:
    multiPoint:
      enabled: [{{name: CapacityScheduling}}, {{name: Coscheduling}}, {{name: Backfill}}]
      disabled: [{{name: PrioritySort}}, {{name: NodePorts}}]
    filter:
      disabled: [{{name: NodeName}}]
    postFilter:
      disabled: [{{name: "*"}}]
      enabled: [{{name: CapacityScheduling}}]
  pluginConfig:
  - name: NodeResourcesFit
    args: {{ignoredResources: [example.com/dongle]}}
  - name: PodTopologySpread
    args:
      defaultingType: List
      defaultConstraints:
      - {{maxSkew: 2, topologyKey: zone, whenUnsatisfiable: DoNotSchedule}}
- schedulerName: other
  plugins:
    multiPoint: {{enabled: [{{name: Coscheduling}}], disabled: [{{name: PrioritySort}}]}}
extenders:
- urlPrefix: http://extender/
  filterVerb: filter
"""


def test_export_for_cluster_autoscaler_is_a_profile_of_kube_scheduler(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file.write_text(BATCH, encoding="utf-8")
    assert run("export", "--for", "cluster-autoscaler", str(file)) == 0
    out = capsys.readouterr()
    unknown, none = "warning: cluster-autoscaler does not know", "it adds no node for pods that"
    assert out.err.splitlines() == [
        "warning: cluster-autoscaler knows one profile; this is asched",
        f"{unknown} Coscheduling: {none} only this rule rejects",
        f"{unknown} CapacityScheduling: {none} only this rule rejects",
        f"{unknown} Backfill: it may find room on a node that asched rejects, and add none",
        "warning: cluster-autoscaler does not call the extender http://extender/",
    ]
    file.write_text(out.out, encoding="utf-8")
    assert run("check", str(file)) == 0
    filters = ["NodeUnschedulable", "TaintToleration", "NodeAffinity", "NodeResourcesFit"]
    filters += ["VolumeRestrictions", "NodeVolumeLimits", "VolumeBinding", "VolumeZone"]
    filters += ["PodTopologySpread", "InterPodAffinity", "DynamicResources", "NodeDeclaredFeatures"]
    (profile,) = load_config(str(file)).configuration.profiles
    points = resolve(profile, IN_TREE_POINTS)
    assert [plugin.name for plugin in points.at("filter")] == filters
    assert [plugin.name for plugin in points.at("queueSort")] == ["PrioritySort"]
    args: dict[str, Any] = dict(profile.plugin_config)
    assert args["NodeResourcesFit"].ignored_resources == ("example.com/dongle",)
    assert args["PodTopologySpread"].default_constraints[0].max_skew == 2


def test_export_for_karpenter_has_the_default_spread(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file.write_text(BATCH, encoding="utf-8")
    assert run("export", "--for", "karpenter", "--profile", "asched", str(file)) == 0
    out = capsys.readouterr()
    spread = {"maxSkew": 2, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}
    assert yaml.safe_load(out.out) == {"podTopologySpread": {"defaultConstraints": [spread]}}
    assert out.err.splitlines()[-3:] == [
        "warning: karpenter does not know ignoredResources of NodeResourcesFit",
        "warning: karpenter applies NodeName, which the profile disables",
        "warning: karpenter applies NodePorts, which the profile disables",
    ]


def test_export_names_an_unknown_profile(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("export", "--for", "karpenter", "--profile", "nobdy", str(file)) == 2
    out = capsys.readouterr()
    assert out.err.splitlines() == [
        'asched config: --profile "nobdy" is not in the file; it has default-scheduler'
    ]
