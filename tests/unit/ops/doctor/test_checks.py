"""The doctor against an embedded API server: each ailment, its line and its cure."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from asched.core.config.defaults import configuration, default_configuration
from asched.core.config.layout import layout_of
from asched.core.config.v1 import LeaderElection
from asched.host.user_plugins.catalogue import discover
from asched.kube.session import ConnectionOptions
from asched.ops.doctor.checks import Examination, examine
from asched.ops.doctor.notes import Finding, Identity, State
from asched_lab.apiserver.call import User
from asched_lab.apiserver.resources import POD_GROUPS, PODS, find
from asched_lab.apiserver.server import ApiServer
from tests.deploy.manifests import DEPLOY, documents
from tests.unit.cli.programs import a_kubeconfig
from tests.unit.kube.scripted import Seen, Wire, reply, scripted

ACCOUNT = "system:serviceaccount:asched-system:asched"
ELECTION = LeaderElection(resource_name="asched", resource_namespace="asched-system")
CONFIGURATION = replace(default_configuration("asched"), leader_election=ELECTION)
NOBODY = User("nobody", ("system:authenticated",))
SCHEDULER = User(ACCOUNT, ("system:authenticated",))
CATCH_ALL = {
    "apiVersion": "flowcontrol.apiserver.k8s.io/v1",
    "kind": "FlowSchema",
    "metadata": {"name": "service-accounts"},
    "spec": {
        "priorityLevelConfiguration": {"name": "workload-low"},
        "matchingPrecedence": 9000,
        "rules": [
            {
                "subjects": [{"kind": "Group", "group": {"name": "system:serviceaccounts"}}],
                "resourceRules": [
                    {
                        "verbs": ["*"],
                        "apiGroups": ["*"],
                        "resources": ["*"],
                        "namespaces": ["*"],
                        "clusterScope": True,
                    }
                ],
            }
        ],
    },
}


class Clinic:
    """A server, and examinations against it."""

    def __init__(self, server: ApiServer, folder: Path) -> None:
        self.server = server
        self._folder = folder

    def install(self, *names: str) -> None:
        """Create the objects of files of deploy/base."""
        for name in names:
            for manifest in documents(DEPLOY / "base" / f"{name}.yaml"):
                self.server.create("", manifest)

    async def examine(self, token: str = "administrator", **changes: Any) -> list[Finding]:
        path = self._folder / f"{token}.kubeconfig"
        path.write_text(self.server.kubeconfig().replace("administrator", token))
        values: dict[str, Any] = {
            "configuration": CONFIGURATION,
            "connection": ConnectionOptions(kubeconfig=str(path)),
            "other": Identity.named(ACCOUNT),
        }
        return await examine(Examination(**{**values, **changes}))


@pytest.fixture
async def clinic(tmp_path: Path) -> AsyncIterator[Clinic]:
    server = ApiServer(users={"nobody": NOBODY, "scheduler": SCHEDULER})
    await server.start(token="administrator")
    try:
        yield Clinic(server, tmp_path)
    finally:
        await server.stop()


def about(findings: list[Finding], check: str) -> list[Finding]:
    return [finding for finding in findings if finding.check == check]


def ailing(findings: list[Finding]) -> list[tuple[State, str, str]]:
    return [(f.state, f.check, f.text) for f in findings if f.state is not State.OK]


async def test_every_finding_that_is_not_fine_has_a_cure(clinic: Clinic) -> None:
    clinic.server.create("", CATCH_ALL)
    findings = [*await clinic.examine(), *await clinic.examine("nobody", other=None)]
    assert any(f.state is State.PROBLEM for f in findings)
    assert all(f.cure for f in findings if f.state is not State.OK)


async def test_missing_rights_are_told_by_plugin(clinic: Clinic) -> None:
    clinic.install("namespace", "rbac")
    role = clinic.server.get("clusterroles", "", "asched")
    assert role is not None
    role["rules"] = [r for r in role["rules"] if "persistentvolumes" not in r["resources"]]
    findings = about(await clinic.examine(), "permissions")
    assert ailing(findings) == [
        (
            State.PROBLEM,
            "permissions",
            (
                "VolumeBinding: may not list, watch, patch persistentvolumes;"
                " list, watch, patch persistentvolumeclaims"
            ),
        ),
        (
            State.WARNING,
            "permissions",
            (
                "serving: may not create tokenreviews.authentication.k8s.io;"
                " create subjectaccessreviews.authorization.k8s.io; get, list, watch configmaps"
                ' "extension-apiserver-authentication" in namespace kube-system;'
                " no client is authorized to read /metrics"
            ),
        ),
    ]


async def test_rights_to_a_lease_that_our_manifests_do_not_grant(clinic: Clinic) -> None:
    """deploy/base grants those in asched-system only."""
    clinic.install("namespace", "rbac", "rbac-serving")
    elsewhere = replace(ELECTION, resource_namespace="kube-system")
    checked = replace(CONFIGURATION, leader_election=elsewhere)
    found = about(await clinic.examine(configuration=checked), "permissions")
    (finding,) = [finding for finding in found if finding.state is not State.OK]
    assert finding.text.startswith("leader election: may not get, update leases.coordination")
    assert "a Role and a RoleBinding in namespace kube-system" in finding.cure
    assert "--leader-elect-resource-namespace" in finding.cure


QUOTAS = """
class Quotas:
    rbac_rules = [
        {"apiGroups": ["acme.example"], "resources": ["quotas"], "verbs": ["get", "list"]},
    ]

    def filter(self, pod, node): ...
