"""What a process does about the pools that it holds, where each pool has a Lease.

    a pool was taken        catch up, seal what its last holder may have sent, hold it (`PoolsHeld`)
    a pool was lost         decide nothing more; its next holder seals what was sent
    nodes and namespaces    acknowledge on the Leases what was seen; use what other pools let go of
    more pools than others  give the quietest up: decide nothing more, wait for answers, release it
    an effect leaves        only if the pools of its pod and its node are held, and long enough

The machine receives all of this as facts, so that a recording repeats it. Catching up, sealing and
acknowledging come one after the other, for all pools that were taken meanwhile.

An acknowledgement is made at a moment at which everything received is applied, so that it says
exactly what the next decision reads. It is not made while a pod is being bound whose pool, or whose
node's pool, has changed since, or that has a rule about pods of a namespace that has left its pool.

What the seal has to reach beside the pods of a pool: pods of namespaces, or for nodes, that have
changed since the pool's last acknowledgement, since they may have been in the pool until then.

Bounds  EVERY_S between two rounds, SOON_S while something is awaited; a pool is held for STAY_S at
        least before it is given up; ANSWERS_CHECKS times SOON_S for the answers to its requests.
"""

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import partial
from math import inf
from operator import gt
from typing import Final, NamedTuple

from asched import names
from asched.core.cluster.pool_tenure import NEVER, Versions, number_of
from asched.core.cluster.pools import Pools, only_node
from asched.core.cycle.orders import PoolsHeld
from asched.core.framework.effects import (
    Bind,
    Create,
    Delete,
    DeletePod,
    Effect,
    Evict,
    Patch,
    PatchPodStatus,
)
from asched.core.leader.election import OpenSeal, Predecessor
from asched.core.leader.pools import PoolElection, union
from asched.core.model.claim import ResourceClaim
from asched.core.model.kinds import NAMESPACE, NODE, POD, RESOURCE_CLAIM, Kind
from asched.core.model.pod import Pod
from asched.core.plugins.node_pools import NodePools
from asched.host.pool_leases import PoolCandidate
from asched.host.seal import Reach, Seal
from asched.kube.running import Running

EVERY_S: Final = 1.0
SOON_S: Final = 0.2
STAY_S: Final = 10.0
ANSWERS_CHECKS: Final = 10
#: Kinds whose changes move pods and nodes between pools.
MOVING: Final = (NODE, NAMESPACE)


