"""Why a placed pod is on its node and not on another one."""

from collections.abc import Mapping
from typing import Any

from asched.core.cluster.budget import OutOfTurn
from asched.core.cluster.nominated import Nominator
from asched.core.framework.runner import Runner
from asched.core.framework.status import PointError
from asched.core.model.pod import Pod
from asched.insight.explain.deciding import Deciding


def against(
    runner: Runner, nominator: Nominator, pod: Pod, node: str, chosen: Mapping[str, Any] | None
) -> dict[str, Any]:
    """The case against a node: whether it would take the pod now if the pod were not placed, and
    its score, if it was among the best nodes at their last record. `chosen`: the decision as JSON
    (`RecordedChoice`).
    """
    found: dict[str, Any] = {"node": node}
    cluster = runner.cluster
    row = cluster.nodes.row_of.get(node)
    if row is None:
        return {**found, "refused": "there is no such node now"}
    deciding = Deciding(runner, nominator, pod.on(""))
    placed = cluster.placed.get(pod.uid)
    try:
        with deciding.within_budget(), cluster.supposing() as suppose:
            suppose.without(() if placed is None else (placed,))
            status = deciding.status_on(row)
    except (OutOfTurn, PointError) as error:
        return {**found, "refused": str(error)}
    if status is not None:
        found["refused"] = f"{status.plugin}: {', '.join(status.reasons)}"
    best = (chosen or {}).get("best", ())
    found["scored"] = next((scored for scored in best if scored["node"] == node), None)
    if found["scored"] is None and best:
        found["below"] = best[-1]["score"]
    return found
