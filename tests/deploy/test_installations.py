"""Two installations beside each other, by Helm and by kustomize, on a real API server; and which
requests the admission policies accept there.
"""

import asyncio
import json
from collections.abc import Iterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
import yaml

from asched.hardware.sharing.fractions import KOORDINATOR, NUMBERED
from asched.hardware.sharing.gpushare import GpuShareConvention
from asched.hardware.sharing.hami import Hami
from asched.hardware.sharing.volcano import Volcano
from tests.deploy.clusters import Cluster, account_of, started
from tests.deploy.manifests import DEPLOY, JsonObject, chart, container, documents, one, rendered
from tests.e2e.inside import a_node, a_pod
from tests.e2e.outside import a_process
from tests.support import HANG_S, real_api_server

SECOND = DEPLOY / "examples/second-installation"
POLICIES = "admissionPolicy.enabled=true"


def installations(tool: str) -> list[tuple[str, str, list[JsonObject]]]:
    """Namespace, scheduler name and objects of two installations beside each other."""
    if tool == "kustomize":
        first = rendered(DEPLOY / "overlays/ha")
        return [("asched-system", "asched", first), ("batch", "asched-batch", rendered(SECOND))]
    return [
        (namespace, name, chart("y", namespace, f"--set=schedulerName={name},{POLICIES}"))
        for namespace, name in (("x", "asched"), ("w", "asched-batch"))
    ]


@pytest.mark.parametrize("tool", ["helm", "kustomize"])
def test_two_installations_share_no_object_and_refer_to_their_own(tool: str) -> None:
    seen: set[tuple[str, str, str]] = set()
    for namespace, name, objects in installations(tool):
        keys = {
            (o["kind"], o["metadata"].get("namespace", ""), o["metadata"]["name"]) for o in objects
        }
        assert not keys & seen
        seen |= keys
        assert {space for _, space, _ in keys} <= {namespace, "kube-system", ""}
        accounts = {(s, n) for kind, s, n in keys if kind == "ServiceAccount"}
        (account,) = accounts - {(namespace, "asched-explain")}
        subjects = [s for o in objects for s in o.get("subjects", ())]
        for flow in (o for o in objects if o["kind"] == "FlowSchema"):
            assert "namespace" not in flow["metadata"]
            subjects += [s["serviceAccount"] for r in flow["spec"]["rules"] for s in r["subjects"]]
        assert {(s["namespace"], s["name"]) for s in subjects} <= accounts
        deployment = one(objects, "Deployment")
        assert deployment["spec"]["template"]["spec"]["serviceAccountName"] == account[1]
        words = container(deployment)["args"]
        assert f"--leader-elect-resource-namespace={namespace}" in words
        role = next(o for o in objects if o["kind"] == "Role" and "leader" in str(o["metadata"]))
        config = yaml.safe_load(one(objects, "ConfigMap")["data"]["config.yaml"])
        assert role["rules"][1]["resourceNames"] == [config["leaderElection"]["resourceName"]]
        assert [profile["schedulerName"] for profile in config["profiles"]] == [name]


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with real_api_server() as path:
        yield Cluster(path)


@pytest.mark.real
def test_a_real_api_server_accepts_every_option(cluster: Cluster) -> None:
    options = yaml.safe_load((DEPLOY / "chart/values.yaml").read_text(encoding="utf-8"))["options"]
    flags = [f"--set=options.{name}=true" for name in options]
    flags.append("--set=networkPolicy.enabled=true,admissionPolicy.enabled=true")
    cluster.apply(chart("y", "x", *flags), "--dry-run=server")
    for _, _, objects in installations("kustomize"):
        cluster.apply(objects, "--dry-run=server")
    for name in ("admission-policy", "network-policy"):
        for path in DEPLOY.glob(f"components/{name}/*.yaml"):
            if path.name != "kustomization.yaml":
                cluster.apply(documents(path), "--dry-run=server")


