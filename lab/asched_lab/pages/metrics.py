"""The page of metrics and alerts, from the families of a process and from the alert rules."""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple
from unittest.mock import MagicMock

import yaml
from prometheus_client.gc_collector import GCCollector
from prometheus_client.process_collector import ProcessCollector
from prometheus_client.registry import CollectorRegistry

from asched.core.config.gates import default_gates
from asched.core.config.versions import MINORS
from asched.ops.shadowing import Shadowing
from asched.serve import resources
from asched.serve.figures import Figures
from asched.serve.telemetry.measured import MeasuredDispatcher
from asched.serve.telemetry.metrics import Metrics
from asched_lab.pages.markdown import code, page, table

RULES: Final = "deploy/components/monitoring/rules.yaml"

#: What the values of labels mean, for metrics of asched's own.
VALUES: Final[Mapping[str, str]] = {
    "asched_audit_differences_total": (
        "`resource`: a kind, `queue` or `columns`. `what`: `missed addition`, `missed change`,"
        " `missed deletion`, `wrong place in the queue`, `wrong count`"
    ),
    "asched_config_reloads_total": "`result`: `applied`, `refused`, `unchanged`",
    "asched_contested_nodes": (
        "A node counts from the moment at which a pod of another scheduler appears there within"
        " 5 s of a placement by asched, or a kubelet refuses a pod. asched leaves room for one"
        " more such pod there (two, then four after refusals; a quarter of the node at most), and"
        " half as many every 30 s without a clash"
    ),
    "asched_extender_requests_total": (
        "`result`: `success` (any answer), `refused` (the extender did not act), `lost` (the"
        " extender may have acted)"
    ),
    "asched_node_clashes_total": (
        "`kind`: `overlap` (another scheduler placed a pod beside one of asched's), `refused`"
        " (a kubelet refused a pod)"
    ),
    "asched_pods_refused_by_kubelet_total": (
        "`reason`: as the kubelet writes it, such as `OutOfcpu`. `whose`: `ours` or `others`. Pods"
        " of the same owner avoid that node for 10 s, twice as long after each further refusal,"
        " 5 minutes at most"
    ),
    "asched_promised_start_changes_total": (
        "`change`: `made`, `earlier`, `later`, `kept` (the pods started in time), `late` (they"
        " started later), `dropped` (the promise was withdrawn), `displaced` (pods of higher"
        " precedence took the place)"
    ),
    "asched_promised_starts": (
        "`certainty`: `hard` (every end it rests on is an enforced deadline), `soft` (a duration"
        " is only expected)"
    ),
    "asched_provisioning_requests": (
        "`state`: `held` (places are reserved), `waiting` (no places yet)"
    ),
    "asched_queue_looks_total": (
        "`result`: `tried` (the dry run found a node, an attempt follows), `left` (the pod goes on"
        " waiting)"
    ),
    "asched_shadow_decisions_total": (
        "`verdict`: `placed`, `unschedulable`. `outcome`: `same`, `tie` and `lag` agree; every"
        " other value is a reason for a difference"
    ),
    "asched_start_delays_total": (
        "`cause`: `node` (removed or cordoned), `overrun` (a pod did not end in time), `order`"
        " (other pods go first), `arrival` (a more important pod, or one of another scheduler,"
        " took the place), `hold` (a reservation), `rules` (the places no longer suit the pods)"
    ),
    "asched_watch_staleness_seconds": "At most 20 s while the watch works, also for idle kinds",
}


class Row(NamedTuple):
    """A metric; `text` is its help, `stage` upstream's stability level."""

    name: str
    kind: str
    labels: tuple[str, ...]
    stage: str
    text: str


def metrics_page(root: Path) -> str:
    """The page as Markdown."""
    rows = sorted(_rows())
    own = [row for row in rows if row.name.startswith("asched_")]
    scheduler = [row for row in rows if row.name.startswith("scheduler_")]
    rest = [row for row in rows if row not in own and row not in scheduler]
    return page(
        "Metrics and alerts",
        [
            (
                "`/metrics` on port 10259 serves Prometheus' text format. `scheduler_*` and the"
                " general metrics have kube-scheduler's names, labels and buckets; `asched_*`"
                " exist in asched alone. [Operate](operate.md#monitoring) says how to scrape them."
            ),
            (
                "Start with four alerts: `AschedDown`, `AschedNoLeader`, `AschedStuck` and"
                " `AschedBacklog`."
            ),
            "## Alerts",
            (
                f"The rules are in [rules.yaml](../{RULES});"
                " `deploy/components/monitoring` installs them. Thresholds are starting points."
            ),
            table(("Alert", "Meaning", "Severity", "For"), _alerts(root)),
            "## asched_*",
            _families(own),
            "## Values of labels",
            table(("Metric", "Meaning"), ((code(name), text) for name, text in VALUES.items())),
            "## scheduler_*",
            _families(scheduler),
            "## General metrics",
            _families(rest),
            "## Other pages",
            table(("Page", "Metric", "Type", "Labels", "Help"), _other_pages()),
        ],
    )


