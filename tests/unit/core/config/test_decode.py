from typing import Any

import pytest

from asched.core.config.decode import decode
from asched.core.config.problem import Problem
from asched.core.config.v1 import API_VERSION, KIND
from tests.unit.core.config.documents import config_of, doc

ARGS = "profiles[0].pluginConfig[0].args"


def problems(document: Any) -> list[Problem]:
    return decode(document)[1]


def texts(document: Any) -> list[str]:
    return [problem.text for problem in problems(document)]


def test_a_good_document_comes_back_with_durations_in_nanoseconds() -> None:
    checked, found = decode(
        doc(leaderElection={"retryPeriod": "1.5s"}, parallelism=None, extenders=[{}])
    )
    assert not found
    assert checked is not None
    assert checked["leaderElection"] == {"retryPeriod": 1_500_000_000}
    assert "parallelism" not in checked


@pytest.mark.parametrize(
    ("document", "text"),
    [
        ({}, "apiVersion is missing"),
        (None, "apiVersion is missing"),
        ({"kind": "Pod"}, "apiVersion is missing"),
        ({"apiVersion": API_VERSION}, "kind is missing"),
        ([], "must be an object, not a list"),
        ({"kind": 3}, "kind: must be a string, not 3"),
        ({"kind": KIND, "apiVersion": "a/b/c"}, f"{KIND} of a/b/c is not a configuration"),
        ({"kind": KIND, "apiVersion": f"{API_VERSION}beta3"}, f"{KIND} of {API_VERSION}beta3 is"),
        ({"kind": "NodeAffinityArgs", "apiVersion": API_VERSION}, "NodeAffinityArgs of "),
    ],
)
def test_what_is_no_configuration_is_refused(document: Any, text: str) -> None:
    (problem,) = texts(document)
    assert problem.startswith(text)


def test_unknown_fields_are_reported_together_with_those_of_args() -> None:
    document = config_of("VolumeBinding", {"bar": 1}) | {"foo": 1, "Parallelism": 3}
    assert [(problem.text, problem.hint) for problem in problems(document)] == [
        ('unknown field "foo"', ""),
        ('unknown field "Parallelism"', 'did you mean "parallelism"?'),
        (f'unknown field "{ARGS}.bar"', ""),
    ]


def test_a_misspelt_api_version_is_refused() -> None:
    assert texts({"apiversion": API_VERSION, "kind": KIND}) == ["apiVersion is missing"]


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        (
            {"parallelism": 2**31},
            "parallelism: must be a whole number from -2147483648 to 2147483647, not 2147483648",
        ),
        ({"enableProfiling": 1}, "enableProfiling: must be true or false, not 1"),
        (
            {"profiles": [{"plugins": {"score": {"enabled": ["x"]}}}]},
            'profiles[0].plugins.score.enabled[0]: must be an object, not "x"',
        ),
        ({"profiles": True}, "profiles: must be a list, not true"),
        (
            {"leaderElection": {"leaseDuration": None}},
            "leaderElection.leaseDuration: must be a duration, not null",
        ),
        (
            {"leaderElection": {"leaseDuration": "1d"}},
            'leaderElection.leaseDuration: must be a duration, not "1d"',
        ),
        (
            {"extenders": [{"tlsConfig": {"caData": "YWJ"}}]},
            'extenders[0].tlsConfig.caData: must be base64, not "YWJ"',
        ),
    ],
)
def test_a_wrong_type_is_named(fields: dict[str, Any], text: str) -> None:
    assert texts(doc(**fields)) == [text]


@pytest.mark.parametrize("end", [2**31, 2**63, 2**64, 10**30])
def test_numbers_have_the_range_of_their_field(end: int) -> None:
    assert texts(doc(parallelism=end))
    assert texts(doc(parallelism=-end - 1))
    assert bool(texts(doc(podMaxBackoffSeconds=end))) is (end >= 2**63)
    assert not texts(doc(clientConnection={"qps": end}))
    assert texts(doc(clientConnection={"qps": 3.5e38}))


def test_every_wrong_type_is_found() -> None:
    checked, found = decode(doc(parallelism="x", podMaxBackoffSeconds=True, foo=1))
    assert checked is None
    assert [problem.path for problem in found] == [
        ("parallelism",),
        ("podMaxBackoffSeconds",),
        ("foo",),
    ]


def test_args_of_another_plugin_are_refused() -> None:
    args = {"apiVersion": API_VERSION, "kind": "NodeAffinityArgs"}
    (problem,) = problems(config_of("InterPodAffinity", args))
    assert (
        problem.text
        == f'{ARGS}: "NodeAffinityArgs" is not the kind of the args of InterPodAffinity'
    )
    assert problem.hint == "write InterPodAffinityArgs, or nothing"


def test_args_of_plugins_outside_of_the_tree_pass_unchanged() -> None:
    checked, found = decode(config_of("Mine", {"x": [1]}))
    assert not found
    assert checked is not None
    assert checked["profiles"][0]["pluginConfig"][0]["args"] == {"x": [1]}


def test_args_of_another_version_are_refused() -> None:
    for version in ("example.com/", "example.com/v1", "kubescheduler.config.k8s.io/v1beta3"):
        (text,) = texts(config_of("InterPodAffinity", {"apiVersion": version}))
        assert text == f'{ARGS}: version "{version}" is not supported'


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
    (problem,) = problems({"apiVersion": version, "kind": kind})
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
    assert [problem.hint for problem in problems(document)] == [
        "put it in quotes",
        "write it without quotes",
        "",
        "write it without quotes",
        "",
    ]
