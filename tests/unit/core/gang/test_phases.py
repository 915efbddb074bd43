"""The status of a PodGroup, row by row of the table, and from the first sight to the end."""

from random import Random

import pytest

from asched.core.model.decode import decode
from asched.core.model.workload import CoschedulingGroup, CoschedulingStatus
from asched.ops.group_status import MemberPhase, next_status
from tests.builders import a_pod


def a_group(phase: str = "", minimum: int = 3, **status: object) -> CoschedulingGroup:
    return decode(
        CoschedulingGroup,
        {
            "metadata": {"name": "crew", "namespace": "ns"},
            "spec": {"minMember": minimum},
            "status": {"phase": phase, **status},
        },
    )


def members(text: str) -> list[MemberPhase]:
    """`P`ending, `R`unning, `S`ucceeded, `F`ailed."""
    phases = {"P": "Pending", "R": "Running", "S": "Succeeded", "F": "Failed"}
    return [MemberPhase(phases[letter], ("job-b", "job-a")) for letter in text]


#: (phase before, pods, phase after), minMember 3
CASES = [
    ("", "", "Pending"),
    ("", "RRR", "Pending"),
    ("Pending", "PP", "Pending"),
    ("Pending", "PPP", "Scheduling"),
    ("Pending", "SSS", "Scheduling"),
    ("Scheduling", "PP", "Pending"),
    ("Scheduling", "PPP", "Scheduling"),
    ("Scheduling", "PRR", "Scheduling"),
    ("Scheduling", "RRR", "Running"),
    ("Scheduling", "SRR", "Running"),
    ("Running", "PRRS", "Running"),
    ("Running", "PPRR", "Scheduling"),
    ("Running", "RR", "Pending"),
    ("Running", "FF", "Pending"),
    ("Running", "FRR", "Failed"),
    ("Running", "FPP", "Scheduling"),
    ("Running", "FSSS", "Finished"),
    ("Scheduling", "SSS", "Finished"),
    ("Finished", "FFF", "Finished"),
    ("Failed", "SSS", "Failed"),
    ("PreScheduling", "RRR", "Running"),
    ("Scheduled", "PPP", "Scheduling"),
    ("Unknown", "RRR", "Running"),
]


@pytest.mark.parametrize(("before", "pods", "after"), CASES)
def test_one_look_makes_one_step(before: str, pods: str, after: str) -> None:
    assert next_status(a_group(before), members(pods)).phase == after


def test_the_owners_are_told_once_the_pods_are_there() -> None:
    status = next_status(a_group("Pending"), members("PPP"))
    assert status.occupied_by == "ns/job-a,ns/job-b"
    kept = next_status(a_group("Pending", occupiedBy="ns/other"), [MemberPhase("Pending")] * 3)
    assert kept.occupied_by == "ns/other"


def test_counts_are_told_once_the_group_is_on_its_way() -> None:
    status = next_status(a_group("Scheduling", running=9), members("PRSF"))
    assert (status.running, status.succeeded, status.failed) == (1, 1, 1)
    waiting = next_status(a_group("Pending", running=9), members("RR"))
    assert waiting.running == 9


def test_what_is_written_already_is_not_written_again() -> None:
    group = a_group("Running", running=3)
    assert next_status(group, members("RRR")) is group.status


def test_what_is_read_of_a_pod() -> None:
    owner = {"kind": "Job", "name": "j", "uid": "u", "apiVersion": "batch/v1"}
    pod = a_pod().metadata(ownerReferences=[owner]).status(phase="Running").build()
    assert MemberPhase.of(pod) == MemberPhase("Running", ("j",))
    assert MemberPhase.of(a_pod().status(phase="Failed").build()) == MemberPhase("Failed")


def test_a_group_of_nobody_waits_for_its_first_pod() -> None:
    group = a_group("Pending", minimum=0)
    assert next_status(group, []) is group.status
    assert next_status(group, members("P")).phase == "Scheduling"


def twin(phase: str, minimum: int, pods: list[MemberPhase], old: CoschedulingStatus) -> tuple:
    """The controller's switch, written down in its own order."""
    running = sum(m.phase == "Running" for m in pods)
    succeeded = sum(m.phase == "Succeeded" for m in pods)
    failed = sum(m.phase == "Failed" for m in pods)
    counts = (old.running, old.succeeded, old.failed)
    if phase in ("Finished", "Failed"):
        return phase, counts
    if phase == "":
        return "Pending", counts
    if phase == "Pending":
        return ("Scheduling" if len(pods) >= minimum else "Pending"), counts
    counts = (running, succeeded, failed)
    if len(pods) < minimum:
        return "Pending", counts
    if succeeded + running < minimum:
        phase = "Scheduling"
    if succeeded + running >= minimum:
        phase = "Running"
    if failed != 0 and failed + running + succeeded >= minimum:
        phase = "Failed"
    if succeeded >= minimum:
        phase = "Finished"
    return phase, counts


@pytest.mark.parametrize("seed", range(40))
def test_any_history_ends_as_the_switch_has_it(seed: int) -> None:
    rng = Random(seed)
    minimum = rng.randint(1, 5)
    group = a_group("", minimum)
    for _ in range(12):
        pods = members("".join(rng.choice("PRSF") for _ in range(rng.randint(0, 7))))
        status = next_status(group, pods)
        counts = (status.running, status.succeeded, status.failed)
        assert (status.phase, counts) == twin(group.status.phase, minimum, pods, group.status)
        written = {
            "running": status.running,
            "succeeded": status.succeeded,
            "failed": status.failed,
        }
        group = a_group(status.phase, minimum, **written)
