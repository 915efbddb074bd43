import argparse
from pathlib import Path

import pytest
import yaml

from asched.cli import config
from asched.core.config.defaults import default_configuration
from asched.core.config.text import effective
from tests.shared import ROOT, shared_path

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


def test_check_says_that_a_file_can_be_used(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("check", str(file)) == 0
    out = capsys.readouterr()
    assert out.out == f"{file}: can be used; serves default-scheduler; 0 extenders\n"
    assert out.err == ""


def test_check_lists_every_fault_with_its_place(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file.write_text(f"{HEAD}parallelism: 0\nclientConnection:\n  burst: -1\n", encoding="utf-8")
    assert run("check", str(file)) == 2
    out = capsys.readouterr()
    assert out.out == ""
    assert out.err.splitlines() == [
        f"{file}:5:3: clientConnection.burst: Invalid value: -1: must be non-negative",
        f"{file}:3:1: parallelism: Invalid value: 0: should be an integer value greater than zero",
        "2 errors",
    ]


def test_view_of_a_minimal_file_is_every_default(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("view", str(file)) == 0
    shown = yaml.safe_load(capsys.readouterr().out)
    assert shown == effective(default_configuration())
    recorded = yaml.safe_load(shared_path("outside/flags/written_config.yaml").read_text("utf-8"))
    recorded["clientConnection"]["kubeconfig"] = ""
    assert shown == recorded


def test_view_knows_feature_gates(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    gates = "GenericWorkload=true,GangScheduling=true"
    assert run("view", str(file), f"--feature-gates={gates}") == 0
    assert "name: GangScheduling" in capsys.readouterr().out
    assert run("view", str(file), "--feature-gates=GangScheduling=true") == 2
    assert "depends on features" in capsys.readouterr().err


def test_migrate_prints_v1_and_the_fate_of_every_entry(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    policy = ROOT / "config" / "policy.yaml"
    assert run("migrate", str(policy)) == 0
    out = capsys.readouterr()
    assert f"  {policy}:6:5: predicates[0]: PodFitsResources became NodeResourcesFit" in out.err
    assert "unsupported: 0" in out.err
    written = tmp_path / "v1.yaml"
    written.write_text(out.out, encoding="utf-8")
    assert run("check", str(written)) == 0


def test_migrate_leaves_v1_alone(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("migrate", str(file)) == 0
    out = capsys.readouterr()
    assert out.out == HEAD
    assert out.err == f"{file}: is v1 already\n"


def test_a_file_that_is_not_there_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("check", "/nonexistent/x.yaml") == 2
    assert capsys.readouterr().err == (
        "asched config: open /nonexistent/x.yaml: no such file or directory\n"
    )


def test_standard_input_is_a_file(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import io

    monkeypatch.setattr("sys.stdin", io.StringIO(HEAD))
    assert run("check", "-") == 0
    assert capsys.readouterr().out.startswith("<stdin>: can be used")


def test_a_config_map_is_told_how_to_unwrap_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "map.yaml"
    wrapped = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "my-config", "namespace": "kube-system"},
        "data": {"my.yaml": HEAD},
    }
    path.write_text(yaml.safe_dump(wrapped), encoding="utf-8")

    assert run("check", str(path)) == 2

    assert (
        "kubectl -n kube-system get configmap my-config -o jsonpath='{.data.my\\.yaml}'"
        " | asched config check -\n"
    ) in capsys.readouterr().err


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
