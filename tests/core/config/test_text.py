from typing import Any

import pytest
import yaml

from asched.core.config.construct import construct
from asched.core.config.defaults import configuration, default_configuration
from asched.core.config.text import deciding, effective, to_yaml, without_keys
from asched.core.plugins import IN_TREE_POINTS
from tests.shared import shared_path


def shown(**fields: Any) -> dict[str, Any]:
    built, problems = construct(configuration(fields), IN_TREE_POINTS)
    assert not problems
    assert built is not None
    return effective(built.configuration)


def test_the_defaults_are_written_byte_for_byte_as_kube_scheduler_writes_them() -> None:
    recorded = shared_path("outside/flags/written_config.yaml").read_text(encoding="utf-8")
    kubeconfig = yaml.safe_load(recorded)["clientConnection"]["kubeconfig"]
    assert to_yaml(shown(clientConnection={"kubeconfig": kubeconfig})) == recorded


def test_what_is_written_reads_back_as_the_same() -> None:
    given = {
        "delayCacheUntilActive": True,
        "clientConnection": {"qps": 12.25},
        "profiles": [
            {
                "schedulerName": "yes",
                "percentageOfNodesToScore": 0,
                "pluginConfig": [
                    {"name": "NodeName", "args": {"a: b": ["*", "", None, {}, []], "c": "x\ny\n"}}
                ],
            }
        ],
        "extenders": [{"urlPrefix": "http://e/", "tlsConfig": {"caData": "YWJj"}, "weight": 3}],
    }
    document = shown(**given)
    assert yaml.safe_load(to_yaml(document)) == document
    assert document["clientConnection"]["qps"] == 12.25
    assert document["profiles"][0]["percentageOfNodesToScore"] == 0
    assert document["extenders"] == [
        {
            "urlPrefix": "http://e/",
            "httpTimeout": "5s",
            "tlsConfig": {"caData": "YWJj"},
            "weight": 3,
        }
    ]


def test_rates_are_printed_as_the_float32_they_are() -> None:
    assert shown(clientConnection={"qps": 0.1})["clientConnection"]["qps"] == 0.1
    assert str(shown(clientConnection={"qps": 1e9})["clientConnection"]["qps"]) == "1000000000"


def test_empty_points_are_there_and_empty_lists_are_not() -> None:
    profile = effective(default_configuration())["profiles"][0]
    assert profile["plugins"]["filter"] == {}
    assert set(profile["plugins"]["multiPoint"]) == {"enabled"}
    assert "extenders" not in effective(default_configuration())


def test_added_affinity_prints_null_where_go_does() -> None:
    added = {
        "requiredDuringSchedulingIgnoredDuringExecution": {},
        "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 2}],
    }
    config = [{"name": "NodeAffinity", "args": {"addedAffinity": added}}]
    listed = shown(profiles=[{"pluginConfig": config}])["profiles"][0]["pluginConfig"]
    args = next(entry["args"] for entry in listed if entry["name"] == "NodeAffinity")
    assert args["addedAffinity"] == {
        "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": None},
        "preferredDuringSchedulingIgnoredDuringExecution": [{"preference": {}, "weight": 2}],
    }


def test_numbers_no_integer_holds_are_written_with_an_exponent() -> None:
    assert to_yaml({"qps": 10**20, "x": 3.4e38, "z": 2**63}) == (
        "qps: 1e+20\nx: 3.4e+38\nz: 9223372036854775808\n"
    )


def test_private_keys_of_extenders_are_not_shown() -> None:
    """On pages and in logs; what is written to a file to start from has them."""
    tls = {"caData": "YWJj", "certData": "Y2VydA==", "keyData": "c2VjcmV0"}
    made = configuration({"extenders": [{"urlPrefix": "https://e/", "tlsConfig": tls}]})
    (extender,) = without_keys(made)["extenders"]
    assert extender["tlsConfig"] == {**tls, "keyData": "--- REDACTED ---"}
    assert "c2VjcmV0" not in to_yaml(without_keys(made))
    (whole,) = effective(made)["extenders"]
    assert whole["tlsConfig"] == tls


