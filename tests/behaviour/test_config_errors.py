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
        (
            "NodeResourcesAllocatable",
            (
                "scheduler-plugins' score by the size of a node, not by what is free; delete the"
                " line, or fill nodes by the scoringStrategy of NodeResourcesFit, type"
                " MostAllocated"
            ),
        ),
        (
            "DefaultPreBind",
            (
                "Koordinator's write of annotations before the binding; delete the line: asched's"
                " plugins write their own"
            ),
        ),
        (
            "FitLimitResources",
            "a score by the limits of pods; delete the line: NodeResourcesFit scores by requests",
        ),
        (
            "NodeResourcesElsewhere",
            "asched does not have it; `asched plugins list` names those it has",
        ),
    ],
)
def test_an_unknown_plugin_of_multi_point_is_one_error_at_its_line(check, name, hint) -> None:
    status, said = check(
        HEAD.format("v1") + "profiles:\n- schedulerName: s\n  plugins:\n    multiPoint:\n"
        f"      enabled:\n      - name: NodeName\n      - name: {name}\n      - name: NodePorts\n"
    )

    text = f'plugin "{name}" does not exist'
    assert status == 2
    assert said == [
        f"9:9: {text} ({hint})",
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
    assert 'plugin "Coscheduling" is enabled twice' in line


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


def test_in_v1_arguments_of_old_versions_are_refused(check) -> None:
    status, said = check(
        HEAD.format("v1") + "profiles:\n- pluginConfig:\n  - name: Coscheduling\n"
        "    args: {deniedPGExpirationTimeSeconds: 3}\n"
    )

    assert status == 2
    assert 'args.deniedPGExpirationTimeSeconds"' in said[0]


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


VOLCANO = 'actions: "enqueue, allocate"\ntiers:\n- plugins:\n  - name: gang\n'
OF_VOLCANO = "this is the configuration of Volcano's scheduler; "
OF_YUNIKORN = "these are YuniKorn's queues; "
TEMPLATE = "this is a template, no configuration yet; render it first"


def config_map(key: str, data: str) -> str:
    indented = "".join(f"    {line}\n" for line in data.splitlines())
    return f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: m}}\ndata:\n  {key}: |\n{indented}"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (VOLCANO, f"1:1: {OF_VOLCANO}"),
        (config_map("volcano-scheduler.conf", VOLCANO), OF_VOLCANO),
        ("partitions:\n- name: default\n  queues: [{name: root}]\n", f"1:1: {OF_YUNIKORN}"),
        (config_map("queues.yaml", "partitions:\n- name: default\n"), OF_YUNIKORN),
        ("scheduler: {name: x}\nplugins: {enabled: [a]}\n", "1:1: this has neither apiVersion"),
        ("apiVersion: apps/v1\nkind: Deployment\n", "1:1: this is a Deployment of apps/v1"),
        (HEAD.format("v1") + "# {{ a comment }}\nprofiles: {{ .Values.p }}\n", f"4:11: {TEMPLATE}"),
        (HEAD.format("v1") + "{{- range .Values.profiles }}\n", f"3:1: {TEMPLATE}"),
        (HEAD.format("v1") + 'profiles: [{schedulerName: "{{ .n }}"}]\n', f"3:29: {TEMPLATE}"),
        (config_map("a.yaml", HEAD.format("v1") + "{{ toYaml .Values.p }}\n"), f"8:5: {TEMPLATE}"),
    ],
)
def test_a_file_that_is_no_configuration_is_named_in_one_line(check, text: str, line: str) -> None:
    status, said = check(text)

    assert status == 2
    assert line in said[0]
    assert said[1:] in ([], ["1 error"])


@pytest.mark.parametrize(
    ("field", "hint"),
    [
        ("profiles: {default-scheduler: {}}", "such as `- schedulerName: NAME`)"),
        ("leaderElection: [{leaderElect: true}]", "(write `name: value`, without `- `)"),
        ("podInitialBackoffSeconds: 500ms", "(write a whole number of seconds without a unit,"),
        ("leaderElection: {leaseDuration: 15}", "(write a number and a unit, such as 15s)"),
    ],
)
def test_a_value_of_another_form_is_answered_with_the_right_one(check, field, hint) -> None:
    status, said = check(HEAD.format("v1") + f"{field}\n")

    assert status == 2
    assert hint in said[0]
    assert said[1:] == ["1 error"]


