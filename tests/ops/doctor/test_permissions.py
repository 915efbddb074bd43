"""The table of rights, by configuration."""

from asched import names
from asched.core.config.v1 import LeaderElection
from asched.core.model.kinds import KINDS
from asched.ops.doctor.permissions import LEADER_ELECTION, READERS, SERVING, Right, needed

ELECTION = LeaderElection(resource_namespace="ns", resource_name="l")


def purposes(*plugins: str, election: LeaderElection = ELECTION, serving: bool = True) -> set[str]:
    return {need.purpose for need in needed(plugins, election, is_serving=serving)}


def test_every_kind_we_watch_is_read_by_somebody() -> None:
    assert set(READERS) == set(KINDS)
    watched = {n.right.resource for n in needed((), ELECTION) if n.right.verb == "watch"}
    assert {kind.plural for kind in KINDS} <= watched


def test_writes_follow_the_plugins() -> None:
    evict = Right("delete", "", "pods")
    assert evict not in {need.right for need in needed((), ELECTION)}
    assert evict in {need.right for need in needed([names.DEFAULT_PREEMPTION], ELECTION)}


def test_pod_groups_are_read_only_where_gangs_are_known() -> None:
    group = "scheduling.k8s.io"
    follow = {Right(verb, group, "podgroups") for verb in ("list", "watch")}
    follow.add(Right("patch", group, "podgroups/status"))
    assert not follow & {need.right for need in needed((), ELECTION)}
    assert follow <= {need.right for need in needed([names.GANG_SCHEDULING], ELECTION)}
    assert follow <= {need.right for need in needed((), ELECTION, tries_groups=True)}


def test_what_a_users_plugin_declares_is_needed_where_it_is_enabled() -> None:
    own = {"Quotas": (Right("get", "acme.example", "quotas"), Right("list", "", "pods"))}
    found = {need.right: need for need in needed(["Quotas"], ELECTION, own=own)}
    assert found[Right("get", "acme.example", "quotas")].purpose == "Quotas"
    assert found[Right("get", "acme.example", "quotas")].is_own
    assert not found[Right("list", "", "pods")].is_own  # needed anyway
    assert not any(need.is_own for need in needed([], ELECTION, own=own))


def test_no_right_is_asked_twice() -> None:
    rights = [need.right for need in needed(READERS.values(), ELECTION)]
    assert len(rights) == len(set(rights))


def test_the_lease_and_the_port_cost_rights_only_if_they_are_used() -> None:
    off = LeaderElection(leader_elect=False)
    assert {LEADER_ELECTION, SERVING} <= purposes()
    assert LEADER_ELECTION not in purposes(election=off)
    assert SERVING not in purposes(serving=False)


def test_a_right_reads_like_a_command() -> None:
    right = Right("update", "coordination.k8s.io", "leases", "ns", "l")
    assert str(right) == 'update leases.coordination.k8s.io "l" in namespace ns'
    assert str(Right("create", "", "pods/binding")) == "create pods/binding"
