"""Two replicas, two pools, two nodes and three pods: what may happen in which order.

    pool-a  node-1, namespace a with the pods a-1 and a-2, of which only one may be bound
    pool-b  node-2, namespace b with the pod b-1

Each node has room for one pod. node-2 and namespace a may move to the other pool. A pool has one
Lease; who holds the Lease decides for the pool's pods, and binds them to the pool's nodes. A state
is violated when more pods are bound than a node has room for, or two pods that must be apart: both
of namespace a; or, with a rule across namespaces, a-1 and b-1, of which b-1 has the rule. Then b-1
waits while namespace a is in the other pool.

What is modelled as it is:

    API server   a write of a pod gives it another version. A binding is carried out if its pod has
                 no node and, as the rule `resourceVersion` wants it, the version that was sent.
                 A request of a replica that has died, or that waits somewhere, is carried out at
                 any later time, or never. A Lease is written by compare-and-swap
    watches      each replica has one of pods, one of nodes, one of namespaces. Each shows changes
                 in their order, any time later; a list shows the newest state and hides what was
                 between. Leases are read late, too: any value that was ever on them may be used
    time         a replica's own clock says that its Lease is over (the fence) before any other
                 replica may take it: the assumption about the rates of clocks. A pause is any time
                 without a step: the fence may pass, and others may go on
    ends         a replica that is killed, cut off or stopped for long loses its Leases one by one,
                 and forgets what it knows of their pools; what it has sent is under way

What is simpler than it is, and why that hides nothing: versions count by whether they are the
newest, since the server only compares them. A refused binding is answered at once, since a late
answer only makes a replica wait. A catch-up ends at the moment of its read, since the role that
waits for it does nothing before its end. Pods and nodes are not deleted: both only free room.

The rules can be left out one at a time. Then the search has to find a violation.
"""

from collections.abc import Collection, Iterator
from enum import StrEnum
from typing import Final, NamedTuple, TypeVar

T = TypeVar("T")

REPLICAS: Final = (0, 1)
POOLS: Final = ("pool-a", "pool-b")
NODES: Final = ("node-1", "node-2")
PODS: Final = ("a-1", "a-2", "b-1")
#: What may move from one pool to the other: a node, and the namespace of two pods.
MOVABLE: Final = ("node-2", "namespace a")
NODE_2, NAMESPACE_A = 0, 1
#: Each one's pool before it moves.
FIRST_POOL: Final = (1, 0)
OF_A: Final = (0, 1)
#: The pod with the rule across namespaces.
B_1: Final = 2
#: Beside the replicas, as sender: one whose Lease ran out. As holder of a Lease: one that ran out,
#: or was released with all answers in.
ENDED, RELEASED = 2, 3
SWAPPED: Final = (1, 0, ENDED, RELEASED)
#: Places of a pod beside the nodes.
WAITING, ABSENT = -1, -2
NOTHING: Final = -1
ALL_PODS: Final = (1 << len(PODS)) - 1


class Rule(StrEnum):
    """What the protocol demands. The texts are those of the command line and of the page."""

    VERSION = "resourceVersion"
    SEAL = "seal"
    SEAL_MOVED = "seal of pods that have left the pool"
    FIRST_CATCH_UP = "first catch-up"
    SECOND_CATCH_UP = "second catch-up"
    FENCE = "fence"
    ANSWERS_BEFORE_YIELD = "answers before a pool is handed on"
    ACKNOWLEDGEMENT = "acknowledgement"
    ANSWERS_BEFORE_ACKNOWLEDGEMENT = "answers before an acknowledgement"
    AS_NEW_AS = "own watch as new as the acknowledgement"
    CATCH_UP_AFTER_ACKNOWLEDGEMENT = "catch-up after an acknowledgement"
    NEW_TO_HOLDER = "all is new to a new holder"
    SAYS_SO = "word of the first decision"
    REACHED = "all let go of that a rule is about"
    ANSWERS_OF_RULES = "answers of pods with a rule about what has left"


class Phase:
    """Of a replica in a pool. CLAIMED_CLEAN: its last holder has left nothing under way."""

    NONE, CLAIMED_CLEAN, CLAIMED, TOUCHING, ACTIVE = range(5)