"""


async def test_what_a_users_plugin_declares_is_asked_for_if_a_profile_enables_it(
    clinic: Clinic, tmp_path: Path
) -> None:
    clinic.install("namespace", "rbac", "rbac-serving")
    (tmp_path / "quotas.py").write_text(QUOTAS)
    plugins = discover([str(tmp_path / "quotas.py")])
    own = {"known": plugins.known, "rights_of": plugins.rights_of}
    assert ailing(about(await clinic.examine(**own), "permissions")) == []

    profile = {"plugins": {"multiPoint": {"enabled": [{"name": "Quotas"}]}}}
    enabled = replace(configuration({"profiles": [profile]}), leader_election=ELECTION)
    found = about(await clinic.examine(configuration=enabled, **own), "permissions")
    (finding,) = [finding for finding in found if finding.state is not State.OK]
    assert (finding.state, finding.text) == (
        State.WARNING,
        "Quotas: may not get, list quotas.acme.example; its pods may fail",
    )
    assert finding.cure == (
        "grant it: rbac_rules of the plugin are the rules of a role for this account"
    )


async def test_another_deployment_of_our_name_is_a_problem(clinic: Clinic) -> None:
    """The example's scheduler reads its name from a ConfigMap; ours would be the second."""
    for name in ("config", "deployment"):
        for manifest in documents(DEPLOY / "examples/my-scheduler" / f"{name}.yaml"):
            clinic.server.create("", manifest)
    mine = replace(default_configuration("my-scheduler"), leader_election=ELECTION)
    (finding,) = about(await clinic.examine(configuration=mine), "scheduler name")
    assert (finding.state, finding.text) == (
        State.PROBLEM,
        (
            '"my-scheduler" is served by kube-system/my-scheduler too, under lease'
            " kube-system/my-scheduler: both would bind its pods"
        ),
    )
    assert about(await clinic.examine(), "scheduler name")[0].state is State.OK


async def test_a_server_that_is_not_there_is_one_problem(tmp_path: Path) -> None:
    connection = ConnectionOptions(master="http://127.0.0.1:1")
    (finding,) = await examine(Examination(CONFIGURATION, connection))
    assert (finding.check, finding.state) == ("reach", State.PROBLEM)
    assert "127.0.0.1:1" in finding.text


@pytest.mark.real
async def test_a_real_api_server_is_examined(real_kubeconfig: str) -> None:
    connection = ConnectionOptions(kubeconfig=real_kubeconfig)
    findings = await examine(Examination(default_configuration("asched"), connection))
    told = {finding.check: finding.state for finding in findings if finding.check != "lease"}
    assert set(told.values()) == {State.OK}
    assert {"reach", "clock", "versions", "account", "kinds", "permissions", "flow control"} <= set(
        told
    )


