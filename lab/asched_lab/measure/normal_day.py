"""A day without an incident: which alerts would an operator get?

    python -m asched_lab.measure.normal_day [--hours N] [--rules FILE]

Two replicas of production's process in a simulated cluster, scraped each minute of virtual time;
promtool evaluates the alerts over all samples. Every hour has: pods that come and go; a rollout of
40 pods; a node that is cordoned, emptied and replaced by another; pods of a second scheduler on the
same nodes; a broken watch. Every third hour: a batch that needs more than the cluster has, for half
an hour; a pod that fits no node, for half an hour. Every sixth hour: a minute without API server; a
replica that is replaced.

Durations are virtual, so alerts on time per attempt, on the event loop and on the latency of the
API server see nothing here.

Exit status: 0 if no alert fires, 1 otherwise; 2 without promtool.
"""

# ruff: noqa: T201 - a command prints

import argparse
import logging
import random
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import yaml

from asched.core.cycle.observer import Observer
from asched.serve.figures import Figures
from asched_lab.sim.process import Process
from asched_lab.sim.steps import bind_theirs, cordon, end_pods, pod_manifest, remove, runs
from asched_lab.sim.world import World

ROOT: Final = Path(__file__).resolve().parents[3]
RULES: Final = ROOT / "deploy/components/monitoring/rules.yaml"
NODES: Final = 12
SCRAPE_S: Final = 60.0
#: Pods that run at any time; the cluster has room for 240.
PODS: Final = 150
ROLLOUT: Final = 40
BATCH: Final = 200
SAMPLE: Final = re.compile(r"^(\w+)(?:\{(.*)\})? (\S+)$", re.MULTILINE)
#: Alerts with the minutes in which they fire.
FIRING: Final = 'sum by (alertname) (count_over_time(ALERTS{alertstate="firing"}[2d]))'
THEIRS: Final = "another-scheduler"


