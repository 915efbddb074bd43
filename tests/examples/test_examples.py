"""The examples do what they say, in the real machine on a cluster in memory."""

import asyncio
import importlib.util
import logging
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from kubernetes_asyncio import config

from asched.plugin import Patch
from asched.testing import given, node, pod
from asched_lab.apiserver.server import ApiServer
from tests.support import HANG_S

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
TEAM = "example.com/team"
COST = "example.com/cents-per-hour"


def load(name: str) -> Any:
    spec = importlib.util.spec_from_file_location(f"example_{name}", EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    import sys

    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def test_the_node_logger_tells_cpu_and_memory_of_every_node(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logging.getLogger("asched"), "propagate", True)
    world = given(
        [node("n1", cpu=4, memory="8Gi"), node("n2", cpu=2, memory="1Gi")],
        [pod("there", cpu=1, memory="512Mi", on="n1")],
        plugins=[load("node_logger").NodeLogger],
    )
    with caplog.at_level(logging.INFO, logger="asched"):
        outcome = world.schedule(pod("web"))

    told = {
        r.node: (r.cpuCores, r.cpuFreeCores, r.memoryMiB, r.memoryFreeMiB) for r in caplog.records
    }
    assert told == {"n1": (4.0, 3.0, 8192, 7680), "n2": (2.0, 2.0, 1024, 1024)}
    assert outcome.node in ("n1", "n2")


def test_the_trio_places_by_team_and_notes_it_before_the_binding() -> None:
    world = given(
        [node("ours", labels={TEAM: "red"}), node("theirs", labels={TEAM: "blue"}), node("free")],
        plugins=[load("trio").TeamNodes],
    )

    assert world.schedule(pod("web", labels={TEAM: "blue"})).node == "theirs"
    (note,) = world.asked(Patch)
    assert note.body == {"metadata": {"annotations": {TEAM: "blue on theirs"}}}
    kinds = [type(effect).__name__ for effect in world.effects]
    assert kinds.index("Patch") < kinds.index("Bind")

    nowhere = world.schedule(pod("lost", labels={TEAM: "green"}))
    assert nowhere.node == ""
    assert nowhere.message.startswith(
        "0/3 nodes are available: 3 node(s) do not belong to team green."
    )
    assert world.schedule(pod("any")).node != ""
    assert len(world.asked(Patch)) == 1


def test_the_random_scheduler_uses_every_node_and_repeats_itself_by_its_seed() -> None:
    module = load("random_scheduler")
    profile = {"score": {"enabled": [{"name": "RandomScore"}], "disabled": [{"name": "*"}]}}

    def run(seed: int) -> list[str]:
        world = given(
            [node(f"n{i}") for i in range(4)],
            plugins=[module.RandomScore],
            profile=profile,
            args={"RandomScore": {"seed": seed}},
        )
        return [world.schedule(pod(f"web-{i}", cpu=0)).node for i in range(60)]

    first = run(1)
    assert set(first) == {"n0", "n1", "n2", "n3"}
    assert max(Counter(first).values()) < 40
    assert run(1) == first
    assert run(2) != first


def test_the_cost_aware_score_prefers_the_cheapest_node_that_fits() -> None:
    world = given(
        [
            node("dear", labels={COST: "90"}),
            node("cheap", labels={COST: "10"}, cpu=1),
            node("unknown"),
        ],
        plugins=[load("cost_aware").CostAware],
        profile={"multiPoint": {"enabled": [{"name": "CostAware", "weight": 50}]}},
    )

    assert world.schedule(pod("small", cpu="500m")).node == "cheap"
    assert world.schedule(pod("big", cpu=2)).node == "dear"


def test_license_seats_are_taken_asked_for_told_of_and_given_back(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logging.getLogger("asched"), "propagate", True)
    module = load("license_seats")
    world = given([node("n1")], plugins=[module.LicenseSeats], args={"LicenseSeats": {"seats": 1}})
    licensed = {module.LICENSE: "yes"}

    refused = world.schedule(pod("refused", labels={module.LICENSE: "revoked"}))
    assert "the license server said no" in refused.message  # and its seat is free again
    with caplog.at_level(logging.INFO, logger="asched"):
        assert world.schedule(pod("first", labels=licensed)).node == "n1"
    assert [r.pod for r in caplog.records if r.message == "License in use"] == ["default/first"]
    assert "all 1 licenses are taken" in world.schedule(pod("second", labels=licensed)).message
    assert world.schedule(pod("free")).node == "n1"


async def test_the_plain_loop_binds_what_names_it_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = ApiServer()
    await server.start()
    try:
        kubeconfig = tmp_path / "kubeconfig"
        kubeconfig.write_text(server.kubeconfig(), encoding="utf-8")
        server.create("nodes", {"metadata": {"name": "n1"}})
        server.create("nodes", {"metadata": {"name": "closed"}, "spec": {"unschedulable": True}})
        for name, scheduler in (("a", "mine"), ("b", "other"), ("c", "mine")):
            spec = {"schedulerName": scheduler, "containers": [{"name": "c", "image": "i"}]}
            metadata = {"name": name, "namespace": "default"}
            server.create("pods", {"metadata": metadata, "spec": spec})
        module = load("plain_loop")
        # The library looks at KUBECONFIG when it is imported, which other tests may have done.
        load_config = partial(config.load_kube_config, config_file=str(kubeconfig))
        monkeypatch.setattr(module.config, "load_kube_config", load_config)
        async with asyncio.timeout(HANG_S):
            await module.main("mine", count=2)
        placed = {p["metadata"]["name"]: p["spec"].get("nodeName") for p in server.list("pods")}
        assert placed == {"a": "n1", "b": None, "c": "n1"}
    finally:
        await server.stop()
