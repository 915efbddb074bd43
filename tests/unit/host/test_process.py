"""A whole process in the test's own loop: pages of a live scheduler, signals, and its end."""

import asyncio
import json
import logging
import os
import signal
import socket
import subprocess
import sys

import pytest

from asched.core.config.gates import default_gates
from asched.core.config.gates import parse as parse_gates
from asched.host.configuration.file import load_config
from asched.host.process import Plan, schedule
from asched.kube.session import ConnectionOptions
from asched.serve.options import (
    CannotServeError,
    ServingOptions,
    ServingPlan,
)
from asched_lab.apiserver.context import Options
from asched_lab.apiserver.server import ApiServer
from tests.support import HANG_S
from tests.unit.host.processes import CONFIGURATION, a_node, a_pod, a_process, free_port


async def test_pages_of_a_live_scheduler(tmp_path):
    async with a_process(tmp_path) as process:
        told = json.loads(
            await process.until(
                "/debug/asched/pods/default/big", lambda _, text: "unschedulable" in text
            )
        )
        page = await process.until(
            "/metrics", lambda _, t: 'attempts_total{profile="asched",result="scheduled"} 1.0' in t
        )
        _, resources = await process.ask("/metrics/resources")
        _, configz = await process.ask("/configz")
        _, queue = await process.ask("/debug/asched/queue")
        _, cache = await process.ask("/debug/asched/cache")

    assert told["rejectedBy"] == ["NodeResourcesFit"]
    assert told["now"]["feasible"] == 0
    assert told["now"]["nearestMisses"][0]["node"] == "n1"
    for label in ("active", "backoff", "gated", "unschedulable"):
        assert f'scheduler_pending_pods{{queue="{label}"}}' in page
    for label in ("assumed_pods", "nodes", "pods"):
        assert f'scheduler_cache_size{{type="{label}"}}' in page
    assert 'scheduler_unschedulable_pods{plugin="NodeResourcesFit",profile="asched"} 1.0' in page
    assert 'leader_election_master_status{name="asched"} 1.0' in page
    for name in ("depth", "unfinished_work_seconds", "longest_running_processor_seconds"):
        assert f'workqueue_{name}{{name="binding"}} 0.0' in page
    assert (
        'pod="big",priority="0",resource="cpu",scheduler="asched",unit="cores"} 64.0' in resources
    )
    assert json.loads(configz)["componentconfig"]["leaderElection"]["resourceName"] == "asched"
    assert [one["pod"] for one in json.loads(queue)["unschedulable"]] == ["default/big"]
    assert json.loads(cache)["nodes"][0]["pods"] == ["default/web"]


async def test_without_a_kubeconfig_for_it_the_schedulers_own_server_knows_the_callers(
    tmp_path, monkeypatch
):
    """So that `asched explain --token` works beside a scheduler started from a kubeconfig."""
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    async with a_process(tmp_path, elects=False, reviewed_by="nobody else") as process:
        known, _ = await process.ask("/debug/asched/queue")
        nobody, _ = await process.ask("/debug/asched/queue", token="")
        stranger, _ = await process.ask("/debug/asched/queue", token="nonsense")

    assert (known, nobody, stranger) == (200, 403, 401)


def a_gang_member(name):
    pod = a_pod(name)
    pod["spec"]["schedulingGroup"] = {"podGroupName": "crew"}
    return pod


async def test_pod_groups_are_followed_and_waited_for_where_the_gate_is_on(tmp_path):
    """This server has no alpha kinds: nobody's group exists, and everybody else is placed."""
    gates = parse_gates(["GenericWorkload=true,GangScheduling=true"]).enabled
    async with a_process(tmp_path, elects=False, gates=gates) as process:
        process.server.create("pods", a_gang_member("a"))
        queue = await process.until("/debug/asched/queue", lambda _, text: "default/a" in text)
        cache = await process.until("/debug/asched/cache", lambda _, text: "default/web" in text)
        page = await process.until("/metrics", lambda status, _: status == 200)

    assert [p["pod"] for p in json.loads(queue)["gated"]] == ["default/a"]
    assert json.loads(cache)["nodes"][0]["pods"] == ["default/web"]
    assert "podgroups" in page
    assert "scheduler_podgroup_scheduling_algorithm_duration_seconds_count" in page


