from typing import Any

import pytest

from asched.core.config.decode import decode
from asched.core.config.problem import as_upstream
from asched.core.config.v1 import API_VERSION, KIND
from tests.unit.core.config.documents import config_of, doc


def texts(document: Any, source: str = "") -> tuple[str, ...]:
    return as_upstream(decode(document, source)[1])


def test_a_good_document_comes_back_with_durations_in_nanoseconds() -> None:
    checked, problems = decode(
        doc(leaderElection={"retryPeriod": "1.5s"}, parallelism=None, extenders=[{}]), ""
    )
    assert not problems
    assert checked["leaderElection"] == {"retryPeriod": 1_500_000_000}
    assert "parallelism" not in checked


@pytest.mark.parametrize(
    ("document", "source", "text"),
    [
        ({}, "{}\n", "Object 'Kind' is missing in '{}\n'"),
        (None, "", "Object 'Kind' is missing in ''"),
        ({"kind": "Pod"}, "k", "Object 'apiVersion' is missing in 'k'"),
        (
            {"kind": KIND, "apiVersion": f"{API_VERSION}beta3"},
            "",
            (
                f'no kind "{KIND}" is registered for version "{API_VERSION}beta3" in scheme '
                '"pkg/scheduler/apis/config/scheme/scheme.go:31"'
            ),
        ),
        ({"kind": KIND, "apiVersion": "a/b/c"}, "", "unexpected GroupVersion string: a/b/c"),
        (
            {"kind": "NodeAffinityArgs", "apiVersion": API_VERSION},
            "",
            f"couldn't decode as {KIND}, got {API_VERSION}, Kind=NodeAffinityArgs: ",
        ),
    ],
)
def test_what_is_no_configuration_is_refused(document: Any, source: str, text: str) -> None:
    assert texts(document, source) == (text,)


def test_unknown_fields_are_reported_together_with_those_of_args() -> None:
    document = config_of("VolumeBinding", {"bar": 1}) | {"foo": 1, "Parallelism": 3}
    assert texts(document) == (
        'unknown field "foo"',
        'unknown field "Parallelism"',
        (
            "decoding .profiles[0].pluginConfig[0]: strict decoding error: "
            "decoding args for plugin "
            'VolumeBinding: strict decoding error: unknown field "bar"'
        ),
    )
    hints = [problem.hint for problem in decode(document, "")[1]]
    assert hints == ["", 'did you mean "parallelism"?', ""]


def test_a_misspelt_api_version_is_found_and_refused_all_the_same() -> None:
    document = {"apiversion": API_VERSION, "kind": KIND}
    assert texts(document) == ('unknown field "apiversion"',)


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        (
            {"parallelism": 2**31},
            (
                "json: cannot unmarshal number 2147483648 into Go struct field "
                "KubeSchedulerConfiguration.parallelism of type int32"
            ),
        ),
        (
            {"enableProfiling": 1},
            (
                "json: cannot unmarshal number into Go struct field "
                "KubeSchedulerConfiguration.DebuggingConfiguration.enableProfiling of type bool"
            ),
        ),
        (
            {"profiles": [{"plugins": {"score": {"enabled": ["x"]}}}]},
            (
                "json: cannot unmarshal string into Go struct field "
                "PluginSet.profiles.plugins.score.enabled of type v1.Plugin"
            ),
        ),
        ({"leaderElection": {"leaseDuration": None}}, 'time: invalid duration ""'),
        ({"extenders": [{"tlsConfig": {"caData": "YWJ"}}]}, "illegal base64 data at input byte 0"),
        (
            {"extenders": [{"tlsConfig": {"caData": "YWJj=a=="}}]},
            "illegal base64 data at input byte 4",
        ),
    ],
)
def test_a_wrong_type_has_gos_words(fields: dict[str, Any], text: str) -> None:
    assert texts(doc(**fields)) == (text,)


def test_every_wrong_type_is_found_though_go_shows_one() -> None:
    _, problems = decode(doc(parallelism="x", podMaxBackoffSeconds=True, foo=1), "")
    assert [problem.path for problem in problems] == [
        ("parallelism",),
        ("podMaxBackoffSeconds",),
        ("foo",),
    ]


def test_args_of_another_plugin_are_refused() -> None:
    document = config_of(
        "InterPodAffinity", {"apiVersion": API_VERSION, "kind": "NodeAffinityArgs"}
    )
    assert texts(document) == (
        (
            "decoding .profiles[0].pluginConfig[0]: args for plugin "
            "InterPodAffinity were not of type "
            "InterPodAffinityArgs.kubescheduler.config.k8s.io, got "
            "NodeAffinityArgs.kubescheduler.config.k8s.io"
        ),
    )


def test_args_of_strangers_pass_unchanged() -> None:
    checked, problems = decode(config_of("Mine", {"x": [1]}), "")
    assert not problems
    assert checked["profiles"][0]["pluginConfig"][0]["args"] == {"x": [1]}


def test_args_of_a_group_without_a_version_are_refused() -> None:
    assert texts(config_of("InterPodAffinity", {"apiVersion": "example.com/"})) == (
        (
            "decoding .profiles[0].pluginConfig[0]: decoding args for plugin InterPodAffinity: "
            "Object 'apiVersion' is missing in '{\"apiVersion\":\"example.com/\"}'"
        ),
    )


@pytest.mark.parametrize(
    ("version", "kind", "hint"),
    [
        ("kubescheduler.config.k8s.io/v1beta2", KIND, "an old form"),
        ("kubescheduler.config.k8s.io/v1beta2", "Policy", "an old form"),
        ("v1", "Policy", "an old form"),
        (API_VERSION, "Policy", "an old form"),
        (API_VERSION, KIND.lower(), f'did you mean "{KIND}"?'),
        ("example.com/v1", KIND, ""),
        ("v1", "ConfigMap", ""),
    ],
)
def test_a_document_of_another_kind_is_told_what_to_do(version: str, kind: str, hint: str) -> None:
    (problem,) = decode({"apiVersion": version, "kind": kind}, "")[1]
    assert problem.hint.startswith(hint)
    assert bool(problem.hint) is bool(hint)


def test_words_that_yaml_reads_as_something_else_get_a_hint() -> None:
    rates = {"qps": "0.5", "burst": True}
    document = doc(
        leaderElection={"resourceName": True},
        clientConnection=rates,
        parallelism="8",
        enableProfiling="often",
    )
    assert [problem.hint for problem in decode(document, "")[1]] == [
        "put it in quotes: as it stands it is a bool",
        "write it without quotes",
        "",
        "write it without quotes",
        "",
    ]