@pytest.mark.parametrize("answer", [{"status": [], "spec": 5}, {"items": [{"spec": 5}]}])
async def test_a_server_that_answers_with_something_else_is_told(
    answer: dict[str, Any], tmp_path: Path
) -> None:
    async def strange(_seen: Seen, _wire: Wire) -> bytes:
        return reply(200, answer)

    async with scripted(strange) as server:
        connection = ConnectionOptions(kubeconfig=a_kubeconfig(tmp_path, server.url)[13:])
        findings = await examine(Examination(CONFIGURATION, connection))
    told = [one.text for one in findings if "not that of an API server" in one.text]
    assert told
    assert not any("\n" in text for text in told)


def autoscaler(image: str, *args: str, env: tuple[str, ...] = ()) -> dict[str, Any]:
    variables = [{"name": name, "value": "x"} for name in env]
    container = {"name": "c", "image": image, "args": list(args), "env": variables}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "scaler", "namespace": "kube-system"},
        "spec": {
            "selector": {"matchLabels": {"a": "b"}},
            "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [container]}},
        },
    }


SPREAD = {
    "name": "PodTopologySpread",
    "args": {
        "defaultingType": "List",
        "defaultConstraints": [
            {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}
        ],
    },
}
CA = "registry.k8s.io/autoscaling/cluster-autoscaler:v1.36.0"
KARPENTER = "public.ecr.aws/karpenter/controller:1.9.0@sha256:0"


@pytest.mark.parametrize(
    ("image", "args", "env", "wrong"),
    [
        (CA, ("--allowed-scheduler-names=default-scheduler,x",), (), ["lacks asched"]),
        (CA, ("--allowed-scheduler-names=x", "--allowed-scheduler-names=asched"), (), []),
        (CA, ("--bypassed-scheduler-names=asched",), (), ["not been tried yet"]),
        ("example.com/busybox", ("--allowed-scheduler-names=x",), (), None),
        (KARPENTER, (), (), []),
    ],
)
async def test_flags_of_an_autoscaler(
    clinic: Clinic, image: str, args: tuple[str, ...], env: tuple[str, ...], wrong: list[str] | None
) -> None:
    clinic.server.create("", autoscaler(image, *args, env=env))
    found = about(await clinic.examine(), "autoscaler")
    if wrong is None:
        assert found == []
    elif wrong:
        (finding,) = found
        assert finding.state is State.WARNING
        assert wrong[0] in finding.text
    else:
        assert [f.state for f in found] == [State.OK]


@pytest.mark.parametrize(
    ("image", "args", "is_served"),
    [
        (CA, (), False),
        (CA, ("--enable-provisioning-requests",), True),
        (CA, ("--enable-provisioning-requests=false",), False),
        (KARPENTER, (), False),
    ],
)
async def test_an_autoscaler_serves_the_requests_of_gangs(
    clinic: Clinic, image: str, args: tuple[str, ...], is_served: bool
) -> None:
    multi_point = {"enabled": [{"name": "GroupScaleUp"}]}
    profile = {"schedulerName": "asched", "plugins": {"multiPoint": multi_point}}
    asking = replace(configuration({"profiles": [profile]}), leader_election=ELECTION)
    clinic.server.create("", autoscaler(image, *args))
    (found,) = about(await clinic.examine(configuration=asking), "autoscaler")
    assert found.state is (State.OK if is_served else State.WARNING)
    assert ("request of GroupScaleUp" in found.text) is not is_served


