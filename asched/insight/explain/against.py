"""Why this node and not that one, for a pod that is placed."""

from collections.abc import Mapping
from typing import Any

from asched.core.framework.runner import Runner
from asched.core.framework.status import PointError
from asched.core.model.pod import Pod
from asched.core.state.budget import OutOfTurn
from asched.core.state.nominated import Nominator
from asched.insight.explain.deciding import Deciding


def against(
    runner: Runner, nominator: Nominator, pod: Pod, node: str, chosen: Mapping[str, Any] | None
) -> dict[str, Any]:
    """What speaks against a node: whether it would take the pod now, as if the pod were nowhere,
    and what it scored beside the chosen one, if it was among the best when these were looked at
    last. `chosen` is the decision as `Chosen.told` has it.
    """
    told: dict[str, Any] = {"node": node}
    cluster = runner.cluster
    row = cluster.nodes.row_of.get(node)
    if row is None:
        return {**told, "refused": "there is no such node now"}
    deciding = Deciding(runner, nominator, pod.on(""))
    placed = cluster.placed.get(pod.uid)
    try:
        with deciding.within_budget(), cluster.supposing() as suppose:
            suppose.without(() if placed is None else (placed,))
            status = deciding.status_on(row)
    except (OutOfTurn, PointError) as error:
        return {**told, "refused": str(error)}
    if status is not None:
        told["refused"] = f"{status.plugin}: {', '.join(status.reasons)}"
    best = (chosen or {}).get("best", ())
    told["scored"] = next((one for one in best if one["node"] == node), None)
    if told["scored"] is None and best:
        told["below"] = best[-1]["score"]
    return told