async def test_queued_groups_count_once_by_the_metrics_of_1_37(tmp_path):
    """Two pods wait for the rest of their group, one for a PodGroup that does not exist."""
    gates = parse_gates(["GenericWorkload=true"], "1.37").enabled
    served = frozenset({"scheduling.k8s.io/v1beta1"})
    server = ApiServer(options=Options(minor="1.37", alpha=served))
    async with a_process(tmp_path, elects=False, gates=gates, server=server) as process:
        group = {"apiVersion": "scheduling.k8s.io/v1beta1", "kind": "PodGroup"}
        spec = {"schedulingPolicy": {"gang": {"minCount": 3}}}
        metadata = {"name": "crew", "namespace": "default"}
        server.create("", {**group, "metadata": metadata, "spec": spec})
        for name in ("a", "b", "alone"):
            pod = a_gang_member(name)
            if name == "alone":
                pod["spec"]["schedulingGroup"]["podGroupName"] = "missing"
            server.create("pods", pod)
        await process.until("/metrics", lambda _, text: 'pods{queue="gated"} 2.0' in text)
        await process.until("/metrics", lambda _, text: 'pods{queue="incomplete"} 1.0' in text)
        await process.until("/debug/asched/queue", lambda _, text: "default/big" in text)
        page = await process.until("/metrics", lambda status, _: status == 200)

    lines = page.splitlines()
    queued = 'scheduler_queued_entities{queue="%s",type="%s"} %s'
    assert queued % ("gated", "podgroup", "1.0") in lines
    assert queued % ("gated", "pod", "0.0") in lines
    assert queued % ("unschedulable", "pod", "1.0") in lines
    incoming = "scheduler_queue_incoming_entities_total{"
    counts = [line for line in lines if line.startswith(incoming) and "podgroup" in line]
    assert [line.rpartition(" ")[2] for line in counts] == ["2.0"]


@pytest.mark.parametrize(("minor", "is_shown"), [("1.36", False), ("1.37", True)])
async def test_watched_kinds_have_the_metrics_of_informers(tmp_path, minor, is_shown):
    async with a_process(tmp_path, elects=False, gates=default_gates(minor)) as process:
        await process.until("/debug/asched/queue", lambda _, text: "default/big" in text)
        process.server.create("pods", a_pod("later"))
        await process.until("/debug/asched/cache", lambda _, text: "default/later" in text)
        page = await process.until("/metrics", lambda status, _: status == 200)

    lines = dict(line.rsplit(" ", 1) for line in page.splitlines() if line.startswith("informer_"))
    assert bool(lines) is is_shown
    if is_shown:
        pods = '{group="",name="kube-scheduler",resource="pods",version="v1"}'
        assert lines[f"informer_queued_items{pods}"] == "0.0"
        assert float(lines[f"informer_store_resource_version{pods}"]) > 0
        assert float(lines[f"informer_processing_latency_seconds_count{pods}"]) > 0
        assert any('group="storage.k8s.io"' in name for name in lines)


def a_job(name, parallelism, cpu="100m", **spec):
    template = {"spec": {**a_pod("any", cpu)["spec"], "restartPolicy": "Never"}}
    work = {"parallelism": parallelism, "completions": parallelism, "template": template}
    return {"metadata": {"name": name}, "spec": {**work, **spec}}


async def test_jobs_are_groups_by_the_defaults_of_1_38(tmp_path):
    """The Job controller makes a PodGroup of v1 for each Job; asched finds them by discovery."""
    server = ApiServer(options=Options(minor="1.38"), controllers=True)
    gang = {"scheduling": {"schedulingPolicy": {"gang": {}}}}
    gates = default_gates("1.38")
    async with a_process(tmp_path, elects=False, gates=gates, server=server) as process:
        for job in (a_job("plain", 4), a_job("gang", 3, **gang), a_job("wide", 3, "2", **gang)):
            server.create("jobs", job)
        counts = "scheduler_podgroup_schedule_attempts_total"
        for result, groups in (("scheduled", "2.0"), ("unschedulable", "1.0")):
            line = f'{counts}{{profile="asched",result="{result}"}} {groups}'
            await process.until("/metrics", lambda _, text, line=line: line in text)
        async with asyncio.timeout(HANG_S):
            while len(conditions := group_conditions(server)) < 3:  # noqa: ASYNC110
                await asyncio.sleep(0.02)

    assert conditions["plain"] == conditions["gang"] == ("True", "Scheduled")
    assert conditions["wide"] == ("False", "Unschedulable")
    pods = {pod["metadata"]["name"]: pod["spec"] for pod in server.list("pods")}
    placed = [name.partition("-")[0] for name, spec in pods.items() if spec.get("nodeName")]
    assert sorted(placed) == ["gang"] * 3 + ["plain"] * 4 + ["web"]
    workloads = server.list("workloads")
    assert {kept["spec"]["controllerRef"]["name"] for kept in workloads} == {
        "plain",
        "gang",
        "wide",
    }


