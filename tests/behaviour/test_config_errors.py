"""`asched config check` points at the entry that is wrong, once, and says what to do about it."""

import subprocess
import sys
from pathlib import Path

import pytest

from asched.cli.main import main

HEAD = "apiVersion: kubescheduler.config.k8s.io/{}\nkind: KubeSchedulerConfiguration\n"


@pytest.fixture
def check(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    """Exit status and lines of a command on a text, without the file's name."""

    def checked(text: str, command: str = "check") -> tuple[int, list[str]]:
        file = tmp_path / "config.yaml"
        file.write_text(text, encoding="utf-8")
        capsys.readouterr()
        status = main(["config", command, str(file)])
        said = capsys.readouterr().err.splitlines()
        return status, [line.removeprefix("warning: ").removeprefix(f"{file}:") for line in said]

    return checked


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("EBSLimits", "it is gone; NodeVolumeLimits, on by default, does its work today"),
        ("NodePort", 'did you mean "NodePorts"?'),
    ],
)
def test_an_unknown_plugin_of_multi_point_is_one_error_at_its_line(check, name, hint) -> None:
    status, said = check(
        HEAD.format("v1") + "profiles:\n- schedulerName: s\n  plugins:\n    multiPoint:\n"
        f"      enabled:\n      - name: NodeName\n      - name: {name}\n      - name: NodePorts\n"
    )

    text = f'PreFilterPlugin "{name}" does not exist'
    assert status == 2
    assert said == [
        f"9:9: initializing profiles: creating profile for scheduler name s: {text} ({hint})",
        "1 error",
    ]


def test_a_plugin_that_multi_point_names_twice_is_one_error(check) -> None:
    status, said = check(
        HEAD.format("v1") + "profiles:\n- plugins:\n    multiPoint:\n      enabled:\n"
        "      - name: Coscheduling\n      - name: NodeName\n      - name: Coscheduling\n"
        "      disabled:\n      - name: PrioritySort\n"
    )

    assert status == 2
    (line, _) = said
    assert line.startswith("9:9: ")
    assert 'plugin "Coscheduling" already registered' in line


def test_errors_of_an_old_version_stand_where_its_file_has_them(check) -> None:
    """Entries before them have nothing to do in v1 and are left out."""
    status, said = check(
        HEAD.format("v1beta2") + "profiles:\n- plugins:\n    filter:\n      enabled:\n"
        "      - name: EBSLimits\n      - name: NodeNam\n"
        "  pluginConfig:\n  - name: NodeLabel\n    args: {}\n"
        "  - name: NodeResourcesFit\n    args: {ignoredResource: []}\n"
    )

    assert status == 2
    assert [line.partition(": ")[0] for line in said] == ["13:12", "8:9", "2 errors"]


@pytest.mark.parametrize("version", ["v1alpha1", "v1alpha2", "v2"])
def test_a_version_that_cannot_be_migrated_is_not_sent_to_migrate(check, version: str) -> None:
    for command in ("check", "migrate"):
        status, said = check(HEAD.format(version), command)
        assert status == 2
        assert "config migrate" not in said[0]
        assert "write it as kubescheduler.config.k8s.io/v1; " in said[0]


@pytest.mark.parametrize("version", ["v1beta1", "v1beta2", "v1beta3"])
def test_the_configuration_of_coscheduling_of_that_time_is_read(check, version: str) -> None:
    points = ("preFilter", "permit", "reserve", "postBind")
    enabled = "".join(f"    {point}: {{enabled: [{{name: Coscheduling}}]}}\n" for point in points)
    status, said = check(
        HEAD.format(version) + "profiles:\n- plugins:\n"
        "    queueSort: {enabled: [{name: Coscheduling}], disabled: [{name: '*'}]}\n"
        f"{enabled}  pluginConfig:\n  - name: Coscheduling\n    args:\n"
        "      permitWaitingTimeSeconds: 10\n      deniedPGExpirationTimeSeconds: 3\n"
        "      kubeConfigPath: /etc/kubernetes/scheduler.conf\n"
    )

    assert status == 0
    unsupported = [line.partition("args.")[2] for line in said if "unsupported" in line]
    assert unsupported == [
        "deniedPGExpirationTimeSeconds: podGroupBackoffSeconds is the pause after a rejection",
        "kubeConfigPath: plugins use the scheduler's own connection",
    ]


def test_in_v1_arguments_of_old_versions_are_refused_as_upstream_refuses_them(check) -> None:
    status, said = check(
        HEAD.format("v1") + "profiles:\n- pluginConfig:\n  - name: Coscheduling\n"
        "    args: {deniedPGExpirationTimeSeconds: 3}\n"
    )

    assert status == 2
    assert 'unknown field "deniedPGExpirationTimeSeconds"' in said[0]


@pytest.mark.parametrize(
    ("plugin", "points", "args"),
    [
        ("CapacityScheduling", ("preFilter", "postFilter", "reserve"), "kubeConfigPath: /a"),
        (
            "NodeResourceTopologyMatch",
            ("filter", "score", "reserve"),
            "kubeconfigpath: /a, masteroverride: b, namespaces: [c]",
        ),
        ("TargetLoadPacking", ("score",), "targetUtilization: 50"),
        ("LoadVariationRiskBalancing", ("score",), "safeVarianceMargin: 1.5"),
    ],
)
def test_so_are_those_of_scheduler_plugins_other_plugins(tmp_path, plugin, points, args) -> None:
    """In a process of its own, which finds the plugins that are installed with asched."""
    enabled = "".join(f"    {point}: {{enabled: [{{name: {plugin}}}]}}\n" for point in points)
    file = tmp_path / "config.yaml"
    file.write_text(
        HEAD.format("v1beta1")
        + f"profiles:\n- plugins:\n{enabled}  pluginConfig:\n  - name: {plugin}\n"
        f"    args: {{{args}}}\n"
    )
    command = (sys.executable, "-m", "asched", "config", "check", str(file))
    ran = subprocess.run(command, capture_output=True, text=True, check=False)

    assert ran.returncode == 0, ran.stderr
