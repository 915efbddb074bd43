"""`asched doctor`: choose the installation to check.

Rules   without flags that say what to check, it is the installation that serves our name, else the
        only one; its flags, its file and its account are checked. With such flags it is the
        Deployment with the named account, or with the same lease and names. Several candidates are
        a warning, and none of them is checked.
"""

from collections.abc import Callable, Sequence
from typing import Final

from msgspec.structs import replace

from asched.core.config.v1 import SchedulerConfiguration
from asched.ops.doctor.notes import Finding, Identity, State, UnusableSettingsError
from asched.ops.doctor.rivals import lease_of
from asched.ops.doctor.workloads import ServedWorkload

INSTALLATION: Final = "installation"


#: The settings of a command line and the text of its configuration file. Raises
#: UnusableSettingsError.
Settings = Callable[[Sequence[str], str], SchedulerConfiguration]


def candidates(
    served: Sequence[ServedWorkload], wanted: frozenset[str], account: tuple[str, str] = ("", "")
) -> list[ServedWorkload]:
    """The installations that serve our names, else all of them; with an account, of this one."""
    ours = [workload for workload in served if workload.is_ours]
    if any(account):
        ours = [workload for workload in ours if workload.account == account]
    return [workload for workload in ours if wanted & workload.scheduler_names] or ours


def chosen(
    served: Sequence[ServedWorkload], wanted: frozenset[str], other: Identity | None
) -> tuple[list[ServedWorkload], list[Finding]]:
    """The installation to check if no flags name it, and what is to say about the choice."""
    found = candidates(served, wanted, other.service_account if other is not None else ("", ""))
    if len(found) <= 1:
        return found, []
    listed = ", ".join(workload.workload for workload in found)
    namespace, name = found[0].account
    cure = f"name its account, such as --as=system:serviceaccount:{namespace}:{name}, or --config"
    text = f"there are several, and none is checked: {listed}"
    return [], [Finding(INSTALLATION, State.WARNING, text, cure)]


def matching(
    served: Sequence[ServedWorkload], configuration: SchedulerConfiguration, other: Identity | None
) -> list[ServedWorkload]:
    """The workloads that run what flags or a file configure."""
    lease = lease_of(configuration)
    wanted = {profile.scheduler_name for profile in configuration.profiles}
    ours = [
        candidate
        for candidate in served
        if candidate.is_ours and wanted & candidate.scheduler_names
    ]
    account = other.service_account if other is not None else ("", "")
    if any(account):
        named = [candidate for candidate in ours if candidate.account == account]
        if named:
            return named
    if lease is not None:
        return [candidate for candidate in ours if candidate.lease == lease]
    return ours if len(ours) == 1 and ours[0].lease is None else []


def settings_of(
    workload: ServedWorkload, settings: Settings, configuration: SchedulerConfiguration
) -> tuple[SchedulerConfiguration, Finding]:
    """The configuration of an installation; of one that cannot be read, its lease and names."""
    text = f"{workload.workload} is checked, with its flags, its file and its account"
    try:
        return settings(workload.words, workload.text), Finding(INSTALLATION, State.OK, text)
    except UnusableSettingsError as error:
        problem = str(error)
    election = replace(configuration.leader_election, leader_elect=workload.lease is not None)
    if workload.lease is not None:
        namespace, name = workload.lease
        election = replace(election, resource_namespace=namespace, resource_name=name)
    profiles = tuple(
        replace(configuration.profiles[0], scheduler_name=name)
        for name in sorted(workload.scheduler_names)
    )
    guessed = replace(configuration, leader_election=election, profiles=profiles)
    if any(word.startswith("--plugin") for word in workload.words):
        cure = "give the doctor its file as --config, with --plugin or --plugin-dir"
        text = f"{workload.workload} has plugins of its own, which are not here: {problem}"
        return guessed, Finding(INSTALLATION, State.WARNING, text, cure)
    text = f"{workload.workload} cannot start: {problem}"
    cure = "correct its flags or its ConfigMap (asched config check FILE)"
    return guessed, Finding(INSTALLATION, State.PROBLEM, text, cure)