@pytest.mark.parametrize(
    ("image", "args", "env", "is_given"),
    [
        (CA, (), (), False),
        (CA, ("--scheduler-config-file=/x",), (), True),
        (KARPENTER, (), (), False),
        (KARPENTER, (), ("SCHEDULER_CONFIG",), True),
    ],
)
async def test_an_autoscaler_is_given_the_profile(
    clinic: Clinic, image: str, args: tuple[str, ...], env: tuple[str, ...], is_given: bool
) -> None:
    profile = {"schedulerName": "asched", "pluginConfig": [SPREAD]}
    spread = replace(configuration({"profiles": [profile]}), leader_election=ELECTION)
    clinic.server.create("", autoscaler(image, *args, env=env))
    (found,) = about(await clinic.examine(configuration=spread), "autoscaler")
    assert found.state is (State.OK if is_given else State.WARNING)
    assert ("asched config export --for" in found.cure) is not is_given
    (found,) = about(await clinic.examine(), "autoscaler")
    assert found.state is State.OK, "kube-scheduler's defaults need no file"


POOLS = [
    {"name": "a", "namespaces": ["one"], "nodeSelector": {"kind": "a"}},
    {"name": "b", "namespaceSelector": {"matchLabels": {"team": "b"}}},
]


@pytest.mark.parametrize(
    ("node_labels", "namespace_labels", "said"),
    [
        (
            {"kind": "a", "asched.dev/pool": "b"},
            {},
            "a node of several pools takes no pod: n (a, b)",
        ),
        (
            {"kind": "a"},
            {"team": "b"},
            "a namespace of several pools has no pod placed: one (a, b)",
        ),
        ({"kind": "a"}, {}, "pool b has no node"),
        ({"asched.dev/pool": "b"}, {}, "pool a has no node"),
    ],
)
async def test_what_the_pools_select(
    clinic: Clinic, node_labels: dict[str, str], namespace_labels: dict[str, str], said: str
) -> None:
    for kind, name, labels in (
        ("Node", "n", node_labels),
        ("Namespace", "one", namespace_labels),
        ("Namespace", "two", {"team": "b"}),
    ):
        metadata = {"name": name, "labels": labels}
        clinic.server.create("", {"apiVersion": "v1", "kind": kind, "metadata": metadata})
    with_pools = configuration({"pools": POOLS})
    found = about(await clinic.examine(configuration=with_pools), "pools")
    assert said in [finding.text for finding in found]
    assert not about(await clinic.examine(), "pools")


async def test_pods_that_wait_for_a_rule_across_pools(clinic: Clinic) -> None:
    with_pools = replace(CONFIGURATION, pools=configuration({"pools": POOLS}).pools)

    async def said() -> list[Finding]:
        findings = about(await clinic.examine(configuration=with_pools), "pools")
        return [finding for finding in findings if "across pools" in finding.text]

    container = {"name": "c", "image": "i"}
    message = (
        "0/2 nodes are available: rule of InterPodAffinity concerns pods of other pools; these"
        " namespaces have to share a pool: one, two."
    )
    clinic.server.create("", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "one"}})
    for name in "abc":
        spec = {"schedulerName": "asched", "containers": [container]}
        clinic.server.create("", a_document("Pod", name, "one", spec=spec))
    assert not await said()
    for name in "ab":
        pod = clinic.server.get("pods", "one", name)
        assert pod is not None
        condition = {"type": "PodScheduled", "status": "False", "message": message}
        clinic.server.ctx.put(PODS, {**pod, "status": {"conditions": [condition]}})
    (found,) = await said()
    assert found.state is State.WARNING
    assert found.text.startswith("2 waiting pods have a rule across pools; one/a: rule of InterPod")


ZONE, HOST = "topology.kubernetes.io/zone", "kubernetes.io/hostname"
WITH_POOLS = replace(CONFIGURATION, pools=configuration({"pools": POOLS}).pools)
SHARE = "rule of InterPodAffinity concerns pods of other pools; these namespaces have to share a"


