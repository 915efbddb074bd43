"""Least privilege: what is granted is what is used, on paper and in a run."""

import ast
import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from itertools import product
from pathlib import Path

import pytest

from asched import names
from asched.cli import flags
from asched.cli.reach import LEASE
from asched.cli.reach import READER as READER_ACCOUNT
from asched.core.config.defaults import default_configuration
from asched.core.config.gates import DEFAULT_GATES
from asched.core.config.merge import resolve
from asched.core.config.v1 import LeaderElection
from asched.core.model import kinds
from asched.core.plugins import IN_TREE_POINTS
from asched.host.assemble import Parts, build_machine, build_runners
from asched.host.loops import Scheduler
from asched.kube.session import ConnectionOptions, connect
from asched.kube.transport import Observer
from asched.ops.doctor.permissions import COMPONENTS, WRITES, Right, group_of, lease_rights, needed
from asched.serve.routes import GROUPS, NODES, OWN, PODS, UI
from asched_lab.apiserver.call import User
from asched_lab.apiserver.server import ApiServer
from tests.deploy.manifests import DEPLOY, JsonObject, container, documents, one, overlay
from tests.support import HANG_S, ROOT

ELECTION = LeaderElection(resource_name="asched", resource_namespace="asched-system")
ACCOUNT = "system:serviceaccount:asched-system:asched"
RBAC = [*documents(DEPLOY / "base/rbac.yaml"), *documents(DEPLOY / "base/rbac-serving.yaml")]
READER = "extension-apiserver-authentication-reader"


def rights_in(manifests: list[JsonObject]) -> Iterator[Right]:
    """Every right the roles among some manifests grant."""
    for manifest in manifests:
        if manifest["kind"] not in ("ClusterRole", "Role"):
            continue
        namespace = manifest["metadata"].get("namespace", "")
        for rule in manifest["rules"]:
            objects = rule.get("resourceNames") or [""]
            cases = product(rule["verbs"], rule["apiGroups"], rule["resources"], objects)
            for verb, group, resource, name in cases:
                yield Right(verb, group, resource, namespace, name)


def default_plugins() -> tuple[str, ...]:
    (profile,) = default_configuration("asched").profiles
    return resolve(profile, IN_TREE_POINTS, 0).plugin_names


def with_gates(*names: str) -> dict[str, bool]:
    return {**DEFAULT_GATES, **dict.fromkeys(names, True)}


def test_the_manifests_grant_what_the_default_profile_needs_and_nothing_else() -> None:
    granted = list(rights_in(RBAC))
    assert len(granted) == len(set(granted)), "a right is granted twice"
    # DeviceTaintRules are followed by default with an API server of 1.37.
    needs = needed(default_plugins(), ELECTION, gates=with_gates("DRADeviceTaintRules"))
    wanted = {need.right for need in needs}
    # The client CA's role is the cluster's own; the manifests only bind it.
    wanted = {right for right in wanted if right.resource != "configmaps"}
    assert set(granted) == wanted
    assert any(m["kind"] == "RoleBinding" and m["roleRef"]["name"] == READER for m in RBAC)


def test_everything_is_bound_to_our_account_only() -> None:
    bindings = [m for m in RBAC if m["kind"].endswith("Binding")]
    assert {(s["namespace"], s["name"]) for m in bindings for s in m["subjects"]} == {
        ("asched-system", "asched")
    }


def test_the_example_may_renew_its_own_lease() -> None:
    """create comes with system:kube-scheduler; events about the lease too."""
    granted = set(rights_in(documents(DEPLOY / "examples/my-scheduler/rbac.yaml")))
    wanted = {right for right in lease_rights("kube-system", "my-scheduler") if right.name}
    assert granted == wanted


def effects_written() -> Iterator[Right]:
    """What the plugins' code asks to be written: Patch, Create and Delete with a literal kind."""
    verbs = {"Create": "create", "Delete": "delete"}
    verbs |= dict.fromkeys(("Patch", "PatchGroupStatus", "VolumeWrite"), "patch")
    modules = [
        path for name in ("core", "batch") for path in (ROOT / "asched" / name).rglob("*.py")
    ]
    for path in sorted(modules):
        for call in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(call, ast.Call) and isinstance(call.func, ast.Name):
                verb = verbs.get(call.func.id)
                if verb is not None and (kind := _kind(call)) is not None:
                    sub = _keyword(call, "subresource")
                    slash = f"/{sub.value}" if isinstance(sub, ast.Constant) else ""
                    yield Right(verb, group_of(kind), f"{kind.plural}{slash}")