@pytest.mark.real
@pytest.mark.parametrize("tool", ["helm", "kustomize"])
async def test_both_schedule_with_the_rights_that_are_rendered(
    cluster: Cluster, tool: str, tmp_path: Path
) -> None:
    running = []
    async with asyncio.timeout(HANG_S), AsyncExitStack() as stack:
        for namespace, name, objects in installations(tool):
            cluster.apply(objects)
            cluster.do(
                "label", "--overwrite", "namespace", "default", f"use.asched.dev/{name}=true"
            )
            (tmp_path / namespace).mkdir()
            words = started(objects, tmp_path / namespace)
            environment = {"KUBECONFIG": cluster.account(namespace, account_of(objects), tmp_path)}
            process = await stack.enter_async_context(
                a_process(tmp_path / namespace, *words, environment=environment)
            )
            running.append((namespace, name, process))
        node, pod = {"apiVersion": "v1", "kind": "Node"}, {"apiVersion": "v1", "kind": "Pod"}
        cluster.do("apply", "-f", "-", send=[node | a_node(f"{tool}-node")])
        status = json.dumps({"status": a_node("n")["status"]})
        cluster.do("patch", "node", f"{tool}-node", "--subresource=status", f"--patch={status}")
        for namespace, name, process in running:
            fits = pod | a_pod(f"{tool}-{name}", schedulerName=name)
            waits = pod | a_pod(f"{tool}-{name}-large", "1000", schedulerName=name)
            cluster.do("apply", "-f", "-", send=[fits, waits])
            for made, query in ((fits, ".spec.nodeName"), (waits, ".status.conditions")):
                words = ("get", "pod", made["metadata"]["name"], f"-o=jsonpath={{{query}}}")
                while not (seen := cluster.do(*words)):  # noqa: ASYNC110 - read from outside
                    await asyncio.sleep(0.2)
            assert "Insufficient cpu" in seen
            lease = cluster.do("-n", namespace, "get", "lease", name, "-o=jsonpath={.spec}")
            assert '"holderIdentity"' in lease
            assert "forbidden" not in process.words.lower(), process.words
    events = cluster.do("get", "events", "-o=jsonpath={.items[*].reportingComponent}")
    assert {"asched", "asched-batch"} <= set(events.split())


# --- admission ------------------------------------------------------------------------------------


def test_the_policies_name_what_the_plugins_write_and_read() -> None:
    conventions = (Hami, Volcano, GpuShareConvention)
    written = {name for made in conventions for name in (*made.writes, *made.writes_labels)}
    folder = DEPLOY / "components/admission-policy"
    for file, names in (
        ("device-annotations", {*written, *NUMBERED, KOORDINATOR}),
        ("own-writes", written),
    ):
        variables = documents(folder / f"{file}.yaml")[0]["spec"]["variables"]
        keys = next(v["expression"] for v in variables if v["name"] == "keys")
        assert set(yaml.safe_load(keys.partition("[] :")[2] or keys)) == names


@pytest.mark.real
def test_policies_accept_and_refuse(cluster: Cluster) -> None:
    values = "options.gpuAnnotations=true,options.gpuNodeLocks=true,admissionPolicy.enabled=true"
    objects = chart("p", "policy", f"--set={values},schedulerName=guarded")
    cluster.apply(objects)
    try:
        _policies_accept_and_refuse(cluster)
    finally:
        cluster.run("delete", "-f", "-", send=[o for o in objects if "Admission" in o["kind"]])


