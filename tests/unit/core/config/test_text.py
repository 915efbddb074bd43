from typing import Any

import yaml

from asched.core.config.construct import construct
from asched.core.config.defaults import configuration
from asched.core.config.text import effective, without_keys
from asched.core.plugins import IN_TREE_POINTS
from asched.kube.yaml_text import to_yaml
from tests.support import recorded_text


def shown(**fields: Any) -> dict[str, Any]:
    built, problems = construct(configuration(fields), IN_TREE_POINTS)
    assert not problems
    assert built is not None
    return effective(built.configuration)


def test_defaults_are_written_as_kube_scheduler_writes_them() -> None:
    recorded = recorded_text("outside/flags/written_config.yaml")
    kubeconfig = yaml.safe_load(recorded)["clientConnection"]["kubeconfig"]
    ours = recorded.replace("qps: 50", "qps: -1").replace(
        "minCandidateNodesPercentage: 10", "minCandidateNodesPercentage: 100"
    )
    assert to_yaml(shown(clientConnection={"kubeconfig": kubeconfig})) == ours


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


def test_private_keys_of_extenders_are_not_shown() -> None:
    """On pages and in logs; what is written to a file to start from has them."""
    tls = {"caData": "YWJj", "certData": "Y2VydA==", "keyData": "c2VjcmV0"}
    made = configuration({"extenders": [{"urlPrefix": "https://e/", "tlsConfig": tls}]})
    (extender,) = without_keys(made)["extenders"]
    assert extender["tlsConfig"] == {**tls, "keyData": "--- REDACTED ---"}
    assert "c2VjcmV0" not in to_yaml(without_keys(made))
    (whole,) = effective(made)["extenders"]
    assert whole["tlsConfig"] == tls
