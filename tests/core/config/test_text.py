from typing import Any

import yaml

from asched.core.config.construct import construct
from asched.core.config.defaults import configuration, default_configuration
from asched.core.config.text import effective, to_yaml, without_keys
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