async def test_trees_of_groups_through_the_api(tmp_path):
    """Both kinds are watched, by the versions that the server has, and get their conditions."""
    served = frozenset({"scheduling.k8s.io/v1alpha3"})
    server = ApiServer(options=Options(minor="1.38", alpha=served))
    gates = parse_gates(["CompositePodGroup=true"], "1.38").enabled
    reference = {"workloadName": "w", "templateName": "t"}
    async with a_process(tmp_path, elects=False, gates=gates, server=server) as process:
        for name, version, kind, spec in (
            ("root", "v1alpha3", "CompositePodGroup", {"gang": {"minGroupCount": 2}}),
            ("crew", "v1", "PodGroup", {"gang": {"minCount": 1}}),
            ("other", "v1", "PodGroup", {"basic": {}}),
        ):
            body = {"schedulingPolicy": spec, "workloadRef": reference}
            if kind == "PodGroup":
                body["parentCompositePodGroupName"] = "root"
                other = a_gang_member(f"{name}-0")
                other["spec"]["schedulingGroup"]["podGroupName"] = name
                server.create("pods", other)
            group = {"apiVersion": f"scheduling.k8s.io/{version}", "kind": kind, "spec": body}
            server.create("", {**group, "metadata": {"name": name, "namespace": "default"}})
        line = 'attempts_total{profile="asched",result="scheduled"} 1.0'
        await process.until(
            "/metrics", lambda _, text: f"scheduler_podgroup_schedule_{line}" in text
        )
        async with asyncio.timeout(HANG_S):
            while not (  # noqa: ASYNC110
                root := server.get("compositepodgroups", "default", "root")
            ).get("status"):
                await asyncio.sleep(0.02)

    (condition,) = root["status"]["conditions"]
    assert condition["type"] == "CompositePodGroupInitiallyScheduled"
    assert (condition["status"], condition["reason"]) == ("True", "Scheduled")


@pytest.mark.parametrize(
    ("minor", "counts"),
    [
        ("1.37", {"podgroup": (["2.0"], ["2.0"]), "compositepodgroup": ([], [])}),
        ("1.38", {"podgroup": (["0.0"], []), "compositepodgroup": (["1.0"], ["1.0"])}),
    ],
)
async def test_queued_trees_by_version(tmp_path, minor, counts):
    """The two groups below a root have their pods; a third, which has none, is needed."""
    served = frozenset({"scheduling.k8s.io/v1alpha3", "scheduling.k8s.io/v1beta1"})
    server = ApiServer(options=Options(minor=minor, alpha=served))
    gates = parse_gates(["CompositePodGroup=true,GenericWorkload=true"], minor).enabled
    async with a_process(tmp_path, elects=False, gates=gates, server=server) as process:
        for name, kind, spec in (
            ("root", "CompositePodGroup", {"gang": {"minGroupCount": 3}}),
            ("one", "PodGroup", {"gang": {"minCount": 1}}),
            ("two", "PodGroup", {"gang": {"minCount": 1}}),
        ):
            body = {"schedulingPolicy": spec}
            if kind == "PodGroup":
                body["parentCompositePodGroupName"] = "root"
            group = {"apiVersion": "scheduling.k8s.io/v1alpha3", "kind": kind, "spec": body}
            server.create("", {**group, "metadata": {"name": name, "namespace": "default"}})
        for name in ("one", "two"):
            pod = a_gang_member(name)
            pod["spec"]["schedulingGroup"]["podGroupName"] = name
            server.create("pods", pod)
        await process.until("/metrics", lambda _, text: 'pods{queue="gated"} 2.0' in text)
        page = await process.until("/metrics", lambda status, _: status == 200)

    lines = [line.rsplit(" ", 1) for line in page.splitlines() if "_entities" in line]
    for kind in ("podgroup", "compositepodgroup"):
        about = f'queue="gated",type="{kind}"}}'
        queued = [value for name, value in lines if name.endswith(about)]
        arrived = [value for name, value in lines if "incoming" in name and f'"{kind}"' in name]
        assert (queued, arrived) == counts[kind]