def _other_pages() -> Iterator[tuple[str, str, str, str, str]]:
    for name, text in (resources.REQUEST, resources.LIMIT):
        yield "`/metrics/resources`", code(name), "gauge", _POD_LABELS, _split(text)[1]
    for name, kind, labels, text in _HEALTH:
        yield "`/metrics/slis`", code(name), kind, _labels(labels), text


_POD_LABELS: Final = "`namespace`, `pod`, `node`, `scheduler`, `priority`, `resource`, `unit`"
#: The families of `asched.serve.routes._Slis`, which makes them as the page is served.
_HEALTH: Final = (
    (
        "kubernetes_healthcheck",
        "gauge",
        ("name", "type"),
        "1 if a health check passed when last asked.",
    ),
    (
        "kubernetes_healthchecks_total",
        "counter",
        ("name", "status", "type"),
        "Results of health checks.",
    ),
    (
        "process_start_time_seconds",
        "gauge",
        (),
        "When the process began, in seconds since 1970.",
    ),
)


def alert_rules(root: Path) -> list[dict[str, Any]]:
    """The alerts of the PrometheusRule."""
    document = yaml.safe_load((root / RULES).read_text(encoding="utf-8"))
    return [rule for group in document["spec"]["groups"] for rule in group["rules"]]


def _alerts(root: Path) -> Iterator[tuple[str, str, str, str]]:
    for rule in alert_rules(root):
        notes = rule["annotations"]
        anchor = notes["runbook_url"].partition("#")[2]
        meaning = " ".join(str(notes[key]).strip() for key in ("summary", "description"))
        name = f"[`{rule['alert']}`](troubleshoot.md#{anchor})"
        yield name, _plain(meaning), rule["labels"]["severity"], rule.get("for", "")


def _plain(text: str) -> str:
    """The text of an alert without its template: `{{ $labels.name }}` becomes NAME."""
    for start in ("{{ $labels.", "{{ $"):
        while start in text:
            before, _, after = text.partition(start)
            inside, _, after = after.partition("}}")
            text = before + inside.split("|")[0].strip().upper() + after
    return text


def _rows() -> Iterator[Row]:
    """Every metric; help says of those that not all minor versions have which ones do."""
    by_minor = {minor: {row.name: row for row in _rows_of(minor)} for minor in MINORS}
    for name in dict.fromkeys(name for rows in by_minor.values() for name in rows):
        having = [minor for minor in MINORS if name in by_minor[minor]]
        first, last = having[0], having[-1]
        note = f" Until Kubernetes {last}." if last != MINORS[-1] else ""
        note = f" Since Kubernetes {first}." if first != MINORS[0] else note
        found = by_minor[first][name]
        yield found._replace(text=found.text + note)


def _rows_of(minor: str) -> Iterator[Row]:
    metrics = Metrics()
    metrics.follow({**default_gates(minor), "TopologyAwareWorkloadScheduling": True})
    metrics.tell_build(lambda: "", {})
    metrics.show_version("", str)
    metrics.show_async_calls()
    metrics.scheduler.know_groups()
    # Families read from a running scheduler are registered without reading anything.
    running = MagicMock(dispatcher=MagicMock(spec=MeasuredDispatcher))
    Figures(running, metrics).show()
    Shadowing.show(MagicMock(spec=Shadowing), metrics.families.pulled)
    for family in metrics.families:
        yield Row(family.name, family.kind, family.label_names, *_split(family.text))
    registry = CollectorRegistry()
    ProcessCollector(registry=registry)
    GCCollector(registry=registry)
    for metric in registry.collect():
        ending = "_total" if metric.type == "counter" else ""
        labels = tuple(sorted({key for sample in metric.samples for key in sample.labels}))
        yield Row(metric.name + ending, metric.type, labels, "", metric.documentation)


def _split(text: str) -> tuple[str, str]:
    """The stability level and the rest of a help text."""
    stage, _, rest = text.partition("] ")
    return stage.removeprefix("["), rest


def _families(rows: Iterable[Row]) -> str:
    return table(
        ("Metric", "Help", "Type", "Labels", "Stage"),
        ((code(r.name), r.text, r.kind, _labels(r.labels), r.stage) for r in rows),
    )


def _labels(names: Iterable[str]) -> str:
    return ", ".join(map(code, names))