def _keyword(call: ast.Call, name: str) -> ast.expr | None:
    return next((word.value for word in call.keywords if word.arg == name), None)


def _kind(call: ast.Call) -> kinds.Kind | None:
    candidates = [_keyword(call, "kind"), *call.args[:1]]
    for found in candidates:
        if isinstance(found, ast.Name):
            kind = getattr(kinds, found.id, None)
            if isinstance(kind, kinds.Kind):
                return kind
    return None


def test_every_write_in_the_code_is_in_the_table() -> None:
    found = set(effects_written())
    assert Right("create", "resource.k8s.io", "resourceclaims") in found
    assert Right("patch", "", "persistentvolumeclaims") in found
    assert Right("patch", "scheduling.k8s.io", "podgroups/status") in found
    assert found <= {
        need.right
        for need in needed(WRITES, ELECTION, gates=with_gates("GenericWorkload"), keeps_nodes=True)
    }


def test_the_option_for_pod_groups_grants_what_their_gate_takes_and_nothing_else() -> None:
    manifests = documents(DEPLOY / "components/pod-groups/rbac.yaml")
    without = {need.right for need in needed(default_plugins(), ELECTION)}
    needs = needed(
        default_plugins(), ELECTION, gates=with_gates("GenericWorkload", "CompositePodGroup")
    )
    wanted = {need.right for need in needs}
    granted = list(rights_in(manifests))
    assert len(granted) == len(set(granted))
    assert set(granted) == wanted - without
    (binding,) = [m for m in manifests if m["kind"] == "ClusterRoleBinding"]
    assert binding["roleRef"]["name"] == manifests[0]["metadata"]["name"]
    assert [(s["namespace"], s["name"]) for s in binding["subjects"]] == [
        ("asched-system", "asched")
    ]


def test_the_status_controllers_are_granted_what_they_write_and_nothing_else() -> None:
    manifests = documents(DEPLOY / "components/status-controllers/rbac.yaml")
    plugins = [*default_plugins(), names.COSCHEDULING, names.CAPACITY_SCHEDULING]
    without = {need.right for need in needed(plugins, ELECTION)}
    wanted = {need.right for need in needed(plugins, ELECTION, writes_statuses=True)}
    granted = list(rights_in(manifests))
    assert len(granted) == len(set(granted)) == 2
    assert set(granted) == wanted - without


@pytest.mark.parametrize(
    ("plugin", "count"),
    [
        (names.COSCHEDULING, 2),
        (names.CHECK_AND_HOLD, 5),
        (names.CAPACITY_SCHEDULING, 2),
        (names.BACKFILL, 2),
        (names.GROUP_SCALE_UP, 8),
        (names.REBALANCE, 3),
    ],
)
def test_the_option_for_a_plugin_grants_what_it_takes_and_nothing_else(
    plugin: str, count: int
) -> None:
    manifests = documents(DEPLOY / "components" / COMPONENTS[plugin] / "rbac.yaml")
    without = {need.right for need in needed(default_plugins(), ELECTION)}
    plugins = [*default_plugins(), plugin]
    wanted = {need.right for need in needed(plugins, ELECTION)}
    granted = list(rights_in(manifests))
    assert len(granted) == len(set(granted)) == count
    assert set(granted) == wanted - without
    (binding,) = [m for m in manifests if m["kind"] == "ClusterRoleBinding"]
    assert binding["roleRef"]["name"] == manifests[0]["metadata"]["name"]
    assert [(s["namespace"], s["name"]) for s in binding["subjects"]] == [
        ("asched-system", "asched")
    ]