def group_conditions(server):
    """By Job: status and reason of the condition of its PodGroup."""
    return {
        group["metadata"]["ownerReferences"][0]["name"]: (condition["status"], condition["reason"])
        for group in server.list("podgroups")
        for condition in group.get("status", {}).get("conditions", ())
        if condition["type"] == "PodGroupInitiallyScheduled"
    }


async def test_a_signal_compares_the_columns_with_the_server(tmp_path, caplog):
    logging.getLogger("asched").propagate = True
    with caplog.at_level(logging.INFO, "asched"):
        async with a_process(tmp_path, elects=False):
            os.kill(os.getpid(), signal.SIGUSR2)
            async with asyncio.timeout(HANG_S):
                while "Dump of scheduling queue" not in caplog.text:  # noqa: ASYNC110
                    await asyncio.sleep(0.02)

    assert "Cache mismatch" not in caplog.text
    assert "Count mismatch" not in caplog.text
    assert "recount finished" in caplog.text
    assert "Dump of cached NodeInfo" in caplog.text


async def test_a_port_in_use_is_one_clear_line(tmp_path):
    server = ApiServer()
    await server.start()
    (tmp_path / "kubeconfig").write_text(server.kubeconfig())
    try:
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = taken.getsockname()[1]
            plan = Plan(
                configuration=load_config(text=CONFIGURATION % "false").configuration,
                connection=ConnectionOptions(kubeconfig=str(tmp_path / "kubeconfig")),
                serving=ServingPlan(ServingOptions(bind_address="127.0.0.1", secure_port=port)),
            )
            with pytest.raises(CannotServeError, match=f"cannot listen on 127.0.0.1:{port}"):
                await schedule(plan)
    finally:
        await server.stop()


async def test_a_process_that_cannot_serve_ends_in_order(tmp_path):
    """The pages open late: by then it leads, and the lease must not stay with the dead."""
    server = ApiServer()
    await server.start()
    (tmp_path / "kubeconfig").write_text(server.kubeconfig())
    server.create("nodes", a_node("n1"))
    server.create("pods", a_pod("web"))
    (tmp_path / "nonsense").write_text("no certificate")
    nonsense = str(tmp_path / "nonsense")
    plan = Plan(
        configuration=load_config(text=CONFIGURATION % "true").configuration,
        connection=ConnectionOptions(kubeconfig=str(tmp_path / "kubeconfig")),
        serving=ServingPlan(
            ServingOptions(
                bind_address="127.0.0.1",
                secure_port=free_port(),
                tls_cert_file=nonsense,
                tls_private_key_file=nonsense,
            )
        ),
    )

    with pytest.raises(CannotServeError, match="nonsense"):
        await schedule(plan)

    (lease,) = server.list("leases")
    assert lease["spec"]["holderIdentity"] == ""
    assert server.list("pods")[0]["spec"]["nodeName"] == "n1"
    await server.stop()


ENDS = """
import asyncio, threading, time
from asched.host.event_loop import run_on_loop

started = threading.Event()

def work_on():
    started.set()
    time.sleep(10 * 3600)

async def work():
    assert await asyncio.to_thread(lambda: 5) == 5
    never = asyncio.ensure_future(asyncio.to_thread(work_on))
    await asyncio.to_thread(started.wait)
    never.cancel()
    return 7

raise SystemExit(run_on_loop(work()))
"""


def test_a_process_that_ends_waits_for_nothing_it_does_in_threads():
    """A profile, or a name server that does not answer: who lost the lease is gone at once."""
    ended = subprocess.run([sys.executable, "-c", ENDS], timeout=HANG_S, check=False)
    assert ended.returncode == 7