POOLS = HEAD.format("v1") + "pools:\n"


@pytest.mark.parametrize(
    ("pools", "error"),
    [
        ("- namespaces: [a]\n", "4:3: pools[0].name: Required value"),
        ("- name: default\n  namespaces: [a]\n", '4:3: pools[0].name: Forbidden: "default" is'),
        ("- name: a\n", "4:3: pools[0].namespaces: Required value: a pool without namespaces"),
        (
            "- name: a\n  namespaces: [x]\n- name: b\n  namespaces: [z, x]\n",
            '7:19: pools[1].namespaces[1]: Invalid value: "x": also a namespace of pool "a"',
        ),
        (
            (
                "- {name: a, namespaces: [x], nodeSelector: {t: v}}\n"
                "- {name: b, namespaces: [z], nodeSelector: {t: v, u: w}}\n"
            ),
            '5:30: pools[1].nodeSelector: Invalid value: {"t": "v", "u": "w"}: nodes of pool "a"',
        ),
        (
            "- name: a\n  namespaceSelector:\n    matchExpressions: [{key: k, operator: Gt}]\n",
            "6:33: pools[0].namespaceSelector.matchExpressions[0].operator: Unsupported value:",
        ),
        (
            "- name: a\n  namespaceSelector: {}\n",
            "5:3: pools[0].namespaceSelector: Required value: an empty selector selects every",
        ),
        ("- name: a\n  namespaces: [x]\n  leases: {}\n", '6:3: unknown field "pools[0].leases"'),
    ],
)
def test_a_fault_of_a_pool_is_shown_at_its_place(check, pools: str, error: str) -> None:
    status, (line, count) = check(POOLS + pools)

    assert (status, count) == (2, "1 error")
    assert line.startswith(error)


def with_lease(times):
    """A pool with a Lease of its own timing."""
    pool = f"- {{name: a, namespaces: [x], lease: {{{times}}}}}"
    return f"pools:\n{pool}\npoolLeases: true\n"


ONE_POOL = "pools:\n- {name: a, namespaces: [x]}\npoolLeases: true\n"
REBALANCING = (
    "profiles:\n- plugins: {multiPoint: {enabled: [{name: Rebalance}]}}\n  schedulerName: asched\n"
)


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("poolLeases: true\n", "poolLeases: Forbidden: there are no pools"),
        (
            "pools:\n- {name: a, namespaces: [x], lease: {leaseDuration: 5s}}\n",
            "pools[0].lease: Forbidden: needs poolLeases: true; without it there is one Lease",
        ),
        (
            with_lease("leaseDuration: 5s"),
            'pools[0].lease.leaseDuration: Invalid value: "5s": must be greater than renewDeadline',
        ),
        (
            with_lease("leaseDuration: 5s, renewDeadline: 2s"),
            'pools[0].lease.renewDeadline: Invalid value: "2s": must be greater than 1.2 times',
        ),
        (
            with_lease("leaseDuration: 5s, renewDeadline: 2s, retryPeriod: 0s"),
            'pools[0].lease.retryPeriod: Invalid value: "0s": must be greater than zero',
        ),
        (
            ONE_POOL + "leaderElection: {leaderElect: false}\n",
            "poolLeases: Forbidden: needs leaderElection.leaderElect",
        ),
        (
            ONE_POOL + "delayCacheUntilActive: true\n",
            "delayCacheUntilActive: Forbidden: not together with poolLeases",
        ),
        (
            ONE_POOL + REBALANCING,
            "Forbidden: Rebalance decides for all pools",
        ),
    ],
)
def test_what_several_replicas_cannot_divide_is_refused(check, text: str, error: str) -> None:
    status, (line, count) = check(HEAD.format("v1") + text)

    assert (status, count) == (2, "1 error")
    assert error in line
