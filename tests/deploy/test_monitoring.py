"""Rules and dashboard: tested by promtool, and they ask for metrics that exist."""

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from asched.serve.telemetry.metrics import Metrics
from asched_lab.measure.normal_day import Day, firing
from tests.deploy.manifests import DEPLOY, documents, one, overlay, program
from tests.support import ROOT

FOLDER = DEPLOY / "components" / "monitoring"
RULES = documents(FOLDER / "rules.yaml")[0]["spec"]
DASHBOARD = json.loads((FOLDER / "dashboard.json").read_text(encoding="utf-8"))
#: What Prometheus adds by itself.
FROM_PROMETHEUS = {"up"}
METRIC = re.compile(
    r"\b((?:scheduler|asched|rest_client|leader_election|process|workqueue)_\w+|up)(?=\{)"
)


def rule_expressions() -> Iterator[str]:
    for group in RULES["groups"]:
        yield from (rule["expr"] for rule in group["rules"])


def panel_expressions() -> Iterator[str]:
    for panel in DASHBOARD["panels"]:
        yield from (target["expr"] for target in panel.get("targets", ()))


def known_metrics() -> set[str]:
    """Names with the endings a page gives them, whether they have been counted yet or not."""
    metrics = Metrics()
    metrics.tell_build(lambda: "0", {})
    names = set(FROM_PROMETHEUS)
    for name, family in metrics.families._families.items():
        is_histogram = family.kind == "histogram"
        names |= {name + end for end in ("_bucket", "_sum", "_count")} if is_histogram else {name}
    # Looked up when a page is made, hence registered by the running process only.
    pulled = (ROOT / "asched/serve/figures.py").read_text(encoding="utf-8")
    names |= set(re.findall(r'"((?:scheduler|asched)_\w+)"', pulled))
    page = metrics.render().decode()
    return names | set(re.findall(r"^# TYPE (process_\w+)", page, re.MULTILINE))


@pytest.mark.parametrize("text", [*rule_expressions(), *panel_expressions()])
def test_every_metric_asked_for_is_one_of_ours(text: str) -> None:
    asked = set(METRIC.findall(text))
    assert asked
    assert asked <= known_metrics()


def test_every_alert_says_how_bad_it_is_and_has_a_test() -> None:
    tested = {
        case["alertname"]
        for group in documents(FOLDER / "rules-test.yaml")[0]["tests"]
        for case in group["alert_rule_test"]
        if case["exp_alerts"]
    }
    for group in RULES["groups"]:
        for rule in group["rules"]:
            assert rule["labels"]["severity"] in ("warning", "critical")
            assert rule["annotations"]["summary"]
    assert tested == {rule["alert"] for group in RULES["groups"] for rule in group["rules"]}


def test_promtool_agrees(tmp_path: Path) -> None:
    promtool = program("promtool", "Debian's package prometheus has it")
    (tmp_path / "groups.yaml").write_text(yaml.safe_dump(RULES), encoding="utf-8")
    tests = tmp_path / "rules-test.yaml"
    tests.write_text((FOLDER / "rules-test.yaml").read_text(encoding="utf-8"), encoding="utf-8")
    for words in (("check", "rules", "groups.yaml"), ("test", "rules", tests.name)):
        made = subprocess.run(
            [promtool, *words], cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert made.returncode == 0, made.stdout + made.stderr


def test_panels_do_not_overlap_and_have_numbers_of_their_own() -> None:
    panels = DASHBOARD["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    taken: set[tuple[int, int]] = set()
    for panel in panels:
        place = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not taken & cells, panel["title"]
        assert max(x for x, _ in cells) < 24
        taken |= cells


def test_the_monitor_scrapes_the_service_with_a_token() -> None:
    manifests = overlay("monitoring")
    monitor, service = (one(manifests, kind) for kind in ("ServiceMonitor", "Service"))
    assert (
        monitor["spec"]["selector"]["matchLabels"].items() <= service["metadata"]["labels"].items()
    )
    assert service["metadata"]["labels"][monitor["spec"]["jobLabel"]] == "asched"
    ports = {port["name"] for port in service["spec"]["ports"]}
    for endpoint in monitor["spec"]["endpoints"]:
        assert endpoint["port"] in ports
        assert endpoint["scheme"] == "https"
        assert endpoint["bearerTokenFile"]
    assert {e["path"] for e in monitor["spec"]["endpoints"]} == {"/metrics", "/metrics/slis"}


def test_grafana_finds_the_dashboard_in_its_map() -> None:
    found = one(overlay("monitoring"), "ConfigMap", "asched-dashboard")
    assert found["metadata"]["labels"]["grafana_dashboard"] == "1"
    assert json.loads(found["data"]["asched.json"]) == DASHBOARD


def test_half_an_hour_without_an_incident_alerts_nobody() -> None:
    """As `python -m asched_lab.measure.normal_day`; a sharper rule does fire."""
    promtool = program("promtool", "Debian's package prometheus has it")
    day = Day(FOLDER / "rules.yaml")
    day.run(30)
    assert day.world.ledger.bound_count > 200
    assert firing(day, promtool) == []
    values = day.series['up{job="asched",instance="scheduler-1"}']
    values[-6:] = ["0"] * 6
    day.rules["groups"][0]["rules"] = [
        {"alert": "Sharp", "expr": 'up{job="asched"} == 0', "for": "2m"}
    ]
    assert firing(day, promtool) == ["Sharp fires for 4 minutes"]
