"""Who keeps what is held: each kind of owner has a keeper, who decides what its hold is now.

The ledger (`state/holds.py`) counts and notes; here is whom it concerns. Whatever moved is settled
before anybody is decided for, and not sooner: where half of the cluster is known, there is no room.
"""

from collections.abc import Callable, Mapping
from typing import Final

from asched.core.cycle import group_hold, request_book
from asched.core.cycle.context import SchedulerContext
from asched.core.framework.status import MISTAKES
from asched.core.state.holds import SWEEP_FROM
from asched.core.state.pod_groups import COSCHEDULED

#: What stands before the first colon of an owner's name -> who settles what it is due now.
KEEPERS: Final[Mapping[str, Callable[[SchedulerContext, str], None]]] = {
    COSCHEDULED.rstrip(":"): group_hold.settle,
    request_book.OWNERS: request_book.settle,
}


def keep(context: SchedulerContext) -> None:
    """Look at every owner whose time is up, whose room was disturbed, or who took some of it."""
    holds, moved = context.cluster.holds, context.cluster.pod_groups.moved
    _settle_consumers(context)
    if len(holds):
        for owner in tuple(holds.expired(context.now_s)):
            _settle(context, owner)
        for owner in tuple(holds.touched):
            _settle(context, owner)
    for owner in tuple(moved) if moved else ():
        _settle(context, owner)


def put_off(context: SchedulerContext) -> None:
    """Nobody is decided for now: another replica leads, or not all is known. What moved stays
    noted, but for groups that came and went.
    """
    _settle_consumers(context)
    groups, holds = context.cluster.pod_groups, context.cluster.holds
    if len(groups.moved) > SWEEP_FROM + 2 * (len(groups) + len(holds)):
        gone = [key for key in groups.moved if not groups.get(key).count and not holds.of(key)]
        for key in gone:
            del groups.moved[key]


def _settle_consumers(context: SchedulerContext) -> None:
    try:
        request_book.settle_consumers(context)
    except MISTAKES as raised:  # their slots are held until these pods move again
        context.contain(raised, "requests")
        context.cluster.consumers.moved.clear()


def _settle(context: SchedulerContext, owner: str) -> None:
    try:
        KEEPERS[owner.partition(":")[0]](context, owner)
    except MISTAKES as raised:  # nothing is held for it until something of it moves again
        context.contain(raised, "holds", owner)
        context.cluster.holds.drop(owner)
        context.cluster.holds.touched.pop(owner, None)
        context.cluster.pod_groups.moved.pop(owner, None)