class Role(NamedTuple):
    phase: int = Phase.NONE
    #: Pods, as bits, whose versions are newer than the catch-up of the seal's first holder.
    changed: int = 0


class View(NamedTuple):
    """What a replica knows of something that may move."""

    #: The last change that it has seen, and since which change it knows the pool of now.
    seen: int = 0
    since: int = 0
    #: Whether the pool of before is known to have let go.
    is_granted: bool = False


class Replica(NamedTuple):
    roles: tuple[Role, ...]
    views: tuple[View, ...]
    #: Pods whose newest state the watch has not shown, in the order of their last changes.
    behind: tuple[int, ...] = ()
    #: Pods whose creation the watch has not shown, as bits.
    unseen: int = 0


class Request(NamedTuple):
    """A binding under way, for a pool that its sender held."""

    sender: int
    pod: int
    node: int
    pool: int


class State(NamedTuple):
    #: A node's index, WAITING or ABSENT.
    pods: tuple[int, ...]
    #: The holder of each pool's Lease, ENDED or RELEASED.
    leases: tuple[int, ...]
    replicas: tuple[Replica, ...]
    requests: tuple[Request, ...]
    #: How often each movable thing has moved.
    moves: tuple[int, ...]
    #: For each pool and movable thing: the changes that were acknowledged on the Lease, as bits.
    acknowledged: tuple[tuple[int, ...], ...]
    #: What each Lease says of a seal that has not ended, as `Role.changed`; NOTHING without one.
    notes: tuple[int, ...]


class Step(NamedTuple):
    """`words` has places for the replica (r), pool, pod, node and thing that are concerned."""

    words: str
    r: int = -1
    pool: int = -1
    pod: int = -1
    node: int = -1
    thing: int = -1

    def __str__(self) -> str:
        return self.words.format(
            r=f"replica {self.r + 1}",
            pool=POOLS[self.pool],
            pod=PODS[self.pod],
            node=NODES[self.node],
            thing=MOVABLE[self.thing],
        )


Steps = Iterator[tuple[Step, State]]


def pool_of(thing: int, moves: int) -> int:
    return (FIRST_POOL[thing] + moves) % len(POOLS)


