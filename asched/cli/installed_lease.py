"""The lease of the installation in the cluster, for commands without --lease: that of the
installation that `asched doctor` would check.
"""

from typing import Final

from asched import names
from asched.cli.pages import PageError
from asched.kube.errors import ClientError
from asched.kube.session import Session
from asched.ops.doctor.installation import candidates
from asched.ops.doctor.reader import ClusterReader
from asched.ops.doctor.workloads import ServedWorkload, scheduler_workloads

NAMED_MAX: Final = 5
OURS: Final = frozenset({names.OUR_SCHEDULER_NAME})


async def installation(session: Session) -> ServedWorkload | None:
    """None if there is no installation, or Deployments may not be listed. Raises PageError if there
    are several.
    """
    try:
        served = await scheduler_workloads(ClusterReader(session.general))
    except (ClientError, LookupError, TypeError):
        return None
    found = candidates(served, OURS)
    if len(found) <= 1:
        return found[0] if found else None
    shown = [f"{one.workload} ({_lease(one)})" for one in found[:NAMED_MAX]]
    more = [f"{len(found) - NAMED_MAX} more"] if len(found) > NAMED_MAX else []
    listed = ", ".join((*shown, *more))
    raise PageError(f"there are {len(found)} installations: {listed}; name one with --lease")


def _lease(workload: ServedWorkload) -> str:
    return f"lease {'/'.join(workload.lease)}" if workload.lease else "no lease"