def test_who_looks_on_may_list_and_watch_and_nothing_else() -> None:
    role, binding = documents(DEPLOY / "overlays/shadow/role.yaml")
    granted = list(rights_in([role]))
    assert len(granted) == len(set(granted)), "a right is granted twice"
    needs = needed(
        default_plugins(), ELECTION, is_serving=False, gates=with_gates("DRADeviceTaintRules")
    )
    every = {need.right for need in needs}
    assert set(granted) == {right for right in every if right.verb in ("list", "watch")}
    assert binding["roleRef"]["name"] == role["metadata"]["name"]
    assert [(s["namespace"], s["name"]) for s in binding["subjects"]] == [
        ("asched-system", "asched")
    ]
    rendered = overlay("shadow")
    (people,) = (m for m in rendered if m["kind"] == "Role")
    assert people["metadata"]["name"] == READER_ACCOUNT  # no lease
    roles = {m["metadata"]["name"]: m for m in rendered if m["kind"] == "ClusterRole"}
    assert roles.keys() == {"asched-shadow", "asched-serving", READER_ACCOUNT}
    arguments = container(one(rendered, "Deployment"))["args"]
    assert flags.parse(arguments[2:]).shadow == (names.DEFAULT_SCHEDULER_NAME,)


def test_the_option_for_asking_why_opens_pages_to_look_at_and_nothing_else() -> None:
    account, pages, binding, people = documents(DEPLOY / "components/explain/rbac.yaml")
    assert account["metadata"]["name"] == READER_ACCOUNT
    assert account["automountServiceAccountToken"] is False
    shown = [f"{PODS}*", f"{OWN}view", f"{OWN}shadow", f"{NODES}*", f"{GROUPS}*", UI]
    assert pages["rules"] == [{"nonResourceURLs": shown, "verbs": ["get"]}]
    assert binding["roleRef"]["name"] == pages["metadata"]["name"]
    assert [(s["namespace"], s["name"]) for s in binding["subjects"]] == [
        ("asched-system", READER_ACCOUNT)
    ]
    assert f"{people['metadata']['namespace']}/asched" == LEASE
    assert set(rights_in([people])) == {
        Right("get", "coordination.k8s.io", "leases", "asched-system", "asched"),
        Right("get", "", "pods", "asched-system"),
        Right("list", "", "pods", "asched-system"),
        Right("get", "", "pods/proxy", "asched-system"),
        Right("create", "", "serviceaccounts/token", "asched-system", READER_ACCOUNT),
    }


# --- a run with these rights and no others -------------------------------------------------------


class Refusals:
    """Counts what the API server forbade."""

    def __init__(self) -> None:
        self.codes: list[str] = []

    def observe(self) -> Observer:
        return lambda made: self.codes.append(f"{made.method} {made.code}")

    @property
    def forbidden(self) -> list[str]:
        return [code for code in self.codes if code.endswith(" 403")]


@pytest.fixture
async def server() -> AsyncIterator[ApiServer]:
    groups = ("system:serviceaccounts", "system:serviceaccounts:asched-system")
    account = User(ACCOUNT, (*groups, "system:authenticated"))
    made = ApiServer(users={"scheduler": account}, kubelet=True)
    await made.start(token="administrator")
    namespace, service_account = documents(DEPLOY / "base/namespace.yaml")
    for manifest in (namespace, service_account, *RBAC):
        made.create("", manifest)
    try:
        yield made
    finally:
        await made.stop()


def kubeconfig(server: ApiServer, folder: Path) -> str:
    path = folder / "kubeconfig"
    path.write_text(server.kubeconfig().replace("administrator", "scheduler"))
    return str(path)


def a_pod(name: str, **spec: object) -> JsonObject:
    container = {
        "name": "c",
        "image": "i",
        "resources": {"requests": {"cpu": spec.pop("cpu", "100m")}},
    }
    metadata = {"name": name, "namespace": "default"}
    return {
        "metadata": metadata,
        "spec": {"schedulerName": "asched", "containers": [container], **spec},
    }


