"""Compete for a Lease for each pool: campaigns that begin anew when a pool was given up.

    mode's Lease   one Campaign, shared by all replicas of the layout: without it no pool is used
    pool's Lease   one Campaign after another: taken ──> held ──> given up, or lost ──> watched

`core/leader/pools.py` decides which pools are taken and given up. A pool whose Lease is lost is
released once it has run out, and the process goes on with the others. Without the mode's Lease it
ends, as with one leader.
"""

import asyncio
import random
from collections.abc import Callable, Iterable, Mapping
from itertools import count
from typing import Any

from msgspec.structs import replace

from asched.core.config.layout import LeaseNs
from asched.core.leader.election import LeaseTimes, Predecessor
from asched.core.leader.pools import (
    TERM_SEPARATOR,
    ModeElection,
    PoolBoard,
    PoolElection,
    lease_of_pool,
)
from asched.host.election import ANNOUNCED_S, Campaign, LeaderCandidate, Stand
from asched.host.lease_client import LeaseClient
from asched.host.lease_thread import LeaseThread
from asched.kube.clock import Clock
from asched.kube.session import Session
from asched.kube.tasks import ended, tell_loop
from asched.serve.telemetry.component_metrics import LeaderMetrics


class PoolCandidate(LeaderCandidate):
    """The campaigns of one process, on the scheduling loop. As a `LeaderCandidate` it leads while
    it shares the Lease of the mode.
    """

    def __init__(
        self,
        session: Session,
        stand: Stand,
        metrics: LeaderMetrics,
        *,
        pools: Mapping[str, LeaseNs],
        layout: str,
        clock: Clock | None = None,
        draw: Callable[[], float] = random.random,
        **more: Any,
    ) -> None:
        mode = ModeElection(stand.rules, draw, stand.schedulers, layout=layout)
        super().__init__(session, stand, metrics, clock=clock, draw=draw, election=mode, **more)
        self.board = PoolBoard(mode)
        #: Set when a pool was taken or lost.
        self.has_changed = asyncio.Event()
        #: By pool: how long no replica decided for it, when it was taken last.
        self.gaps_s: dict[str, float] = {}
        self._metrics, self._draw = metrics, draw
        self._clock = clock or Clock()
        self._terms = count(1)
        self._campaigns: dict[str, Campaign] = {}
        self._pools = pools
        self._given_up = {pool: asyncio.Event() for pool in pools}
        self._clean: set[str] = set()
        for pool in pools:
            self._begin(pool)
        self.health_problem = self._health_problem

    def pool_fence_s(self, pool: str) -> float:
        """For how long this process may act for a pool; not positive if it may not."""
        return self.board.fence_s(pool) - self._clock.now_s()

    def used(self, pool: str) -> None:
        """Note that the process decides for a pool that it has taken from now on."""
        since_s = self.board.pools[pool].last_sign_s
        self.gaps_s.pop(pool, None)
        if since_s is not None:
            self.gaps_s[pool] = gap_s = self._clock.now_s() - since_s
            self._metrics.pool_gap.of(pool).observe(gap_s)

    @property
    def predecessor(self) -> Predecessor | None:
        """Each pool has its own."""
        return None

    def give_up(self, pool: str, *, is_clean: bool) -> None:
        """Release a pool, and compete for it anew. `is_clean`: all requests about it are
        answered.
        """
        if is_clean:
            self._clean.add(pool)
        self.call(self._given_up[pool].set)

    async def decides_for(self, pool: str) -> None:
        """As `decides`, about the lease of a pool."""
        await self._decides(self._campaigns[pool])

    async def announce(self, schedulers: Iterable[str]) -> None:
        wanted = frozenset(schedulers)
        elections = [self.campaign.election, *self.board.pools.values()]
        for election in elections:
            election.schedulers |= wanted
        for election in elections:
            while election.is_leader and not wanted <= election.announced:  # noqa: ASYNC110 - written by another thread
                await asyncio.sleep(ANNOUNCED_S)

    def _health_problem(self) -> str:
        problems = (campaign.health_problem() for campaign in self._all())
        return next(filter(None, problems), "")

    def _all(self) -> tuple[Campaign, ...]:
        return (self.campaign, *self._campaigns.values())

    # --- where the campaigns run -----------------------------------------------------------------

    def _pool_changed(self) -> None:
        self.has_changed.set()

    def _begin(self, pool: str) -> None:
        mode = self.board.mode
        stand = self._stand_for(pool, f"{mode.member}{TERM_SEPARATOR}{next(self._terms)}")
        election = PoolElection(stand.rules, self._draw, mode.schedulers, board=self.board)
        self._campaigns[pool] = Campaign(
            stand, self._metrics, self._pool_changed, clock=self._clock, election=election
        )
        self.board.pools[pool] = election

    def _stand_for(self, pool: str, identity: str = "") -> Stand:
        """The Lease of a pool."""
        rules = LeaseTimes.of(identity, self._pools[pool])
        return replace(self._stand, rules=rules, name=lease_of_pool(self._stand.name, pool))

    def _client(self, session: Session, pool: str) -> LeaseClient:
        return self._stand_for(pool).client(session)

    async def _compete(self, session: Session) -> None:
        works = [super()._compete(session), *(self._hold(session, pool) for pool in self._given_up)]
        tasks = [asyncio.ensure_future(work) for work in works]
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        finally:
            await ended(tasks)

    async def _hold(self, session: Session, pool: str) -> None:
        """Compete for a pool again and again; returns when its Lease and the mode's were lost."""
        client, is_given_up = self._client(session, pool), self._given_up[pool]
        while True:
            campaign = self._campaigns[pool]
            runs = asyncio.ensure_future(campaign.run(client))
            asked = asyncio.ensure_future(is_given_up.wait())
            try:
                await asyncio.wait((runs, asked), return_when=asyncio.FIRST_COMPLETED)
                is_lost = runs.done()
                if is_lost:
                    runs.result()
            finally:
                await ended((runs, asked))
            if is_lost and not self.board.mode.is_leader:
                return
            if is_lost:
                self._pool_changed()
                await campaign.hand_on(client, is_settled=False)
            else:
                await campaign.release(client, is_handed_on=pool in self._clean)
            self._clean.discard(pool)
            is_given_up.clear()
            self._begin(pool)

    # --- the end ---------------------------------------------------------------------------------

    async def _release(
        self, session: Session, *, is_handed_on: bool, is_dying: bool = False
    ) -> None:
        """Release the pools. The Lease of the mode runs out, if no other replica renews it."""
        await asyncio.gather(
            *(
                campaign.release(
                    self._client(session, pool), is_handed_on=is_handed_on, is_dying=is_dying
                )
                for pool, campaign in self._campaigns.items()
            )
        )
        self._leave_mode()

    async def _hand_on(self, *, is_settled: bool) -> None:
        held = [
            (pool, campaign)
            for pool, campaign in self._campaigns.items()
            if campaign.election.holder == campaign.election.rules.identity
        ]
        self._leave_mode()
        await asyncio.gather(
            *(
                campaign.hand_on(self._client(self._session, pool), is_settled=is_settled)
                for pool, campaign in held
            )
        )

    def _leave_mode(self) -> None:
        self.campaign.election.resign()


class PoolThread(LeaseThread, PoolCandidate):
    """The campaigns of one process, in a thread of their own."""

    def _pool_changed(self) -> None:
        tell_loop(self._home, self.has_changed.set)
