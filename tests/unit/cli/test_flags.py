import ast
import json
from pathlib import Path
from typing import Any

import pytest

import asched
from asched.cli.flag_checks import check
from asched.cli.flag_table import ALL, BY_NAME
from asched.cli.flags import HelpRequested, UsageError, VersionRequested, parse
from asched.cli.go_values import READERS
from tests.support import recorded_lines, recorded_text

#: Defaults of ours that differ, on purpose, from kube-scheduler's.
OTHER_DEFAULTS = {"leader-elect-resource-name": "kube-scheduler", "kube-api-qps": "50"}
#: Recorded command lines whose outcome is another here, each with its reason.
OTHER_OUTCOMES = {
    "emulated version too old": "refused, with asched's own bounds",
}


def recorded_runs() -> list[dict[str, Any]]:
    return recorded_lines("outside/flags/runs.jsonl")


def outcome(args: list[str]) -> str:
    """What `parse` says: an error's text, or how it ended."""
    try:
        parse([word.replace("$port", "10260") for word in args])
    except UsageError as error:
        return str(error)
    except HelpRequested:
        return "help"
    except VersionRequested:
        return "version"
    return "accepted"


def test_every_recorded_flag_is_known_with_its_type_and_default() -> None:
    for row in json.loads(recorded_text("outside/flags/flags.json")):
        flag = BY_NAME[row["flag"]]
        kind = {"durationNs": "duration", "gates": "colonSeparatedMultimapStringString"}.get(
            flag.kind, flag.kind
        )
        assert row["type"].split("[")[0] in (kind, flag.kind), row
        default = OTHER_DEFAULTS.get(flag.name, flag.default)
        wanted = row["default"].strip("[]")
        assert wanted in (default, "") or READERS[flag.kind](wanted) == READERS[flag.kind](default)
        assert flag.short in ("", row.get("short", "").lstrip("-")), row
        assert flag.group == row["group"] or flag.instead or row["deprecated"], row


def test_a_flag_that_upstream_cannot_read_is_refused() -> None:
    refused = [run for run in recorded_runs() if run["stderr_last"].startswith("Error: ")]
    for run in refused:
        assert outcome(run["args"]) not in ("accepted", "help", "version"), run["name"]
    assert len(refused) > 10


def test_only_what_upstream_refuses_is_refused() -> None:
    found = 0
    for run in recorded_runs():
        result = outcome(run["args"])
        if result in ("accepted", "help", "version") or run["name"] in OTHER_OUTCOMES:
            continue
        assert run["exit"] == 1 if "exit" in run else run["exit_after_sigterm"] == 1, run["name"]
        found += 1
    assert found > 25


def test_what_upstream_starts_with_is_accepted() -> None:
    for run in recorded_runs():
        if run["name"] in OTHER_OUTCOMES or run.get("running_after_seconds") is None:
            continue
        if run.get("exit_after_sigterm") == 0:
            assert outcome(run["args"]) == "accepted", run["name"]