class Protocol:
    """The model. `moves`: how often node-2 and namespace a may move; `late`: pods created later;
    `is_across`: with the rule across namespaces.
    """

    def __init__(
        self,
        *,
        moves: tuple[int, int] = (0, 0),
        late: Collection[int] = (),
        is_across: bool = False,
        without: Collection[Rule] = (),
    ) -> None:
        self._moves, self._late, self._without = moves, late, frozenset(without)
        self._is_across, self._apart = is_across, (0, B_1) if is_across else OF_A
        self._bound = tuple(View(is_granted=not most) for most in moves)

    def start(self) -> State:
        replica = Replica(tuple(Role() for _ in POOLS), self._bound)
        return State(
            tuple(ABSENT if pod in self._late else WAITING for pod in range(len(PODS))),
            tuple(RELEASED for _ in POOLS),
            tuple(replica for _ in REPLICAS),
            (),
            tuple(0 for _ in MOVABLE),
            tuple(tuple(1 for _ in MOVABLE) for _ in POOLS),
            tuple(NOTHING for _ in POOLS),
        )

    def canonical(self, state: State) -> State:
        """One state for all that differ only in the names of the replicas, or in what a replica has
        not seen and will have seen before it uses it.
        """
        pods, leases, replicas, requests, moves, acknowledged, notes = state
        if Rule.FIRST_CATCH_UP not in self._without:
            replicas = tuple(map(self._used, replicas))
        swapped = State(
            pods,
            tuple(SWAPPED[holder] for holder in leases),
            replicas[::-1],
            tuple(sorted(Request(SWAPPED[q[0]], q[1], q[2], q[3]) for q in requests)),
            moves,
            acknowledged,
            notes,
        )
        return min(State(pods, leases, replicas, requests, moves, acknowledged, notes), swapped)

    def _used(self, replica: Replica) -> Replica:
        """Without what the replica's next catch-up, or the one before it uses a thing, replaces."""
        roles, views, behind, unseen = replica
        has = [role.phase >= Phase.TOUCHING for role in roles]
        if not any(has):
            is_new = Rule.NEW_TO_HOLDER not in self._without
            return Replica(roles, self._bound if is_new else views)
        if not behind or Rule.CATCH_UP_AFTER_ACKNOWLEDGEMENT in self._without:
            return replica
        seals = [role.phase == Phase.TOUCHING for role in roles]
        new = [most and view.is_granted for most, view in zip(self._moves, views, strict=True)]
        of_a = has[0] or any(new) or (self._moves[NAMESPACE_A] and seals[1])
        of_b = has[1] or new[NODE_2]
        if self._is_across:  # who decides for one namespace counts the pods of the other
            of_a, of_b = of_a or has[1], of_b or has[0]
        if of_a and of_b:
            return replica
        kept = tuple(pod for pod in behind if (of_a if pod in OF_A else of_b))
        return Replica(roles, views, kept, sum(1 << pod for pod in kept if unseen >> pod & 1))

    def violation(self, state: State) -> str:
        for node, name in enumerate(NODES):
            if state.pods.count(node) > 1:
                return f"two pods are bound to {name}, which has room for one"
        if all(state.pods[pod] >= 0 for pod in self._apart):
            first, second = (PODS[pod] for pod in self._apart)
            return f"{first} and {second} are both bound, though they must be apart"
        return ""

    def steps(self, state: State) -> Steps:
        """All that can happen next. A pod without a request under way counts as touched: that
        another client changes it, which is always possible, has the same effect.
        """
        for step, reached in self._steps(state):
            idle = ALL_PODS
            for request in reached.requests:
                idle &= ~(1 << request.pod)
            yield step, _newer(reached, idle)

    def _steps(self, state: State) -> Steps:
        yield from self._others(state)
        yield from self._land(state)
        for r in REPLICAS:
            yield from self._watch(state, r)
            for pool in range(len(POOLS)):
                yield from self._take_over(state, r, pool)
                yield from self._hand_on(state, r, pool)
            yield from self._confirm(state, r)
            yield from self._send(state, r)

    # --- users, time, and the API server ---------------------------------------------------------

    def _others(self, state: State) -> Steps:
        for pod, place in enumerate(state.pods):
            if place == ABSENT:
                created = _newer(state, 1 << pod)
                created = created._replace(pods=_with(state.pods, pod, WAITING))
                created = created._replace(
                    replicas=tuple(
                        r._replace(unseen=r.unseen | 1 << pod, behind=(*r.behind, pod))
                        for r in state.replicas
                    )
                )
                yield Step("{pod} is created", pod=pod), created
            elif place == WAITING:
                yield Step("another client changes {pod}", pod=pod), self._changed(state, pod)
        for thing, moves in enumerate(state.moves):
            if moves < self._moves[thing]:
                moved = state._replace(moves=_with(state.moves, thing, moves + 1))
                new = pool_of(thing, moves + 1)
                yield Step("{thing} is moved to {pool}", thing=thing, pool=new), moved
        for pool, holder in enumerate(state.leases):
            if holder in REPLICAS:
                yield (
                    Step("{r} ends, or is paused, and its Lease of {pool} runs out", holder, pool),
                    (self._run_out(state, holder, pool)),
                )

    def _run_out(self, state: State, r: int, pool: int) -> State:
        """The fence passes, and after it the Lease: from now on other replicas may take it."""
        ended = state._replace(leases=_with(state.leases, pool, ENDED))
        if Rule.FENCE in self._without:
            return ended
        requests = {
            q._replace(sender=ENDED, pool=0) if q.sender == r and q.pool == pool else q
            for q in state.requests
        }
        ended = ended._replace(requests=tuple(sorted(requests)))
        return _replaced(ended, r, _in(state.replicas[r], pool, Role()))

    def _land(self, state: State) -> Steps:
        """A binding is carried out. One that would be refused is no longer in the state."""
        for sender, pod, node, _ in state.requests:
            words = "the binding of {pod} to {node} is carried out"
            late = " late: its sender has ended" if sender == ENDED else ""
            yield Step(words + late, pod=pod, node=node), self._changed(state, pod, node, sender)

    def _changed(self, state: State, pod: int, node: int = WAITING, by: int = ENDED) -> State:
        """The pod has another version. `by` gets the answer, the others see it later."""
        requests = state.requests
        if node != WAITING or Rule.VERSION not in self._without:
            requests = tuple(q for q in requests if q.pod != pod)
        state = _newer(state, 1 << pod)
        replicas = []
        for r, (roles, views, behind, unseen) in enumerate(state.replicas):
            rest = tuple(b for b in behind if b != pod)
            replicas.append(Replica(roles, views, rest if r == by else (*rest, pod), unseen))
        pods = _with(state.pods, pod, node)
        return state._replace(pods=pods, replicas=tuple(replicas), requests=requests)

    # --- watches ---------------------------------------------------------------------------------

    def _watch(self, state: State, r: int) -> Steps:
        replica = state.replicas[r]
        if replica.behind:
            pod = replica.behind[0]
            seen = replica._replace(behind=replica.behind[1:], unseen=replica.unseen & ~(1 << pod))
            yield Step("{r} sees the last change of {pod}", r, pod=pod), _replaced(state, r, seen)
        for thing, moves in enumerate(state.moves):
            for version in range(replica.views[thing].seen + 1, moves + 1):
                views = _with(replica.views, thing, self._viewed(replica, thing, version))
                step = Step("{r} sees {thing} in {pool}", r, pool_of(thing, version), thing=thing)
                yield step, _replaced(state, r, replica._replace(views=views))

    def _viewed(self, replica: Replica, thing: int, version: int) -> View:
        view = replica.views[thing]
        if pool_of(thing, version) == pool_of(thing, view.seen):
            return view._replace(seen=version)
        return View(version, version, self._bound[thing].is_granted)

    def _caught_up(self, state: State, r: int) -> Replica:
        """With everything that has happened until now."""
        replica = state.replicas[r]
        views = tuple(self._viewed(replica, t, moves) for t, moves in enumerate(state.moves))
        return replica._replace(views=views, behind=(), unseen=0)

    # --- leaders ---------------------------------------------------------------------------------

    def _take_over(self, state: State, r: int, pool: int) -> Steps:
        """Claim, catch up, seal, catch up again. A seal that the last holder wrote down before it
        ended is continued.
        """
        holder, replica, note = state.leases[pool], state.replicas[r], state.notes[pool]
        phase, changed = replica.roles[pool]
        if phase == Phase.NONE:
            if holder not in REPLICAS:
                is_clean = holder == RELEASED
                new = Role(Phase.CLAIMED_CLEAN if is_clean else Phase.CLAIMED)
                claimed = _replaced(state, r, _in(replica, pool, new))
                claimed = claimed._replace(leases=_with(state.leases, pool, r))
                how = " that was released" if is_clean else ""
                yield Step("{r} takes the Lease of {pool}" + how, r, pool), claimed
        elif phase in {Phase.CLAIMED_CLEAN, Phase.CLAIMED}:
            begun, words = self._caught_up(state, r), "{r} catches up for {pool}"
            if Rule.FIRST_CATCH_UP in self._without:
                begun, words = replica, "{r} does not catch up for {pool}"
            if Rule.NEW_TO_HOLDER not in self._without:
                begun = self._all_new(begun, pool)
            is_sealed = phase == Phase.CLAIMED_CLEAN or Rule.SEAL in self._without
            new = Role(Phase.ACTIVE) if is_sealed else Role(Phase.TOUCHING, max(note, 0))
            yield Step(words, r, pool), _replaced(state, r, _in(begun, pool, new))
        elif phase == Phase.TOUCHING:
            is_holder = holder == r
            if note == NOTHING and is_holder:
                noted = state._replace(notes=_with(state.notes, pool, changed))
                yield Step("{r} writes on the Lease of {pool} that it seals", r, pool), noted
            remaining = self._to_touch(state, r, pool) & ~changed
            for pod in range(len(PODS)):
                if remaining >> pod & 1:
                    # a touch of a bound pod changes nothing for any replica
                    is_waiting = state.pods[pod] == WAITING
                    reached = self._changed(state, pod) if is_waiting else _newer(state, 1 << pod)
                    yield Step("{r} touches {pod} for {pool}", r, pool, pod), reached
            if remaining:
                return
            begun = self._caught_up(state, r)
            words = "{r} catches up with its touches for {pool}"
            if Rule.SECOND_CATCH_UP in self._without:
                begun, words = replica, "{r} begins for {pool}"
            begins = _replaced(state, r, _in(begun, pool, Role(Phase.ACTIVE)))
            if note != NOTHING and Rule.SAYS_SO not in self._without:
                if not is_holder:
                    return
                begins = begins._replace(notes=_with(state.notes, pool, NOTHING))
                words += ", and writes that it decides"
            yield Step(words, r, pool), begins

    def _all_new(self, replica: Replica, pool: int) -> Replica:
        """What the pool has may have been in another one since it was acknowledged."""
        return replica._replace(
            views=tuple(
                View(view.seen, view.seen, self._bound[thing].is_granted)
                if pool_of(thing, view.seen) == pool
                else view
                for thing, view in enumerate(replica.views)
            )
        )

    def _to_touch(self, state: State, r: int, pool: int) -> int:
        """Pods, as bits, that a binding of the last holder may reach."""
        replica = state.replicas[r]
        bits = 0
        for pod in range(len(PODS)):
            is_waiting = pod in replica.behind or state.pods[pod] == WAITING
            if replica.unseen >> pod & 1 or state.pods[pod] == ABSENT or not is_waiting:
                continue
            pools = {1}
            if pod in OF_A:
                seen = replica.views[NAMESPACE_A].seen
                newest = state.acknowledged[pool][NAMESPACE_A].bit_length() - 1
                if Rule.SEAL_MOVED in self._without:
                    newest = seen
                pools = {pool_of(NAMESPACE_A, at) for at in range(min(newest, seen), seen + 1)}
            if pool in pools:
                bits |= 1 << pod
        return bits

    def _hand_on(self, state: State, r: int, pool: int) -> Steps:
        """Release the pool, or acknowledge that something has left it."""
        replica = state.replicas[r]
        if replica.roles[pool].phase != Phase.ACTIVE or state.leases[pool] != r:
            return
        sent = [q for q in state.requests if q.sender == r and q.pool == pool]
        if not sent or Rule.ANSWERS_BEFORE_YIELD in self._without:
            released = _replaced(state, r, _in(replica, pool, Role()))
            released = released._replace(leases=_with(state.leases, pool, RELEASED))
            yield Step("{r} hands {pool} on", r, pool), released
        for thing, (seen, _, _) in enumerate(replica.views):
            known = state.acknowledged[pool][thing]
            if known >> seen & 1:
                continue
            open_ones = [q for q in sent if _concerns(q, thing) or self._is_about(q, thing)]
            has_left = pool_of(thing, seen) != pool
            if has_left and open_ones and Rule.ANSWERS_BEFORE_ACKNOWLEDGEMENT not in self._without:
                continue
            changes = _with(state.acknowledged[pool], thing, known | 1 << seen)
            acknowledged = _with(state.acknowledged, pool, changes)
            step = Step(
                "{r} writes on the Lease of {pool} where it sees {thing}", r, pool, thing=thing
            )
            yield step, state._replace(acknowledged=acknowledged)

    # --- decisions -------------------------------------------------------------------------------

    def _may_act(self, state: State, r: int, pool: int) -> bool:
        return state.replicas[r].roles[pool].phase == Phase.ACTIVE

    def _confirm(self, state: State, r: int) -> Steps:
        """Use what has come to a pool, once the pool of before has let go."""
        replica = state.replicas[r]
        for thing, (seen, since, is_granted) in enumerate(replica.views):
            pool = pool_of(thing, seen)
            if is_granted or not self._may_act(state, r, pool):
                continue
            newest = (
                len(state.moves) + max(self._moves) if Rule.AS_NEW_AS in self._without else seen
            )
            wanted = sum(1 << at for at in range(since, newest + 1))
            if Rule.ACKNOWLEDGEMENT not in self._without and not all(
                state.acknowledged[other][thing] & wanted
                for other in range(len(POOLS))
                if other != pool
            ):
                continue
            if Rule.CATCH_UP_AFTER_ACKNOWLEDGEMENT not in self._without:
                replica = replica._replace(behind=(), unseen=0)
            views = _with(replica.views, thing, View(seen, since, True))
            step = Step("{r} begins to use {thing} for {pool}", r, pool, thing=thing)
            yield step, _replaced(state, r, replica._replace(views=views))

    def _send(self, state: State, r: int) -> Steps:
        """Decide and send. A request that waits in the replica lands late, too."""
        replica = state.replicas[r]
        mine = {q.pod: q.node for q in state.requests if q.sender == r}
        placed = {
            pod: place
            for pod, place in enumerate(state.pods)
            if place >= 0 and pod not in replica.behind
        } | mine
        for pod, place in enumerate(state.pods):
            if pod in placed or place == ABSENT or replica.unseen >> pod & 1:
                continue
            if pod in replica.behind and Rule.VERSION not in self._without:
                continue  # it would be refused
            if pod in self._apart and any(other in placed for other in self._apart):
                continue
            pool = 1
            if pod in OF_A:
                seen, _, is_granted = replica.views[NAMESPACE_A]
                pool = pool_of(NAMESPACE_A, seen)
                if not is_granted:
                    continue
            if not self._may_act(state, r, pool) or self._waits(replica, pod, pool):
                continue
            for node in range(len(NODES)):
                if node in placed.values() or not _has(replica, pool, node):
                    continue
                if place >= 0:  # it is bound already: the server refuses
                    continue
                requests = tuple(sorted((*state.requests, Request(r, pod, node, pool))))
                step = Step("{r} sends a binding of {pod} to {node}", r, pool, pod, node)
                yield step, state._replace(requests=requests)

    def _waits(self, replica: Replica, pod: int, pool: int) -> bool:
        """Whether a rule of the pod is about pods that another replica may bind."""
        if not self._is_across or pod != B_1:
            return False
        seen, _, is_granted = replica.views[NAMESPACE_A]
        is_let_go = is_granted or Rule.REACHED in self._without
        return pool_of(NAMESPACE_A, seen) != pool or not is_let_go

    def _is_about(self, request: Request, thing: int) -> bool:
        """Whether the sender of a binding has a rule about what has left its pool."""
        has_rule = self._is_across and request.pod == B_1
        return has_rule and thing == NAMESPACE_A and Rule.ANSWERS_OF_RULES not in self._without


