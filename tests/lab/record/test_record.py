"""`python -m asched_lab.record`: what it writes of a running scheduler is replayed."""

import asyncio
import json
from pathlib import Path

import pytest

from asched_lab.measure.real import assets, free_port
from asched_lab.record.__main__ import main
from asched_lab.record.inputs import generate, read
from tests.conformance.__main__ import lines, replay_file
from tests.e2e.control_plane import a_plane
from tests.e2e.outside import a_process
from tests.support import RECORDINGS

CASES = 6


def differences(path: Path) -> dict[str, list[str]]:
    results = list(replay_file(path))
    assert len(results) == CASES
    return {result.name: result.differences for result in results if result.differences}


async def test_asched_run_is_recorded(tmp_path: Path) -> None:
    out, config, port = tmp_path / "cases.jsonl.gz", tmp_path / "config.json", free_port()
    async with a_plane("embedded") as plane:
        given = [f"--kubeconfig={plane.kubeconfig}", f"--port={port}"]
        assert main([*given, f"--write-config={config}"]) == 0
        async with a_process(tmp_path, f"--config={config}", "--secure-port=0") as process:
            await process.says("synced")
            command = [*given, f"--cases={CASES}", f"--out={out}"]
            assert await asyncio.to_thread(main, command) == 0
    cases = list(lines(out))
    assert any("choices" in case["seen"] for case in cases)
    assert any("condition" in case["seen"] for case in cases)
    assert differences(out) == {}


@pytest.mark.real
def test_kube_scheduler_is_recorded_with_its_metrics(tmp_path: Path) -> None:
    binaries = assets()
    if binaries is None or not (binaries / "kube-scheduler").exists():
        pytest.skip("KUBEBUILDER_ASSETS has no kube-scheduler")
    out = tmp_path / "cases.jsonl.gz"
    command = [f"--control-plane={binaries}", f"--port={free_port()}", f"--cases={CASES}"]
    assert main([*command, f"--out={out}"]) == 0
    cases = list(lines(out))
    assert all(case["scheduler"].startswith("v1.") for case in cases)
    assert all(case["seen"]["plugins"] for case in cases if "condition" in case["seen"])
    assert differences(out) == {}


async def test_a_cluster_in_use_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async with a_plane("embedded") as plane:
        await plane.create("/api/v1/nodes", [{"metadata": {"name": "theirs"}}])
        command = [f"--kubeconfig={plane.kubeconfig}", f"--port={free_port()}"]
        status = await asyncio.to_thread(main, [*command, f"--out={tmp_path / 'cases'}"])
        assert [node["metadata"]["name"] for node in await plane.every("/api/v1/nodes")]
    assert status == 1
    assert "the cluster has nodes already (theirs)" in capsys.readouterr().err


def test_generated_inputs_are_the_same_for_the_same_seed() -> None:
    first, again, other = ([json.dumps(c.objects) for c in generate(s, 5)] for s in (1, 1, 2))
    assert first == again
    assert first != other


def test_recorded_corpora_are_inputs() -> None:
    corpus = RECORDINGS / "conformance"
    classes = [c.objects["runtimeclasses"] for c in read(corpus / "resources.jsonl.gz")]
    assert any(found[0]["overhead"]["podFixed"] for found in classes if found)
    assert not [c.name for c in read(corpus / "taints.jsonl.gz") if c.unsupported()]
    reasons = {
        c.unsupported()
        for name in ("volumes", "preemption", "dra", "unschedulable")
        for c in read(corpus / f"{name}.jsonl.gz")
    }
    assert reasons == {
        "",
        "devices",
        "claims that a controller has to bind",
        "a pod with a nominated node",
        "a pod that names its node",
        "other pods that wait",
    }