def a_rule(kind: str = "podAntiAffinity", key: str = ZONE, **term: Any) -> dict[str, Any]:
    """What a pod with the label app=x requires of others with it."""
    term = {"topologyKey": key, "labelSelector": {"matchLabels": {"app": "x"}}, **term}
    return {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


WIDE = a_rule(namespaces=["one", "two"])


def a_spec(affinity: dict[str, Any], **more: Any) -> dict[str, Any]:
    containers = [{"name": "c", "image": "i"}]
    return {"schedulerName": "asched", "containers": containers, "affinity": affinity, **more}


def a_workload(
    kind: str, name: str, affinity: dict[str, Any], namespace: str = "one", **more: Any
) -> dict[str, Any]:
    labels = {"app": "x"}
    pod = {"metadata": {"labels": labels}, "spec": a_spec(affinity, **more)}
    spec: dict[str, Any] = {"template": pod}
    if kind in ("Job", "CronJob"):
        pod["spec"]["restartPolicy"] = "Never"
    else:
        spec["selector"] = {"matchLabels": labels}
    if kind == "StatefulSet":
        spec["serviceName"] = name
    if kind == "CronJob":
        spec = {"schedule": "0 1 * * *", "jobTemplate": {"spec": spec}}
    version = "batch/v1" if kind in ("Job", "CronJob") else "apps/v1"
    metadata = {"name": name, "namespace": namespace}
    return {"apiVersion": version, "kind": kind, "metadata": metadata, "spec": spec}


def with_namespaces(clinic: Clinic) -> None:
    """One for each pool, and one that is in no pool of the configuration."""
    for name, labels in (("one", {}), ("two", {"team": "b"}), ("web", {})):
        metadata = {"name": name, "labels": labels}
        clinic.server.create("", {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})


async def found_rules(clinic: Clinic) -> list[Finding]:
    findings = about(await clinic.examine(configuration=WITH_POOLS), "pools")
    return [finding for finding in findings if "new pods would wait" in finding.text]


@pytest.mark.parametrize("kind", ["Deployment", "StatefulSet", "DaemonSet", "CronJob", "Job"])
async def test_a_workload_with_a_rule_across_pools(clinic: Clinic, kind: str) -> None:
    with_namespaces(clinic)
    clinic.server.create("", a_workload(kind, "w", WIDE))
    clinic.server.create("", a_workload(kind, "of-another", WIDE, schedulerName="another"))
    (found,) = await found_rules(clinic)
    assert found.state is State.WARNING
    name = f"{kind.lower()} one/w"
    why = f"{SHARE} pool: one, two"
    said = f"new pods would wait for a rule across pools, as for {name}; {name}: {why}"
    assert found.text == said
    assert "give one pool to namespaces one, two; or change the rule" in found.cure


@pytest.mark.parametrize(
    ("affinity", "to_share"),
    [
        (a_rule(), ""),
        (a_rule(key=HOST, namespaces=["one", "two"]), ""),
        (a_rule(namespaceSelector={"matchLabels": {"team": "b"}}), "namespaces one, two;"),
        (a_rule(namespaces=["web", "two"]), "namespaces one, two, web;"),
        (a_rule(namespaceSelector={}), "all namespaces;"),
        (a_rule("podAffinity", namespaces=["one", "two"]), "namespaces one, two;"),
        (a_rule("podAffinity", namespaces=["two"]), ""),
        (
            a_rule(
                "podAffinity",
                namespaces=["one", "two"],
                labelSelector={"matchLabels": {"app": "y"}},
            ),
            "",
        ),
    ],
    ids=[
        "own namespace",
        "of the node",
        "selected",
        "named",
        "every namespace",
        "affinity",
        "affinity to other namespaces",
        "affinity to other pods",
    ],
)
async def test_which_namespaces_have_to_share_a_pool(
    clinic: Clinic, affinity: dict[str, Any], to_share: str
) -> None:
    with_namespaces(clinic)
    clinic.server.create("", a_workload("Deployment", "w", affinity))
    found = await found_rules(clinic)
    assert len(found) == bool(to_share)
    assert not found or f"give one pool to {to_share}" in found[0].cure


async def test_running_pods_with_a_rule_across_pools(clinic: Clinic) -> None:
    """Those of a workload that is named are not named, nor those that have ended."""
    with_namespaces(clinic)

    def create(name: str, namespace: str, **status: Any) -> None:
        pod = a_document("Pod", name, namespace, spec=a_spec(WIDE, nodeName="n"))
        made = clinic.server.create("", pod)
        clinic.server.ctx.put(PODS, {**made, "status": {**made["status"], **status}})

    create("a", "one")
    create("b", "one", phase="Succeeded")
    (found,) = await found_rules(clinic)
    assert "as for pod one/a; pod one/a: rule of InterPodAffinity" in found.text
    clinic.server.create("", a_workload("Deployment", "w", WIDE))
    create("c", "two")
    (found,) = await found_rules(clinic)
    assert "as for deployment one/w, pod two/c; deployment one/w: rule of" in found.text
    assert "give one pool to namespaces one, two; to namespaces two, one; or" in found.cure


@pytest.mark.parametrize("key", [ZONE, HOST])
async def test_a_daemon_set_that_a_rule_of_others_selects(clinic: Clinic, key: str) -> None:
    """Its pods belong to the pools of their nodes, those with the rule to their namespace's."""
    with_namespaces(clinic)
    clinic.server.create("", a_workload("DaemonSet", "agent", {}))
    clinic.server.create("", a_workload("Deployment", "w", a_rule(key=key)))
    found = about(await clinic.examine(configuration=WITH_POOLS), "pools")
    warnings = [finding for finding in found if "pinned to nodes" in finding.text]
    assert len(warnings) == (key == ZONE)
    assert all("daemonset one/agent (by deployment one/w)" in w.text for w in warnings)


async def test_few_of_many_workloads_are_named(clinic: Clinic) -> None:
    with_namespaces(clinic)
    for number in range(7):
        clinic.server.create("", a_workload("Job", f"j{number}", WIDE))
    (found,) = await found_rules(clinic)
    assert "job one/j4 and 2 more; job one/j0: rule of" in found.text


async def test_a_job_that_has_ended_makes_no_more_pods(clinic: Clinic) -> None:
    with_namespaces(clinic)
    made = clinic.server.create("", a_workload("Job", "j", WIDE))
    assert await found_rules(clinic)
    conditions = [{"type": "Complete", "status": "True"}]
    clinic.server.ctx.put(find("jobs"), {**made, "status": {"conditions": conditions}})
    assert not await found_rules(clinic)


async def test_workloads_that_may_not_be_read_are_skipped(clinic: Clinic) -> None:
    """The scheduler's own account may read StatefulSets, but no Deployments."""
    with_namespaces(clinic)
    clinic.install("namespace", "rbac")
    clinic.server.create("", a_workload("StatefulSet", "w", WIDE))
    findings = await clinic.examine("scheduler", configuration=WITH_POOLS, other=None)
    (skipped,) = (f for f in about(findings, "pools") if f.state is State.SKIPPED)
    assert skipped.text.startswith("may not read deployments, daemonsets, cronjobs, jobs: ")
    assert "run the doctor as a user who may read deployments" in skipped.cure
    assert any("as for statefulset one/w" in finding.text for finding in findings)


@pytest.mark.parametrize(
    ("slices", "is_shared"),
    [
        ([{"nodeName": "n"}], False),
        ([{"allNodes": True}], True),
        ([{"nodeName": "n"}, {"nodeName": "m"}], False),
        (
            [
                {
                    "nodeName": "n",
                    "sharedCounters": [{"name": "c", "counters": {"x": {"value": "1"}}}],
                },
                {"nodeName": "m"},
            ],
            True,
        ),
    ],
    ids=["of one node", "of all nodes", "of two nodes", "counters of two nodes"],
)
async def test_a_running_pod_with_a_device_of_several_nodes(
    clinic: Clinic, slices: list[dict[str, Any]], is_shared: bool
) -> None:
    with_namespaces(clinic)
    version = "resource.k8s.io/v1"
    for number, fields in enumerate(slices):
        pool = {"name": "p", "generation": 1, "resourceSliceCount": len(slices)}
        spec: dict[str, Any] = {"driver": "d.example.com", "pool": pool, **fields}
        if "sharedCounters" not in fields:
            spec["devices"] = [{"name": f"device-{number}"}]
        metadata = {"name": f"s{number}"}
        document = {"apiVersion": version, "kind": "ResourceSlice", "metadata": metadata}
        clinic.server.create("", {**document, "spec": spec})
    exactly = {"deviceClassName": "d", "allocationMode": "ExactCount", "count": 1}
    made = clinic.server.create(
        "",
        {
            "apiVersion": version,
            "kind": "ResourceClaim",
            "metadata": {"name": "c", "namespace": "one"},
            "spec": {"devices": {"requests": [{"name": "r", "exactly": exactly}]}},
        },
    )
    result = {"request": "r", "driver": "d.example.com", "pool": "p", "device": "device-0"}
    status = {"allocation": {"devices": {"results": [result]}}}
    clinic.server.ctx.put(find("resourceclaims"), {**made, "status": status})
    claims = [{"name": "c", "resourceClaimName": "c"}]
    spec = a_spec({}, nodeName="n", resourceClaims=claims)
    clinic.server.create("", a_document("Pod", "a", "one", spec=spec))
    found = await found_rules(clinic)
    assert len(found) == is_shared
    for finding in found:
        assert "pod one/a: rule of DynamicResources may concern pods of any" in finding.text


@pytest.mark.parametrize(("of_other_pool", "count"), [(False, 0), (True, 1)])
async def test_quotas_of_several_pools(clinic: Clinic, of_other_pool: bool, count: int) -> None:
    plugins = {"multiPoint": {"enabled": [{"name": "CapacityScheduling"}]}}
    profiles = [{"schedulerName": "asched", "plugins": plugins}]
    with_quotas = configuration({"pools": POOLS, "profiles": profiles})
    clinic.server.ctx.alpha |= POD_GROUPS
    for name, labels in (("one", {}), ("two", {"team": "b"}), ("three", {"team": "b"})):
        metadata = {"name": name, "labels": labels}
        clinic.server.create("", {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
    for name in ("one" if of_other_pool else "two", "three"):
        clinic.server.create("", a_document("ElasticQuota", "q", name, spec={"max": {"cpu": "1"}}))
    findings = about(await clinic.examine(configuration=with_quotas), "pools")
    found = [finding for finding in findings if "ElasticQuotas" in finding.text]
    assert len(found) == count
    for finding in found:
        assert finding.state is State.PROBLEM
        assert finding.text.endswith("several pools: one (a), three (b)")


def a_document(kind: str, name: str, namespace: str, **more: Any) -> dict[str, Any]:
    version = "v1" if kind == "Pod" else "scheduling.x-k8s.io/v1alpha1"
    metadata = {"name": name, "namespace": namespace}
    return {"apiVersion": version, "kind": kind, "metadata": metadata, **more}


def held_lease(name: str, holder: str) -> dict[str, Any]:
    now = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%S.%fZ}"
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": name, "namespace": ELECTION.resource_namespace},
        "spec": {"holderIdentity": holder, "leaseDurationSeconds": 15, "renewTime": now},
    }


async def test_who_holds_the_pools_that_replicas_share(clinic: Clinic) -> None:
    shared = configuration({"pools": POOLS, "poolLeases": True})
    shared = replace(shared, leader_election=ELECTION)
    clinic.install("namespace")
    clinic.server.create("", held_lease("asched", f"pools-{layout_of(shared)}"))
    clinic.server.create("", held_lease("asched-pool-a", "one_1#1"))
    findings = await clinic.examine(configuration=shared)
    (lease,) = about(findings, "lease")
    assert lease.state is State.OK
    texts = {finding.text.partition(",")[0]: finding.state for finding in about(findings, "pools")}
    assert texts["pool a is held by one_1"] is State.OK
    assert texts["no replica holds pool b (asched-pool-b)"] is State.PROBLEM
    assert texts["no replica holds pool default (asched-pool-default)"] is State.PROBLEM


async def test_replicas_with_other_pools_decide(clinic: Clinic) -> None:
    shared = configuration({"pools": POOLS, "poolLeases": True})
    clinic.install("namespace")
    clinic.server.create("", held_lease("asched", "pools-another"))
    for checked in (shared, configuration({})):
        findings = await clinic.examine(configuration=replace(checked, leader_election=ELECTION))
        (lease,) = about(findings, "lease")
        assert lease.state is State.PROBLEM
        assert "none of this one decides" in lease.text