@pytest.mark.parametrize(
    ("document", "lines"),
    [
        ({"b": 1, "a": True}, ["a: true", "b: 1"]),
        ({"a": {}, "b": [], "c": None, "d": ""}, ["a: {}", "b: []", "c: null", 'd: ""']),
        ({"a": {"b": {"c": 1}}}, ["a:", "  b:", "    c: 1"]),
        ({"a": ["x", 1]}, ["a:", "- x", "- 1"]),
        ({"a": {"b": ["x"]}}, ["a:", "  b:", "  - x"]),
        ({"a": ({"b": 1, "c": [2]},)}, ["a:", "- b: 1", "  c:", "  - 2"]),
        ({"a": [["u", ["v", "w"]], []]}, ["a:", "- - u", "  - - v", "    - w", "- []"]),
        ({"a": [{"b": {"c": "x\ny"}}]}, ["a:", "- b:", "    c: |-", "      x", "      y"]),
        ({"a": ["x\ny\n"]}, ["a:", "- |", "  x", "  y"]),
        ({"a": "x\ny"}, ["a: |-", "  x", "  y"]),
        ({"yes": 1}, ['"yes": 1']),
        ({"a": 2**64 - 1}, ["a: 18446744073709551615"]),
    ],
)
def test_layout(document: dict[str, Any], lines: list[str]) -> None:
    """sigs.k8s.io/yaml: keys in order, lists not indented below their key, two columns a level."""
    text = to_yaml(document)
    assert text == "\n".join(lines) + "\n"
    assert yaml.safe_load(text) == {
        key: list(value) if isinstance(value, tuple) else value for key, value in document.items()
    }


def args_shown(plugin: str, **args: Any) -> Any:
    config = [{"name": plugin, "args": args}]
    listed = shown(profiles=[{"pluginConfig": config}])["profiles"][0]["pluginConfig"]
    return next(entry["args"] for entry in listed if entry["name"] == plugin)


def test_a_strategy_is_shown_with_its_function() -> None:
    shape = [{"utilization": 0, "score": 10}, {"utilization": 100, "score": 0}]
    strategy = {
        "type": "RequestedToCapacityRatio",
        "resources": [{"name": "cpu", "weight": 3}],
        "requestedToCapacityRatio": {"shape": shape},
    }
    found = args_shown("NodeResourcesFit", scoringStrategy=strategy)
    assert found["scoringStrategy"] == strategy
    least = {"type": "LeastAllocated", "resources": [{"name": "cpu", "weight": 1}]}
    found = args_shown("NodeResourcesFit", scoringStrategy=least)
    assert found["scoringStrategy"] == least


def test_added_affinity_is_shown_with_what_it_requires_and_prefers() -> None:
    zone = {"key": "zone", "operator": "In", "values": ["a"]}
    disk = {"key": "disk", "operator": "Exists"}
    name = {"key": "metadata.name", "operator": "NotIn", "values": ["n1"]}
    term = {"matchExpressions": [zone, disk], "matchFields": [name]}
    added = {
        "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term, {}]},
        "preferredDuringSchedulingIgnoredDuringExecution": [
            {"weight": 7, "preference": {"matchExpressions": [disk]}},
            {"preference": {}, "weight": 0},
        ],
    }
    assert args_shown("NodeAffinity", addedAffinity=added)["addedAffinity"] == added


def test_files_and_keys_are_not_in_what_decides() -> None:
    extenders = [{"urlPrefix": "https://e/", "tlsConfig": {"caData": "YWJj"}}, {"urlPrefix": "f"}]
    made = configuration({"clientConnection": {"kubeconfig": "/k"}, "extenders": extenders})
    assert effective(made)["clientConnection"]["kubeconfig"] == "/k"
    found = deciding(made)
    assert found["clientConnection"]["kubeconfig"] == ""
    assert [one["urlPrefix"] for one in found["extenders"]] == ["https://e/", "f"]
    assert not any("tlsConfig" in one for one in found["extenders"])
    assert "tlsConfig" not in without_keys(made)["extenders"][1]


def test_a_cache_that_is_delayed_is_told_and_one_that_is_not_is_left_out() -> None:
    assert shown(delayCacheUntilActive=True)["delayCacheUntilActive"] is True
    assert "delayCacheUntilActive" not in shown(delayCacheUntilActive=False)


def test_rates_have_as_many_digits_as_tell_them_apart() -> None:
    for qps in (0.5, 16777216.0, 1.17549435e-38, 3.4028235e38, 123456.79, 0.30000004):
        found = shown(clientConnection={"qps": qps})["clientConnection"]["qps"]
        assert found == pytest.approx(qps, rel=1e-12)