class PoolKeeper:
    """The pools of one process. `begin` before the first fact, `run` once everything is listed."""

    def __init__(self, scheduler: Running, candidate: PoolCandidate) -> None:
        self._scheduler = scheduler
        self._candidate = candidate
        self._board = candidate.board
        self._context = scheduler.machine.context
        #: By held pool: what the machine knows that other pools have let go of.
        self._held: dict[str, Versions] = {}
        #: By held pool: the election of the term since which it is held.
        self._terms: dict[str, PoolElection] = {}
        self._is_waiting = False

    @property
    def _pools(self) -> Pools:
        pools = self._context.pools
        assert pools is not None, "the configuration has pools"
        return pools

    def begin(self) -> None:
        """No pool is held at the start."""
        self._scheduler.inbox.put(PoolsHeld({}))

    async def run(self) -> None:
        """Take over, acknowledge, and give up, until cancelled."""
        has_changed = self._candidate.has_changed
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(SOON_S if self._is_waiting else EVERY_S):
                    await has_changed.wait()
            has_changed.clear()
            await self._drop_lost()
            await self._take_over()
            await self._acknowledge()
            await self._use_more()
            await self._balance()

    def holder(self, pool: str) -> str:
        """The replica that holds a pool; empty if none does."""
        return self._board.holder(pool, self._scheduler.clock.now_s())

    def gap_s(self, pool: str) -> float | None:
        """How long no replica decided for a held pool, when it was taken; None if unknown."""
        return self._candidate.gaps_s.get(pool) if pool in self._held else None

    # --- pools that were lost, and taken ---------------------------------------------------------

    def _is_lost(self, pool: str, election: PoolElection) -> bool:
        return self._board.pools[pool] is not election or not election.is_leader

    async def _drop_lost(self) -> None:
        lost = [pool for pool, election in self._terms.items() if self._is_lost(pool, election)]
        for pool in lost:
            del self._held[pool], self._terms[pool]
        if lost:
            await self._tell(self._held)

    async def _take_over(self) -> None:
        taken = {
            pool: election
            for pool, election in self._board.pools.items()
            if election.is_leader and pool not in self._held
        }
        if not taken:
            return
        predecessor = _all_of(election.predecessor for election in taken.values())
        unclean = {p: e for p, e in taken.items() if e.predecessor is not None}

        def begins(begun: OpenSeal) -> None:
            for election in unclean.values():
                election.seals(begun)

        reach = _LastHolders(self._pools, unclean)
        await Seal(self._scheduler, predecessor, begins, reach, MOVING).run()
        await asyncio.gather(*map(self._candidate.decides_for, taken))
        taken = {pool: e for pool, e in taken.items() if not self._is_lost(pool, e)}
        for election in taken.values():
            election.sealed()
        self._held.update(dict.fromkeys(taken, Versions()))
        self._terms.update(taken)
        await self._tell(self._held, new=tuple(taken))
        for pool in taken:
            self._candidate.used(pool)

    async def _tell(self, held: Mapping[str, Versions], *, new: tuple[str, ...] = ()) -> None:
        """Let the machine decide for these pools, and wait until it does."""
        self._scheduler.inbox.put(PoolsHeld(dict(held), new))
        await self._scheduler.taken_in()

    # --- nodes and namespaces that move ----------------------------------------------------------

    async def _acknowledge(self) -> None:
        """Say on the Leases what this process has seen."""
        await self._scheduler.taken_in()
        if not self._held or not self._is_exact() or self._is_any_between_pools():
            return
        cluster = self._context.cluster
        nodes = (node.metadata.resource_version for _, node in cluster.nodes.nodes())
        namespaces = (known.metadata.resource_version for known in cluster.all(NAMESPACE).values())
        seen = Versions(
            max(map(number_of, nodes), default=0), max(map(number_of, namespaces), default=0)
        )
        received = Versions(*(number_of(self._received(kind)) for kind in MOVING))
        if seen.merged(received, min) != seen:  # by an answer, which the watch has not shown yet
            return
        for pool in filter(self.holds, self._held):
            election = self._board.pools[pool]
            election.acknowledged = seen.merged(election.acknowledged or seen, max)

    def _is_exact(self) -> bool:
        """Whether all nodes and namespaces that were received are applied."""
        scheduler = self._scheduler
        machine, inbox = scheduler.machine, scheduler.inbox
        is_behind = machine.is_taking_in or machine.postpones_nodes
        return not (is_behind or any(map(inbox.has_of, MOVING)))

    def _received(self, kind: Kind) -> str:
        return self._scheduler.history.received_version(kind)

    def _bound(self) -> Iterator[tuple[Pod, str]]:
        """Pods that are being bound, with their nodes."""
        for waiting in self._context.waiting:
            yield waiting.info.pod, waiting.node

    def _is_between_pools(self, bound: tuple[Pod, str]) -> bool:
        """Whether the pod, its node, or pods that its rules are about have left the pool for which
        it was decided.
        """
        pod, node = bound
        pools = self._pools
        if not (pools.may_decide(pod) and pools.may_use_node(node)):
            return True
        runner = self._context.runner_of(pod)
        rules = None if runner is None else runner.profile.plugins[names.NODE_POOLS]
        info = pools.cluster.classes.info_of(pod)
        return isinstance(rules, NodePools) and rules.reaches_out(info)

    def _is_any_between_pools(self) -> bool:
        return any(map(self._is_between_pools, self._bound()))

    async def _use_more(self) -> None:
        """Use what other pools have let go of."""
        self._is_waiting, helped = False, dict[str, Versions]()
        newest = Versions()
        tenure, number = self._pools.tenure, self._pools.names.index
        assert tenure is not None, "begin"
        wanted = tenure.newest()
        for pool, known in self._held.items():
            least = wanted.get(number(pool), known)
            if least.nodes <= known.nodes and least.namespaces <= known.namespaces:
                continue
            self._is_waiting = True
            acknowledged = self._board.acknowledged_beside(pool)
            least = acknowledged[0].merged(known, max)
            if tenure.is_helped(number(pool), known, least):
                helped[pool] = least
                newest = newest.merged(acknowledged[1], max)
        if not helped:
            return
        history, again = self._scheduler.history, self._scheduler.list_again
        for kind, version in zip(MOVING, newest, strict=True):
            if version:
                await history.catch_up(kind, partial(again, (kind,)), str(version))
        await history.catch_up(POD, partial(again, (POD,)))
        await self._scheduler.taken_in()
        self._held |= helped
        await self._tell(self._held)

    # --- pools that are given up -----------------------------------------------------------------

    async def _balance(self) -> None:
        now_s = self._scheduler.clock.now_s()
        if not self._board.has_surplus(now_s) or self._is_any_between_pools():
            return
        counts = self._busy()
        quiet = [
            pool
            for pool in self._held
            if pool not in counts and now_s - self._board.pools[pool].taken_s > STAY_S
        ]
        waiting = dict.fromkeys(quiet, 0)
        for queued in self._context.queue.places.all():
            name = self._name_of(self._pools.of_waiting(queued.pod))
            if name in waiting:
                waiting[name] += 1
        if quiet:
            await self._give_up(min(quiet, key=lambda pool: waiting[pool]))

    async def _give_up(self, pool: str) -> None:
        await self._tell({name: known for name, known in self._held.items() if name != pool})
        number, dispatcher = self._pools.names.index(pool), self._scheduler.dispatcher

        def concerns(effect: Effect) -> bool:
            return number in self._pools_of(effect)

        for _ in range(ANSWERS_CHECKS):
            if dispatcher.is_settled_for(concerns):
                break
            await asyncio.sleep(SOON_S)
        if pool in self._busy() or self._is_any_between_pools():
            await self._tell(self._held)
            return
        del self._held[pool], self._terms[pool]
        election = self._board.pools[pool]
        self._candidate.give_up(pool, is_clean=dispatcher.is_settled_for(concerns))
        while self._board.pools[pool] is election:  # noqa: ASYNC110 - changed by another thread
            await asyncio.sleep(SOON_S)

    def _busy(self) -> set[str]:
        """Pools with pods that are being decided or bound, or have a nomination."""
        context, pools = self._context, self._pools
        numbers = {self._of_node(node) for _, node in self._bound()}
        numbers |= {pools.of_waiting(pod) for pod, _ in self._bound()}
        numbers |= {pools.of_waiting(queued.pod) for queued in context.queue.in_flight.pods()}
        numbers |= {self._of_node(node) for node in context.nominator.nodes()}
        return {self._name_of(number) for number in numbers}

    # --- effects ---------------------------------------------------------------------------------

    def fence_s(self, effect: Effect) -> float:
        """For how long the effect may be performed; -inf if its pools are not held."""
        fence_s = self._candidate.fence_s()
        for number in self._pools_of(effect):
            name = self._name_of(number)
            if not self.holds(name):
                return -inf
            fence_s = min(fence_s, self._candidate.pool_fence_s(name))
        if isinstance(effect, Bind):
            pod = self._context.cluster.pods_seen.get(effect.pod.key)
            if pod is not None and self._is_between_pools((pod, effect.node)):
                return -inf
        return fence_s

    def holds(self, pool: str) -> bool:
        """Whether this process acts for a pool."""
        is_held = self._terms.get(pool) is self._board.pools[pool]
        return is_held and self._candidate.pool_fence_s(pool) > 0.0

    def _pools_of(self, effect: Effect) -> Iterator[int]:
        """The pools whose holder alone may perform an effect."""
        cluster = self._context.cluster
        match effect:
            case Bind():
                pod = cluster.pods_seen.get(effect.pod.key)
                yield self._of_pod(pod) if pod is not None else self._of(effect.pod.namespace)
                yield self._of_node(effect.node)
            case PatchPodStatus() | DeletePod() | Evict():
                pod = cluster.pods_seen.get(effect.pod.key)
                if pod is not None:
                    yield self._of_pod(pod)
            case Patch() | Delete() if effect.kind is NODE:
                yield self._of_node(effect.name)
            case Patch() | Delete() | Create():
                if effect.namespace:
                    yield self._of(effect.namespace)

    def _of(self, namespace: str) -> int:
        return self._pools.of_namespace(namespace)

    def _of_pod(self, pod: Pod) -> int:
        """Of a pod on a node, the node's: its place is the node's matter."""
        node = pod.spec.node_name
        return self._of_node(node) if node else self._pools.of_waiting(pod)

    def _of_node(self, name: str) -> int:
        node = self._context.cluster.node_of(name)
        return -1 if node is None else self._pools.with_labels(node.labels)

    def _name_of(self, number: int) -> str:
        """The name of a pool; empty for an object of several pools, or of none."""
        return self._pools.names[number] if number >= 0 else ""