class MeasuredProcess(Process):
    """A process that reports to its metrics, as in production."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        Figures(self.scheduler, self.metrics).show()

    def observer(self) -> Observer:
        return self.metrics.scheduler


class MeasuredWorld(World):
    process_class = MeasuredProcess


class Day:
    """`run(minutes)`, then `series` has each series with its values by minute."""

    def __init__(self, rules: Path, seed: int = 0) -> None:
        document = yaml.safe_load(rules.read_text(encoding="utf-8"))
        self.rules: dict[str, Any] = document["spec"]
        self._asked = set(re.findall(r"\b(\w+)\{", yaml.safe_dump(self.rules)))
        self.world = MeasuredWorld(seed, replicas=2, audit_period_s=900.0)
        self._rng = random.Random(seed)
        self._made = 0
        self.minutes = 0
        self.series: dict[str, list[str]] = {}
        self.nodes = [self._node() for _ in range(NODES)]

    def run(self, minutes: int) -> None:
        with self.world:
            self._pods(PODS)
            for minute in range(minutes):
                self._minute(*divmod(minute, 60))
                self.world.run_for(SCRAPE_S)
                self._scrape()

    def _minute(self, hour: int, minute: int) -> None:
        world, rng = self.world, self._rng
        running = [pod for pod in world.pods() if runs(pod)]
        if running:
            end_pods(world, rng.sample(running, min(4, len(running))))
        self._pods(PODS - len(world.pods()))
        match minute:
            case 5:
                end_pods(world, rng.sample(running, min(ROLLOUT, len(running))))
                self._pods(ROLLOUT)
            case 10:
                cordon(world, self.nodes[0], unschedulable=True)
                end_pods(world, [p for p in running if p["spec"].get("nodeName") == self.nodes[0]])
            case 15:
                remove(world, "nodes", self.nodes.pop(0))
                self.nodes.append(self._node())
            case 20:
                for name in self._pods(5, THEIRS):
                    pod = world.server.get("pods", "default", name)
                    assert pod is not None
                    bind_theirs(world, pod, rng.choice(self.nodes))
            case 25:
                rng.choice([*world.acting.wire.streams.values()]).break_()
            case 30 if hour % 3 == 1:
                self._pods(BATCH)
                self._pods(1, cpu="100")
            case 59 if hour % 3 == 1:
                end_pods(world, [pod for pod in world.pods() if not runs(pod)])
            case 40 if hour % 6 == 2:
                for process in world.processes:
                    process.cut_off(60.0)
            case 50 if hour % 6 == 2:
                world.restart()

    def _pods(self, count: int, scheduler: str = "", cpu: str = "200m") -> list[str]:
        names = []
        for _ in range(count):
            self._made += 1
            pod = pod_manifest(f"pod-{self._made}", cpu)
            if scheduler:
                pod["spec"]["schedulerName"] = scheduler
            self.world.server.create("pods", pod)
            names.append(pod["metadata"]["name"])
        return names

    def _node(self) -> str:
        self._made += 1
        name = f"node-{self._made}"
        amounts = {"cpu": "4", "memory": "32Gi", "pods": "110"}
        status = {"capacity": amounts, "allocatable": amounts}
        labels = {"kubernetes.io/hostname": name}
        self.world.server.create(
            "nodes", {"metadata": {"name": name, "labels": labels}, "status": status}
        )
        return name

    def _scrape(self) -> None:
        for process in self.world.processes:
            instance = f'job="asched",instance="{process.name}"'
            self._sample(f"up{{{instance}}}", "1")
            for name, labels, value in SAMPLE.findall(process.metrics.render().decode()):
                if name in self._asked:
                    self._sample(f"{name}{{{instance}{',' * bool(labels)}{labels}}}", value)
        self.minutes += 1

    def _sample(self, series: str, value: str) -> None:
        values = self.series.setdefault(series, [])
        values += ["_"] * (self.minutes - len(values))
        values.append(value)


def firing(day: Day, promtool: str) -> list[str]:
    """The alerts that fire, each with its minutes: where promtool finds others than none."""
    series = [
        {"series": name, "values": " ".join(stale(values, day.minutes))}
        for name, values in day.series.items()
    ]
    none = {"expr": FIRING, "eval_time": f"{day.minutes - 1}m", "exp_samples": []}
    test = {"interval": "1m", "input_series": series, "promql_expr_test": [none]}
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        (folder / "groups.yaml").write_text(yaml.safe_dump(day.rules), encoding="utf-8")
        document = {"rule_files": ["groups.yaml"], "evaluation_interval": "1m", "tests": [test]}
        (folder / "day.yaml").write_text(yaml.safe_dump(document, width=9999), encoding="utf-8")
        command = [promtool, "test", "rules", "day.yaml"]
        ran = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if ran.returncode == 0:
        return []
    text = ran.stdout + ran.stderr
    found = re.findall(r'alertname="(\w+)"\} ([\d.E+]+)', text)
    return [f"{name} fires for {float(minutes):.0f} minutes" for name, minutes in found] or [text]


def stale(values: list[str], minutes: int) -> Iterator[str]:
    """Values, and that a series has ended if its process has."""
    yield from values
    if len(values) < minutes:
        yield "stale"


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m asched_lab.measure.normal_day")
    parser.add_argument("--hours", type=int, default=24)
    parser.add_argument("--rules", type=Path, default=RULES)
    args = parser.parse_args(argv)
    promtool = shutil.which("promtool")
    if promtool is None:
        print("promtool is not installed; Debian's package prometheus has it", file=sys.stderr)
        return 2
    logging.disable()
    day = Day(args.rules)
    day.run(args.hours * 60)
    bound, leaders = day.world.ledger.bound_count, day.world.leaders
    print(f"{day.minutes} minutes, {bound} pods bound, {leaders} changes of the leader")
    fired = firing(day, promtool)
    print("\n".join(fired) or f"none of {len(day.rules['groups'][0]['rules'])} alerts fires")
    return 1 if fired else 0


if __name__ == "__main__":
    sys.exit(main())
