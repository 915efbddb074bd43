"""What Reserve allocates to a pod: devices for those of its claims that have none yet."""

from typing import NamedTuple

from asched.core.dra import allocator, answer_codes, answers, demand, plan, result
from asched.core.dra.ledger import DeviceLedger
from asched.core.framework.status import Status, failure
from asched.core.model.claim import ResourceClaim
from asched.core.model.node import Node
from asched.core.plugins.devices.binding import Reserved


class ClaimDemand(NamedTuple):
    """Result of PreFilter: all claims of the pod, the one for extended resources last."""

    claims: tuple[ResourceClaim, ...]
    demand: "demand.DeviceDemand"


def allocated(
    ledger: DeviceLedger, book: "answers.AnswerBook", prepared: ClaimDemand, node: Node
) -> Reserved | Status:
    """Devices for the claims, or why there are none."""
    wanted = prepared.demand
    try:
        plans, solution = book.solve(wanted, node)
    except (plan.AllocationError, allocator.NodeRejected) as error:
        return failure(str(error))
    except allocator.OutOfSteps:
        return failure(f"node {node.name}: {answer_codes.TIMED_OUT_TEXT}")
    if solution is None:
        return failure("claim allocation not found for node")
    results = result.allocation_results(plans, solution, node.name, ledger.rules)
    served = wanted.served(node) or frozenset()
    requests = wanted.variant(served)[1] if wanted.extended is not None and served else None
    allocations = tuple((p.claim, r) for p, r in zip(plans, results, strict=True))
    allocations += tuple(
        (claim, claim.status.allocation)
        for claim in prepared.claims
        if claim.status.allocation is not None and ledger.is_in_flight(claim.uid)
    )
    return Reserved(prepared.claims, allocations, wanted.extended, requests)