class _LastHolder(NamedTuple):
    """What is known of the last holder of a pool, the number `pool`."""

    pool: int
    acknowledged: Versions
    predecessor: Predecessor


class _LastHolders(Reach):
    """What late writes of the last holders of some pools could reach."""

    def __init__(self, pools: Pools, taken: Mapping[str, PoolElection]) -> None:
        self._pools = pools
        self._holders = [
            _LastHolder(pools.names.index(pool), election.last_acknowledged, election.predecessor)
            for pool, election in taken.items()
            if election.predecessor is not None
        ]

    def pod(self, pod: Pod) -> bool:
        pools, node = self._pools, only_node(pod)
        known = pools.cluster.node_of(node) if node else None
        number = number_of(known.metadata.resource_version) if known is not None else 0
        is_of_pool = self._concerns(POD, pod, pools.of_waiting(pod), Versions(nodes=number))
        return is_of_pool or self._namespace(POD, pod)

    def claim(self, claim: ResourceClaim) -> bool:
        return self._namespace(RESOURCE_CLAIM, claim)

    def _namespace(self, kind: Kind, obj: Pod | ResourceClaim) -> bool:
        """Whether the object's namespace is, or may have been, in one of the pools."""
        name = obj.metadata.namespace
        known = self._pools.cluster.get(NAMESPACE, name)
        number = NEVER if known is None else number_of(known.metadata.resource_version)
        pool = self._pools.of_namespace(name)
        return self._concerns(kind, obj, pool, Versions(namespaces=number))

    def _concerns(self, kind: Kind, obj: Pod | ResourceClaim, pool: int, changed: Versions) -> bool:
        """Whether late writes about a pool may meet an object, of this pool now, or of another one
        before this version of its node or its namespace.
        """
        version = obj.metadata.resource_version
        return any(
            (pool == holder.pool or any(map(gt, changed, holder.acknowledged)))
            and holder.predecessor.may_reach(kind, version)
            for holder in self._holders
        )


def _all_of(predecessors: Iterator[Predecessor | None]) -> Predecessor | None:
    """One for all pools that were not handed on; None if all were."""
    merged: Predecessor | None = None
    for one in predecessors:
        if one is None:
            continue
        merged = merged or one
        merged = Predecessor(
            one.transitions,
            union(merged.sealable, one.sealable),
            max(merged.unclean_ends, one.unclean_ends),
        )
    return merged
