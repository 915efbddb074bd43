"""Values of each type: what is taken, what is refused, and in which words of Go's."""

from typing import Any

import pytest

from asched.core.config.decode import BareArgs, decode
from asched.core.config.problem import Severity
from tests.core.config.documents import config_of, doc

LARGE = 2**31


def problems(**fields: Any) -> list[tuple[str, str, Severity | None]]:
    return [(one.text, one.hint, one.severity) for one in decode(doc(**fields), "")[1]]


def wrong(kind: str, field: str, type_: str) -> str:
    return f"json: cannot unmarshal {kind} into Go struct field {field} of type {type_}"


CONFIG = "KubeSchedulerConfiguration"
RATE = "ClientConnectionConfiguration.clientConnection.qps"
LEASE = "LeaderElectionConfiguration.leaderElection.leaseDuration"
CA_DATA = "ExtenderTLSConfig.extenders.tlsConfig.caData"
QUOTES = "put it in quotes: as it stands it is a {}"


@pytest.mark.parametrize(
    ("fields", "text", "hint"),
    [
        ({"parallelism": "8"}, wrong("string", f"{CONFIG}.parallelism", "int32"), "bare"),
        ({"parallelism": "x"}, wrong("string", f"{CONFIG}.parallelism", "int32"), ""),
        ({"parallelism": True}, wrong("bool", f"{CONFIG}.parallelism", "int32"), ""),
        ({"parallelism": 1.5}, wrong("number 1.5", f"{CONFIG}.parallelism", "int32"), ""),
        ({"parallelism": []}, wrong("array", f"{CONFIG}.parallelism", "int32"), ""),
        ({"parallelism": {}}, wrong("object", f"{CONFIG}.parallelism", "int32"), ""),
        (
            {"parallelism": -LARGE - 1},
            wrong("number -2147483649", f"{CONFIG}.parallelism", "int32"),
            "",
        ),
        ({"clientConnection": {"qps": "x"}}, wrong("string", RATE, "float32"), ""),
        ({"clientConnection": {"qps": "5"}}, wrong("string", RATE, "float32"), "bare"),
        ({"clientConnection": {"qps": True}}, wrong("bool", RATE, "float32"), ""),
        ({"clientConnection": {"qps": 1e39}}, wrong("number 1e+39", RATE, "float32"), ""),
        ({"clientConnection": {"qps": -1e39}}, wrong("number -1e+39", RATE, "float32"), ""),
        ({"leaderElection": {"leaseDuration": 5}}, wrong("number", LEASE, "string"), "number"),
        ({"leaderElection": {"leaseDuration": True}}, wrong("bool", LEASE, "string"), "bool"),
        ({"leaderElection": {"leaseDuration": []}}, wrong("array", LEASE, "string"), ""),
        (
            {"extenders": [{"tlsConfig": {"caData": 5}}]},
            wrong("number", CA_DATA, "[]uint8"),
            "",
        ),
        ({"profiles": {}}, wrong("object", f"{CONFIG}.profiles", "[]v1.{0}"), ""),
        ({"clientConnection": []}, wrong("array", f"{CONFIG}.clientConnection", "{1}"), ""),
    ],
)
def test_a_value_of_another_type_is_told(fields: Any, text: str, hint: str) -> None:
    text = text.format("KubeSchedulerProfile", "v1alpha1.ClientConnectionConfiguration")
    expected = {"": "", "bare": "write it without quotes"}.get(hint, QUOTES.format(hint))
    ((told, help_, _),) = problems(**fields)
    assert (told, help_) == (text, expected)