@pytest.mark.parametrize(
    ("args", "text"),
    [
        (["--no-such"], "unknown flag: --no-such"),
        (["--confg=x"], 'unknown flag: --confg (did you mean "config"?)'),
        (["--config"], "flag needs an argument: --config"),
        (["-v"], "flag needs an argument: 'v' in -v"),
        (["-x"], "unknown shorthand flag: 'x' in -x"),
        (["-hv"], "flag needs an argument: 'v' in -v"),
        (["-hxy"], "unknown shorthand flag: 'x' in -xy"),
        (["---x"], "bad flag syntax: ---x"),
        (["--=x"], "bad flag syntax: --=x"),
        (["--v=x"], 'invalid argument "x" for "-v, --v" flag: must be a whole number from 0'),
        (["--kube-api-qps=inf"], 'invalid argument "inf" for "--kube-api-qps" flag: must be a'),
        (["--version=v1.2.3"], 'invalid argument "v1.2.3" for "--version" flag: must be v1.'),
        (["--secure-port=-1"], "--secure-port must be from 1 to 65535, or 0 to serve nothing"),
        (["--log-flush-frequency=-1s"], "--log-flush-frequency must be greater than 0"),
        (["--requestheader-group-headers=a,,b"], "--requestheader-group-headers has an empty"),
        (["--requestheader-uid-headers=x"], "--requestheader-uid-headers must have X-Remote-Uid"),
        (["--logging-format=json", "--vmodule=a=1"], "--vmodule needs --logging-format=text"),
        (["--tls-min-version=VersionTLS14"], "--tls-min-version must be one of VersionTLS10, "),
        (
            ["--tls-cipher-suites=TLS_AES_128_GCM_SHA256,TLS_X"],
            '--tls-cipher-suites: "TLS_X" is not a cipher suite',
        ),
        (
            ["--kube-api-qps=1", "--kube-api-burst=0"],
            "--kube-api-burst must be greater than 0 if --kube-api-qps is",
        ),
        (["--disabled-metrics=a,b c"], '--disabled-metrics: "b c" is not the name of a metric'),
        (["--allow-metric-labels=a=b"], '--allow-metric-labels: "a" must have the form'),
        (["--master=http://a b"], '--master must be a URL or host:port, not "http://a b"'),
        (
            ["--logging-format=json", "--feature-gates=LoggingBetaOptions=false"],
            "--logging-format=json needs the feature gate LoggingBetaOptions",
        ),
        (
            ["--secure-port=70000", "--requestheader-allowed-names=,", "--disabled-metrics=a b"],
            (
                "--secure-port must be from 1 to 65535, or 0 to serve nothing; "
                "--requestheader-allowed-names has an empty value; --disabled-metrics: "
            ),
        ),
        (["--", "a"], '"asched run" does not take any arguments, got ["a"]'),
        (["--port=0"], "--port is refused: serving without TLS was removed"),
        (["--log-dir=/x"], "--log-dir is refused: removed in Kubernetes 1.26"),
        (["--tls-curve-preferences=23"], "--tls-curve-preferences is refused: Python's TLS"),
        (
            ["--plugin=x"],
            '--plugin "x" must have the form module:Class, file.py:Class or file.py',
        ),
        (["--bind-concurrency=0"], "--bind-concurrency must be at least 1"),
        (["--audit-period=1s"], "--audit-period must be at least 10s, or 0 to audit on demand"),
        (["--audit-period=-1m"], "--audit-period must be at least 10s, or 0 to audit on demand"),
        (["--scheduler-name=a", "--config=b"], "--scheduler-name and --config exclude each other"),
        (["--feature-gates=x"], "missing bool value for x"),
        (["--leader-elect-resource-lock=x"], "--leader-elect-resource-lock must be leases"),
    ],
)
def test_wrong_use_is_one_line(args: list[str], text: str) -> None:
    result = outcome(args)
    assert result.startswith(text)
    assert "\n" not in result


@pytest.mark.parametrize(
    "args",
    [
        ["--requestheader-uid-headers=x,X-REMOTE-UID"],
        ["--logging-format=json"],
        ["--vmodule=a=1"],
        ["--tls-min-version=VersionTLS13"],
        ["--tls-cipher-suites=TLS_AES_128_GCM_SHA256"],
        ["--secure-port=65535"],
    ],
)
def test_right_use_is_not_refused(args: list[str]) -> None:
    assert outcome(args) == "accepted"


def test_flags_without_effect_say_so() -> None:
    assert parse(["--contention-profiling=false"]).warnings == (
        "--contention-profiling has no effect: asched has no lock contention to profile",
    )
    assert parse(["--config=x", "--kube-api-qps=1"]).warnings == (
        "--kube-api-qps is ignored because --config is given: clientConnection.qps of x is used",
    )
    assert parse(["--feature-gates=Nope=true"]).warnings == ("unrecognized feature gate: Nope",)


#: What a flag does is seen in `parse` and `check` themselves.
SELF_EXPLAINING = {"help", "version", "log_flush_frequency", "leader_elect_resource_lock"}


def test_every_flag_is_read_or_refused_or_says_that_it_has_no_effect() -> None:
    """A name counts as read where it is an attribute or a text outside of the flags' own files and
    of the records that carry their values.
    """
    found: set[str] = set()
    for path in Path(asched.__file__).parent.rglob("*.py"):
        if path.name in ("flag_table.py", "flag_checks.py"):
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
                found.add(node.attr)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                found.add(node.value)
    unread = {flag.key for flag in ALL if not flag.idle and not flag.refused} - found
    assert unread <= SELF_EXPLAINING


def test_help_and_version_win_over_everything() -> None:
    assert outcome(["--help", "extra"]) == "help"
    assert outcome(["-h"]) == "help"
    with pytest.raises(VersionRequested) as caught:
        parse(["--version=raw"])
    assert caught.value.raw
    assert outcome(["--version=false"]) == "accepted"


def test_the_checks_look_at_values_together() -> None:
    values: dict[str, Any] = {flag.key: flag.default for flag in ALL} | {
        "secure_port": 1,
        "log_flush_frequency": 5.0,
        "kube_api_qps": 50.0,
        "kube_api_burst": 100,
        "allow_metric_labels": {},
        "disabled_metrics": (),
        "requestheader_uid_headers": (),
        "logging_format": "text",
        "bind_concurrency": 1,
        "audit_period": 0.0,
        "plugin": (),
        "tls_cipher_suites": (),
        "log_text_split_stream": True,
        "log_json_split_stream": False,
    }
    gates = {"LoggingAlphaOptions": False}
    assert check(values, gates) == (
        "--log-text-split-stream needs the feature gate LoggingAlphaOptions"
    )
    assert check(values, {"LoggingAlphaOptions": True}) == ""
