"""The doctor against an embedded API server: each ailment, its line and its cure."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml
from msgspec.structs import replace

from asched.core.config.defaults import configuration, default_configuration
from asched.core.config.v1 import LeaderElection
from asched.host.user_plugins.catalogue import discover
from asched.kube.session import ConnectionOptions
from asched.ops.doctor.checks import Examination, examine
from asched.ops.doctor.notes import Finding, Identity, State
from asched_lab.apiserver.call import User
from asched_lab.apiserver.faults import Fault
from asched_lab.apiserver.server import ApiServer
from tests.cli.programs import a_kubeconfig
from tests.deploy.manifests import DEPLOY, documents
from tests.kube.scripted import Seen, Wire, reply, scripted

ACCOUNT = "system:serviceaccount:asched-system:asched"
ELECTION = LeaderElection(resource_name="asched", resource_namespace="asched-system")
CONFIGURATION = replace(default_configuration("asched"), leader_election=ELECTION)
NOBODY = User("nobody", ("system:authenticated",))
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
    server = ApiServer(users={"nobody": NOBODY})
    await server.start(token="administrator")
    try:
        yield Clinic(server, tmp_path)
    finally:
        await server.stop()


def about(findings: list[Finding], check: str) -> list[Finding]:
    return [finding for finding in findings if finding.check == check]


def ailing(findings: list[Finding]) -> list[tuple[State, str, str]]:
    return [(f.state, f.check, f.text) for f in findings if f.state is not State.OK]


def stamp(seconds_ago: float) -> str:
    moment = datetime.now(UTC) - timedelta(seconds=seconds_ago)
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


async def test_an_installation_from_the_manifests_is_well(clinic: Clinic) -> None:
    clinic.install("namespace", "rbac", "rbac-serving", "flow", "deployment")
    clinic.server.create("", CATCH_ALL)
    assert ailing(await clinic.examine()) == []


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
                " nobody gets in at /metrics"
            ),
        ),
    ]


async def test_a_right_to_write_for_one_plugin_is_no_obstacle_to_starting(clinic: Clinic) -> None:
    clinic.install("namespace", "rbac", "rbac-serving")
    role = clinic.server.get("clusterroles", "", "asched")
    assert role is not None
    role["rules"] = [r for r in role["rules"] if "delete" not in r["verbs"] or len(r["verbs"]) > 1]
    found = ailing(about(await clinic.examine(), "permissions"))
    assert found == [(State.WARNING, "permissions", "DefaultPreemption: may not delete pods")]


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


async def test_rights_are_our_own_unless_another_account_is_named(clinic: Clinic) -> None:
    findings = await clinic.examine(other=None)
    assert ailing(about(findings, "permissions")) == []
    assert about(findings, "account")[0].text == 'the rights of "kubernetes-admin" are examined'


async def test_what_may_not_be_read_is_skipped_and_the_rest_is_told(clinic: Clinic) -> None:
    findings = await clinic.examine("nobody", other=None)
    skipped = {f.check for f in findings if f.state is State.SKIPPED}
    assert skipped == {"flow control", "lease", "scheduler name"}
    assert about(findings, "account")[0].text == 'the rights of "nobody" are examined'
    assert any(f.state is State.PROBLEM for f in about(findings, "permissions"))


async def test_several_names_are_looked_at_one_by_one(clinic: Clinic) -> None:
    clinic.install("namespace", "deployment")
    text = (DEPLOY / "base/scheduler.yaml").read_text(encoding="utf-8")
    metadata = {"name": "asched-config", "namespace": "asched-system"}
    clinic.server.create("configmaps", {"metadata": metadata, "data": {"config.yaml": text}})
    both = replace(
        CONFIGURATION,
        profiles=(*CONFIGURATION.profiles, *default_configuration("asched-packing").profiles),
    )
    texts = [f.text for f in about(await clinic.examine(configuration=both), "scheduler name")]
    assert texts == [
        '"asched" is served by asched-system/asched, the installation that is examined',
        'nobody else serves "asched-packing"',
    ]


async def test_the_shared_level_is_told(clinic: Clinic) -> None:
    clinic.server.create("", CATCH_ALL)
    texts = [f.text for f in about(await clinic.examine(), "flow control")]
    assert texts == [
        f'{what} are served in level "workload-low" by schema "service-accounts":'
        " behind everybody's controllers"
        for what in ("bindings", "lease renewals")
    ]


async def test_a_server_without_flow_control_is_passed_over(clinic: Clinic) -> None:
    (finding,) = about(await clinic.examine(), "flow control")
    assert finding.state is State.SKIPPED


def a_lease(
    clinic: Clinic, namespace: str, name: str, *, seconds_ago: float, holder: str = "host-1_abc"
) -> None:
    times = {"acquireTime": stamp(900), "renewTime": stamp(seconds_ago)}
    spec = {"holderIdentity": holder, "leaseDurationSeconds": 15, **times}
    metadata = {"name": name, "namespace": namespace}
    clinic.server.create("leases", {"metadata": metadata, "spec": spec})


async def test_a_lease_that_is_held_is_told_and_an_old_one_is_free(clinic: Clinic) -> None:
    clinic.install("namespace")
    a_lease(clinic, "asched-system", "asched", seconds_ago=3)
    a_lease(clinic, "asched-system", "old", seconds_ago=60)
    (held,) = about(await clinic.examine(), "lease")
    assert held.state is State.WARNING
    assert held.text.startswith('asched-system/asched is held by "host-1_abc", renewed 3 s ago')
    old = replace(CONFIGURATION, leader_election=replace(ELECTION, resource_name="old"))
    (free,) = about(await clinic.examine(configuration=old), "lease")
    assert free == Finding("lease", State.OK, "asched-system/old is free")


async def test_kube_schedulers_lease_is_not_ours_to_take(clinic: Clinic) -> None:
    taken = replace(CONFIGURATION, leader_election=LeaderElection())
    (finding,) = about(await clinic.examine(configuration=taken), "lease")
    assert finding.state is State.PROBLEM
    assert finding.text.startswith("kube-system/kube-scheduler is kube-scheduler's own lease")
    replacing = replace(default_configuration(), leader_election=LeaderElection())
    (finding,) = about(await clinic.examine(configuration=replacing), "lease")
    assert finding.state is State.OK


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


def installed_example(clinic: Clinic, **election: Any) -> None:
    for name in ("config", "deployment"):
        for manifest in documents(DEPLOY / "examples/my-scheduler" / f"{name}.yaml"):
            if manifest["kind"] == "ConfigMap":
                (file,) = manifest["data"]
                document = yaml.safe_load(manifest["data"][file])
                document["leaderElection"].update(election)
                manifest["data"][file] = yaml.safe_dump(document)
            clinic.server.create("", manifest)


async def test_an_installation_is_known_by_the_account_that_is_examined(clinic: Clinic) -> None:
    """Whoever forgets its file is told so, and not to delete what runs."""
    installed_example(clinic)
    mine = replace(default_configuration("my-scheduler"), leader_election=ELECTION)
    account = Identity.named("system:serviceaccount:kube-system:my-scheduler")
    (finding,) = about(await clinic.examine(configuration=mine, other=account), "scheduler name")
    assert finding.state is State.WARNING
    assert "the installation that is examined, but under lease kube-system/my-s" in finding.text
    assert "--config" in finding.cure
    same = replace(ELECTION, resource_namespace="kube-system", resource_name="my-scheduler")
    mine = replace(mine, leader_election=same)
    (finding,) = about(await clinic.examine(configuration=mine, other=account), "scheduler name")
    assert finding.state is State.OK
    (stranger,) = about(
        await clinic.examine(configuration=replace(mine, leader_election=ELECTION)),
        "scheduler name",
    )
    assert "--as=system:serviceaccount:kube-system:my-scheduler" in stranger.cure


async def test_an_installation_without_election_is_no_rival_of_itself(clinic: Clinic) -> None:
    installed_example(clinic, leaderElect=False)
    alone = replace(ELECTION, leader_elect=False)
    mine = replace(default_configuration("my-scheduler"), leader_election=alone)
    (finding,) = about(await clinic.examine(configuration=mine), "scheduler name")
    assert finding.state is State.OK
    (second,) = documents(DEPLOY / "examples/my-scheduler/deployment.yaml")
    second["metadata"]["name"] = "another"
    clinic.server.create("", second)
    found = about(await clinic.examine(configuration=mine), "scheduler name")
    assert [f.state for f in found] == [State.PROBLEM, State.PROBLEM]


async def test_replicas_of_the_installation_are_no_strangers(clinic: Clinic) -> None:
    """One holds the lease, the other placed pods before it."""
    clinic.install("namespace", "deployment")
    a_lease(clinic, "asched-system", "asched", seconds_ago=3, holder="asched-7d9f-x1_abc")
    an_event(clinic, "asched-asched-7d9f-x2", seconds_ago=10)
    findings = await clinic.examine()
    assert ailing(about(findings, "scheduler name")) == []
    (lease,) = about(findings, "lease")
    assert lease.state is State.OK
    assert lease.text.endswith(
        "a replica of asched-system/asched, the installation that is examined"
    )


async def test_a_deployment_that_is_switched_off_is_no_rival(clinic: Clinic) -> None:
    for name in ("config", "deployment"):
        for manifest in documents(DEPLOY / "examples/my-scheduler" / f"{name}.yaml"):
            if manifest["kind"] == "Deployment":
                manifest["spec"]["replicas"] = 0
            clinic.server.create("", manifest)
    mine = replace(default_configuration("my-scheduler"), leader_election=ELECTION)
    (finding,) = about(await clinic.examine(configuration=mine), "scheduler name")
    assert finding.state is State.OK


def an_event(clinic: Clinic, reporter: str, *, seconds_ago: float) -> None:
    time = stamp(seconds_ago)
    event = {
        "metadata": {"name": f"p.{reporter}.{seconds_ago}", "namespace": "default"},
        "involvedObject": {"kind": "Pod", "name": "p", "namespace": "default"},
        "eventTime": time,
        "reason": "Scheduled",
        "action": "Binding",
        "type": "Normal",
        "reportingComponent": "asched",
        "reportingInstance": reporter,
    }
    clinic.server.create("events", event)


async def test_fresh_placements_by_somebody_else_are_told(clinic: Clinic) -> None:
    clinic.install("namespace")
    an_event(clinic, "asched-host-2", seconds_ago=10)
    an_event(clinic, "asched-host-2", seconds_ago=100)
    an_event(clinic, "asched-host-3", seconds_ago=4000)
    found = ailing(about(await clinic.examine(), "scheduler name"))
    assert found == [
        (State.WARNING, "scheduler name", '"asched": asched-host-2 placed a pod 10 s ago')
    ]


async def test_the_holder_of_our_lease_is_no_stranger(clinic: Clinic) -> None:
    clinic.install("namespace")
    a_lease(clinic, "asched-system", "asched", seconds_ago=1)
    an_event(clinic, "asched-host-1", seconds_ago=10)
    assert ailing(about(await clinic.examine(), "scheduler name")) == []


async def test_without_election_a_second_replica_is_warned_of(clinic: Clinic) -> None:
    alone = replace(CONFIGURATION, leader_election=replace(ELECTION, leader_elect=False))
    findings = await clinic.examine(configuration=alone)
    (finding,) = about(findings, "lease")
    assert finding.state is State.WARNING
    assert not [f for f in about(findings, "permissions") if "leader election" in f.text]


@pytest.mark.parametrize(("offset_s", "said"), [(90.0, "ahead of"), (-90.0, "behind")])
async def test_a_clock_that_is_wrong_is_told(clinic: Clinic, offset_s: float, said: str) -> None:
    import time

    findings = await clinic.examine(clock_s=lambda: time.time() + offset_s)
    (finding,) = about(findings, "clock")
    assert finding.state is State.WARNING
    assert said in finding.text


async def test_a_server_that_is_not_there_is_one_problem(tmp_path: Path) -> None:
    connection = ConnectionOptions(master="http://127.0.0.1:1")
    (finding,) = await examine(Examination(CONFIGURATION, connection))
    assert (finding.check, finding.state) == ("reach", State.PROBLEM)
    assert "127.0.0.1:1" in finding.text


async def test_wrong_credentials_are_one_problem(clinic: Clinic) -> None:
    (finding,) = await clinic.examine("stranger")
    assert finding.text.endswith("answers, and does not accept the credentials")


async def test_something_else_at_the_address_is_told(clinic: Clinic) -> None:
    clinic.server.faults.add(Fault(path="/version", action="refuse", status=500))
    (finding,) = about(await clinic.examine(), "versions")
    assert finding.text == "/version answers 500 and no version"


@pytest.mark.real
async def test_a_real_api_server_is_examined(real_kubeconfig: str) -> None:
    connection = ConnectionOptions(kubeconfig=real_kubeconfig)
    findings = await examine(Examination(default_configuration("asched"), connection))
    told = {finding.check: finding.state for finding in findings if finding.check != "lease"}
    assert set(told.values()) == {State.OK}
    assert {"reach", "clock", "versions", "account", "kinds", "permissions", "flow control"} <= set(
        told
    )


async def test_pod_groups_are_missed_only_where_they_are_to_be_followed(clinic: Clinic) -> None:
    without = await clinic.examine()
    assert not [finding for finding in without if "podgroups" in finding.text]

    found = await clinic.examine(tries_groups=True)

    said = {finding.check: finding for finding in found if "podgroups" in finding.text}
    assert said["kinds"].state is State.WARNING
    assert "--runtime-config=scheduling.k8s.io/v1alpha2=true" in said["kinds"].cure
    assert said["permissions"].state is State.PROBLEM
    rights = "list, watch podgroups.scheduling.k8s.io; patch podgroups.scheduling.k8s.io/status"
    assert rights in said["permissions"].text
    assert "deploy/components/pod-groups" in said["permissions"].cure


async def test_groups_of_scheduler_plugins_are_missed_where_a_profile_wants_them(
    clinic: Clinic,
) -> None:
    plugins = {
        "multiPoint": {
            "enabled": [{"name": "Coscheduling"}],
            "disabled": [{"name": "PrioritySort"}],
        }
    }
    document = {"profiles": [{"schedulerName": "asched", "plugins": plugins}]}
    wants = replace(configuration(document), leader_election=ELECTION)

    found = await clinic.examine(configuration=wants)

    said = {finding.check: finding for finding in found if "podgroups" in finding.text}
    assert said["kinds"].state is State.WARNING
    assert "install the CRD of kubernetes-sigs/scheduler-plugins" in said["kinds"].cure
    assert said["permissions"].state is State.PROBLEM
    assert "deploy/components/coscheduling" in said["permissions"].cure

    found = await clinic.examine(configuration=wants, writes_statuses=True)

    (missing,) = [
        finding for finding in found if "podgroups.scheduling.x-k8s.io/status" in finding.text
    ]
    assert missing.state is State.WARNING
    assert missing.text.startswith("status controllers: may not patch")
    assert "deploy/components/status-controllers" in missing.cure


@pytest.mark.parametrize("answer", [{"status": [], "spec": 5}, {"items": [{"spec": 5}]}])
async def test_a_server_that_answers_with_something_else_is_told(
    answer: dict[str, Any], tmp_path: Path
) -> None:
    async def strange(_seen: Seen, _wire: Wire) -> bytes:
        return reply(200, answer)

    async with scripted(strange) as server:
        connection = ConnectionOptions(kubeconfig=a_kubeconfig(tmp_path, server.url)[13:])
        findings = await examine(Examination(CONFIGURATION, connection))
    told = [one.text for one in findings if "no API server would" in one.text]
    assert told
    assert not any("\n" in text for text in told)