@pytest.mark.parametrize(
    ("fields", "checked"),
    [
        ({"parallelism": LARGE - 1}, {"parallelism": LARGE - 1}),
        ({"parallelism": -LARGE}, {"parallelism": -LARGE}),
        ({"parallelism": None, "podMaxBackoffSeconds": 3}, {"podMaxBackoffSeconds": 3}),
        ({"clientConnection": {"qps": 3.4e38}}, {"clientConnection": {"qps": 3.4e38}}),
        ({"clientConnection": {"qps": 7}}, {"clientConnection": {"qps": 7}}),
        (
            {"leaderElection": {"leaseDuration": "1m", "leaderElect": False}},
            {"leaderElection": {"leaseDuration": 60_000_000_000, "leaderElect": False}},
        ),
        (
            {"extenders": [{"tlsConfig": {"caData": "YWJj\r\nYWJj"}}]},
            {"extenders": [{"tlsConfig": {"caData": "YWJjYWJj"}}]},
        ),
        ({"profiles": [None, {}]}, {"profiles": [None, {}]}),
    ],
)
def test_a_value_of_the_right_type_is_taken(fields: Any, checked: Any) -> None:
    found, faults = decode(doc(**fields), "")
    assert not faults
    assert {key: found[key] for key in found if key not in ("apiVersion", "kind")} == checked


@pytest.mark.parametrize(
    ("data", "place"),
    [("YWJ", 0), ("YWJjYWJ", 4), ("YW!j", 2), ("YWJj=a==", 4), ("!", 0), ("YWJjY", 4)],
)
def test_base64_is_read_as_far_as_go_reads_it(data: str, place: int) -> None:
    ((text, _, severity),) = problems(extenders=[{"tlsConfig": {"caData": data}}])
    assert text == f"illegal base64 data at input byte {place}"
    assert severity is Severity.SAVED


def test_entries_and_profiles_that_are_null_are_passed_over() -> None:
    entry = {"name": "NodeAffinity", "args": {"foo": 1}}
    profiles = [None, {"pluginConfig": [None, {"args": {"x": 1}}, {"name": "Mine"}, entry]}]
    ((text, _, _),) = problems(profiles=profiles)
    assert text.startswith("decoding .profiles[1].pluginConfig[3]: strict decoding error: ")


@pytest.mark.parametrize(
    ("args", "found"),
    [
        (None, {}),
        ({"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "NodeAffinityArgs"}, {}),
        ({"kind": None}, {}),
    ],
)
def test_the_head_of_args_is_no_field_of_them(args: Any, found: Any) -> None:
    checked, faults = decode(config_of("NodeAffinity", args), "")
    assert not faults
    assert checked["profiles"][0]["pluginConfig"][0]["args"] == found
    assert not isinstance(checked["profiles"][0]["pluginConfig"][0]["args"], BareArgs)


@pytest.mark.parametrize(
    ("head", "text", "hint"),
    [
        ({"apiVersion": "a/b/c"}, "unexpected GroupVersion string: a/b/c", ""),
        (
            {"kind": "NodeAfinityArgs"},
            'no kind "NodeAfinityArgs" is registered for version "kubescheduler.config.k8s.io/v1"',
            'did you mean "NodeAffinityArgs"?',
        ),
        (
            {"apiVersion": "x.io/v1", "kind": "NodeAfinityArgs"},
            'no kind "NodeAfinityArgs" is registered for version "x.io/v1"',
            "",
        ),
        (
            {"apiVersion": "x.io/v1"},
            'no kind "NodeAffinityArgs" is registered for version "x.io/v1"',
            "",
        ),
        (
            {"kind": 3},
            (
                "couldn't get version/kind; json parse error: json: cannot unmarshal number into "
                "Go struct field .kind of type string"
            ),
            "",
        ),
        (
            "x",
            (
                "couldn't get version/kind; json parse error: json: cannot unmarshal string into "
                "Go value of type "
            ),
            "",
        ),
    ],
)
def test_a_head_of_args_that_cannot_be_read_is_refused(head: Any, text: str, hint: str) -> None:
    ((told, help_, severity),) = problems(
        profiles=[{"pluginConfig": [{"name": "NodeAffinity", "args": head}]}]
    )
    where = "decoding .profiles[0].pluginConfig[0]: decoding args for plugin NodeAffinity: "
    assert told.startswith(where + text)
    assert (help_, severity) == (hint, Severity.ABORT)