def fill(server: ApiServer) -> None:
    """One node, full of a pod of no importance; a claim that waits; a pod that fits nowhere."""
    amounts = {"cpu": "1", "memory": "1Gi", "pods": "20"}
    server.create(
        "nodes",
        {
            "metadata": {"name": "n1", "labels": {"zone": "a"}},
            "status": {"allocatable": amounts, "capacity": amounts},
        },
    )
    server.create("priorityclasses", {"metadata": {"name": "high"}, "value": 1000})
    storage = {"provisioner": "kubernetes.io/no-provisioner"}
    storage |= {"volumeBindingMode": "WaitForFirstConsumer"}
    server.create("storageclasses", {"metadata": {"name": "local"}, **storage})
    modes = {"accessModes": ["ReadWriteOnce"], "storageClassName": "local"}
    server.create(
        "persistentvolumes",
        {
            "metadata": {"name": "v1"},
            "spec": {**modes, "capacity": {"storage": "1Gi"}, "local": {"path": "/d"},
                     "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [
                         {"key": "zone", "operator": "Exists"}]}]}}},
        },
    )  # fmt: skip
    volume = server.get("persistentvolumes", "", "v1")
    assert volume is not None
    volume["status"]["phase"] = "Available"  # nobody else here says so
    wanted = {"resources": {"requests": {"storage": "1Gi"}}}
    server.create(
        "persistentvolumeclaims",
        {"metadata": {"name": "c1", "namespace": "default"}, "spec": {**modes, **wanted}},
    )
    server.create("pods", a_pod("low", cpu="900m"))


async def until(condition: Callable[[], bool]) -> None:
    """Wait until something holds in the store; the machine's own clock drives it."""
    async with asyncio.timeout(HANG_S):
        while not condition():  # noqa: ASYNC110 - the store is looked at from outside
            await asyncio.sleep(0.02)


def node_of(server: ApiServer, name: str) -> str:
    pod = server.get("pods", "default", name)
    return str(pod["spec"].get("nodeName", "")) if pod else "gone"


async def test_a_scheduler_with_these_rights_is_never_forbidden_anything(
    server: ApiServer, tmp_path: Path
) -> None:
    refusals = Refusals()
    fill(server)
    options = ConnectionOptions(kubeconfig=kubeconfig(server, tmp_path))
    session = await connect(options, observe=refusals.observe())
    configuration = default_configuration("asched")
    parts = Parts.fresh()
    runners = build_runners(configuration, parts)
    machine = build_machine(configuration, parts, runners, monotonic_s=lambda: 0.0)
    scheduler = Scheduler(session, machine)
    running = asyncio.ensure_future(scheduler.run())
    try:
        await until(lambda: node_of(server, "low") == "n1")
        server.create("pods", a_pod("high", cpu="900m", priorityClassName="high"))
        await until(lambda: node_of(server, "high") == "n1")  # by evicting low
        assert node_of(server, "low") == "gone"
        server.create("pods", a_pod("unfit", cpu="64"))
        await until(lambda: _condition(server, "unfit") == "Unschedulable")
        volumes = [{"name": "v", "persistentVolumeClaim": {"claimName": "c1"}}]
        server.create("pods", a_pod("stored", cpu="10m", volumes=volumes))
        await until(lambda: _is_claimed(server))
    finally:
        scheduler.stop()
        await running
    assert refusals.forbidden == []
    assert any(event["reason"] == "Scheduled" for event in server.list("events"))


def _condition(server: ApiServer, name: str) -> str:
    conditions = (server.get("pods", "default", name) or {})["status"].get("conditions") or ()
    return next((str(c.get("reason", "")) for c in conditions if c["type"] == "PodScheduled"), "")


def _is_claimed(server: ApiServer) -> bool:
    volume = server.get("persistentvolumes", "", "v1") or {}
    return "claimRef" in volume["spec"]


async def test_without_one_of_them_the_run_says_which(server: ApiServer, tmp_path: Path) -> None:
    """The test above can fail: take a right away and the server forbids."""
    role = server.get("clusterroles", "", "asched")
    assert role is not None
    role["rules"][:] = [rule for rule in role["rules"] if "nodes" not in rule["resources"]]
    session = await connect(ConnectionOptions(kubeconfig=kubeconfig(server, tmp_path)))
    try:
        reply = await session.general.request("GET", "/api/v1/nodes")
    finally:
        await session.close()
    assert reply.status == 403