def _has(replica: Replica, pool: int, node: int) -> bool:
    """Whether the node belongs to the pool, as the replica knows."""
    if node == 0:
        return pool == 0
    seen, _, is_granted = replica.views[NODE_2]
    return is_granted and pool_of(NODE_2, seen) == pool


def _concerns(request: Request, thing: int) -> bool:
    return request.node == 1 if thing == NODE_2 else request.pod in OF_A


def _with(values: tuple[T, ...], index: int, value: T) -> tuple[T, ...]:
    return (*values[:index], value, *values[index + 1 :])


def _in(replica: Replica, pool: int, role: Role) -> Replica:
    _, views, behind, unseen = replica
    return Replica(_with(replica.roles, pool, role), views, behind, unseen)


def _replaced(state: State, r: int, replica: Replica) -> State:
    pods, leases, replicas, requests, moves, acknowledged, notes = state
    return State(pods, leases, _with(replicas, r, replica), requests, moves, acknowledged, notes)


def _newer(state: State, bits: int) -> State:
    """These pods have a newer version than the catch-ups of all seals that have not ended."""
    replicas = tuple(
        replica._replace(
            roles=tuple(
                Role(phase, changed | bits) if phase == Phase.TOUCHING else Role(phase, changed)
                for phase, changed in replica.roles
            )
        )
        for replica in state.replicas
    )
    notes = tuple(note if note == NOTHING else note | bits for note in state.notes)
    return state._replace(replicas=replicas, notes=notes)