def _policies_accept_and_refuse(cluster: Cluster) -> None:
    resources = ["pods", "pods/status", "pods/binding"]
    rights = [{"apiGroups": [""], "resources": resources, "verbs": ["*"]}]
    # kubectl patch reads first, which the account of asched may not.
    reads = {"apiGroups": [""], "resources": ["pods/status", "nodes"], "verbs": ["get"]}
    own = "system:serviceaccount:policy:p-asched"
    roles = []
    for user, name, rules in (("tenant", "tenant", rights), (own, "reader", [reads])):
        head = {"apiVersion": "rbac.authorization.k8s.io/v1", "metadata": {"name": name}}
        group = "rbac.authorization.k8s.io"
        reference = {"apiGroup": group, "kind": "ClusterRole", "name": name}
        subject = {"apiGroup": group, "kind": "User", "name": user}
        bound = {"roleRef": reference, "subjects": [subject]}
        roles += [{**head, "kind": "ClusterRole", "rules": rules}]
        roles += [{**head, "kind": "ClusterRoleBinding", **bound}]
    node = {"apiVersion": "v1", "kind": "Node", **a_node("guarded")}
    cluster.apply([*roles, node])

    def pod(name: str, scheduler: str, **metadata: object) -> JsonObject:
        made = {"apiVersion": "v1", "kind": "Pod", **a_pod(name, schedulerName=scheduler)}
        made["metadata"] |= metadata
        return made

    def create(made: JsonObject) -> str:
        return cluster.run("create", "-f", "-", "--as=tenant", send=[made]).stderr

    def patch(user: str, what: str, change: object, *words: str) -> str:
        text = json.dumps(change)
        return cluster.run("patch", *what.split(), f"--as={user}", f"--patch={text}", *words).stderr

    devices = {"annotations": {"hami.io/vgpu-devices-allocated": "gpu-0,NVIDIA,1,1:;"}}
    # A policy acts some moments after it was created.
    for _ in range(int(HANG_S)):
        if "use.asched.dev/guarded" in create(pod("named", "guarded")):
            break
        cluster.run("delete", "pod", "named", "--now")
    else:
        raise AssertionError("the policy never acts")
    assert create(pod("other", "default-scheduler")) == ""
    cluster.do("label", "namespace", "default", "use.asched.dev/guarded=true")
    assert create(pod("named", "guarded")) == ""

    assert "assign devices" in create(pod("forged", "default-scheduler", **devices))
    target = {"apiVersion": "v1", "kind": "Node", "name": "guarded"}
    named = {"name": "named", "namespace": "default"}
    binding = {"apiVersion": "v1", "kind": "Binding", "metadata": named, "target": target}
    for metadata, refusal in (({**named, **devices}, "assign devices"), (named, "")):
        path = "--raw=/api/v1/namespaces/default/pods/named/binding"
        sent = {**binding, "metadata": metadata}
        told = cluster.run("create", path, "-f", "-", "--as=tenant", raw=sent)
        assert (refusal in told.stderr) if refusal else told.returncode == 0, told.stderr
    status = ("--subresource=status",)
    lock = {"metadata": {"annotations": {"hami.io/mutex.lock": "now"}}}
    label = {"metadata": {"labels": {"hami.io/vgpu-node": "n1"}}}
    image = {"spec": {"containers": [{"name": "main", "image": "evil"}]}}
    taint = {"spec": {"taints": [{"key": "k", "effect": "NoExecute"}]}}
    condition = {"status": {"conditions": [{"type": "PodScheduled", "status": "False"}]}}
    for user, what, change, words, refusal in (
        ("tenant", "pod other", {"metadata": devices}, (), "assign devices"),
        ("tenant", "pod other", label, (), "assign devices"),
        ("tenant", "pod other", {"metadata": devices}, status, "assign devices"),
        ("tenant", "pod other", {"metadata": {"labels": {"a": "b"}}}, (), ""),
        (own, "pod other", {"metadata": devices}, (), ""),
        (own, "pod other", label, (), ""),
        (own, "pod other", condition, status, ""),
        (own, "pod other", {"metadata": {"labels": {"a": "c"}}}, (), "no annotation or label"),
        (own, "pod other", {"metadata": {"annotations": {"a": "c"}}}, status, "no annotation"),
        (own, "pod other", image, (), "no spec, owner or finalizer"),
        (own, "node guarded", lock, (), ""),
        (own, "node guarded", {"metadata": {"labels": {"a": "c"}}}, (), "but annotations"),
        (own, "node guarded", taint, (), "but annotations"),
        ("tenant", "pod other", {"metadata": devices}, (), ""),  # unchanged
    ):
        told = patch(user, what, change, *words)
        assert (refusal in told) if refusal else told == "", (user, what, change, told)
