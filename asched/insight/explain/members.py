"""How many waiting pods of a gang find room, and what the next one lacks: each node may fit any one
of them, and not all of them together.

The pods are tried one after the other, each on the first node that fits; rules about their places
as a whole, such as one zone for all, are not applied.

Bounds  those of `Deciding`; GANG_MAX pods.
"""

from typing import Any

from asched.core.cluster.budget import OutOfTurn
from asched.core.cluster.nominated import Nominator
from asched.core.framework.runner import Runner
from asched.core.framework.status import PointError
from asched.core.model.pod import Pod
from asched.insight.explain.deciding import Deciding
from asched.insight.explain.shortfalls import missing_everywhere
from asched.insight.explain.waiting_members import WaitingMembers


def room_for_gang(
    runner: Runner, nominator: Nominator, pod: Pod, company: WaitingMembers | None
) -> dict[str, Any] | None:
    """`takes` of `needed` pods, and for the next pod, with these in place, `reasons` and `missing`
    resources. None for a gang that cannot be tried.
    """
    if company is None:
        return None
    needed = company.needed
    deciding = Deciding(runner, nominator, pod, company.others, needed)
    cluster = deciding.cluster
    try:
        with deciding.within_budget(), cluster.supposing() as suppose:
            takes, rest = deciding.place(suppose, [pod, *company.others], needed)
            found: dict[str, Any] = {"needed": needed, "takes": takes}
            if takes < needed and rest is not None:
                found["reasons"] = deciding.reasons(rest)
                found["missing"] = missing_everywhere(cluster, deciding.info(rest))
            return found
    except (OutOfTurn, PointError):
        return None
