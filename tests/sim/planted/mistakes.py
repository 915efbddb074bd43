"""The mistakes: one small change of the source each, that somebody might make.

`was` stands in the file exactly once; `now` takes its place. Where another fence makes a change
harmless, that one is left out with it (`also`).
"""

from typing import Final, NamedTuple

SEAL: Final = "host/seal.py"
SUSPECTS: Final = "core/queue/suspects.py"
CONFIRMATION: Final = "core/cycle/confirmation.py"
ELECTION: Final = "core/leader/election.py"
BUDGETS: Final = "core/preemption/budgets.py"
COST: Final = "core/preemption/cost.py"
VICTIMS: Final = "core/preemption/victims.py"
WATCH: Final = "kube/watch.py"
QUEUE: Final = "core/queue/queue.py"
CLUSTER: Final = "core/cluster/cluster.py"
HOLDS: Final = "core/cluster/holds.py"
NOMINATED: Final = "core/framework/results/nominated.py"


class Mistake(NamedTuple):
    area: str
    name: str
    #: The scenario that is there for it.
    scenario: str
    path: str
    was: str
    now: str
    #: (path, was, now) of whatever else stands in the way of it, planted with it.
    also: tuple[tuple[str, str, str], ...] = ()


MISTAKES: Final = (
    # --- fences ----------------------------------------------------------------------------------
    Mistake(
        "fences",
        "nobody asks whether it may act",
        "LeaderChanges",
        "host/loops.py",
        "not self._is_void and (self.leadership is None or self.leadership.may_act())",
        "True",
    ),
    Mistake(
        "fences",
        "a leader acts for a lease longer than it holds it",
        "LeaderChanges",
        ELECTION,
        "self.fence_s = min(sent_s + rules.retry_s + rules.renew_s, sent_s + rules.duration_s)",
        "self.fence_s = sent_s + 2 * rules.duration_s",
    ),
    Mistake(
        "fences",
        "a lease is taken while its holder lives",
        "LeaderChanges",
        ELECTION,
        "if record.holder and not self._holds() and self._is_valid(now_s):",
        "if record.holder and not self._holds() and self._is_valid(now_s + 4.0):",
    ),
    Mistake(
        "fences",
        "a renewal counts from its answer",
        "LeaderChanges",
        ELECTION,
        "self._renewed(self._tried_s)",
        "self._renewed(now_s + 2.0)",
    ),
    # --- confirmation of bindings ----------------------------------------------------------------
    Mistake(
        "confirmation",
        "a lost binding that is not carried out yet is given up",
        "LateBindings",
        CONFIRMATION,
        "(BindingPhase.LOST, ReadPending): BindingPhase.RESENT,",
        "(BindingPhase.LOST, ReadPending): BindingPhase.RELEASED,",
    ),
    Mistake(
        "confirmation",
        "nobody waits until a request can not arrive any more",
        "LateBindings",
        CONFIRMATION,
        "yield _pause(bind, cluster, LANDS_WITHIN_S)",
        "yield _pause(bind, cluster, 0.0)",
    ),
    Mistake(
        "confirmation",
        "a binding is sent again whatever has happened to the node",
        "NodeFlapping",
        CONFIRMATION,
        "again = newest(lost is not None) if may_send else None",
        "again = bind.pod if may_send else None",
    ),
    Mistake(
        "confirmation",
        "a pod that was placed elsewhere counts as placed here",
        "SideBySide",
        CONFIRMATION,
        "if isinstance(answer, ReadPlaced) and answer.node != bind.node:",
        "if False:",
    ),
    Mistake(
        "confirmation",
        "a conflict is taken for a success",
        "BurningServer",
        CONFIRMATION,
        "if answer.code == CONFLICT and f'already assigned to node \"{bind.node}\"'"
        " in answer.message:",
        "if answer.code == CONFLICT:",
    ),
    Mistake(
        "confirmation",
        "the place of a refused binding is kept",
        "EveryPhase",
        "core/cycle/binding.py",
        "given_back = yield from give_back(context, attempt, self.node)",
        "given_back = False",
    ),
    # --- disruption budgets ----------------------------------------------------------------------
    Mistake(
        "budgets",
        "what goes is not counted",
        "Budgets",
        BUDGETS,
        "allowed[numbers] -= 1",
        "allowed[numbers]",
    ),
    Mistake(
        "budgets",
        "violations cost nothing",
        "Budgets",
        COST,
        "violating.sum(axis=0),",
        "np.zeros(victims.shape[1], dtype=np.int64),",
    ),
    Mistake(
        "budgets",
        "protected pods are put back last",
        "Budgets",
        VICTIMS,
        "key=lambda i: not over[i])",
        "key=lambda i: over[i])",
    ),
    Mistake(
        "budgets",
        "a budget's new numbers are not heard",
        "Budgets",
        BUDGETS,
        "            self.log.add(POD_DISRUPTION_BUDGET.resource, key)\n"
        "        self._is_counted = False",
        "            pass",
    ),
    # --- watches ---------------------------------------------------------------------------------
    Mistake(
        "watches",
        "a list deletes nothing",
        "Incident05",
        "core/cluster/list_parts.py",
        "return listed, listed.keys()",
        "return listed, None",
    ),
    Mistake(
        "watches",
        "a deletion is taken for a change",
        "RollingDrain",
        WATCH,
        "put(Gone(kind, event.obj) if event.type == codec.DELETED else Seen(kind, event.obj))",
        "put(Seen(kind, event.obj))",
    ),
    Mistake(
        "watches",
        "after 410 it goes on from now, without a list",
        "Churn",
        WATCH,
        "            raise Relist(self.version, str(error)) from error\n        except TRY_AGAIN",
        '            self.version = ""\n        except TRY_AGAIN',
    ),
    Mistake(
        "watches",
        "a list tells nothing new of what is known",
        "Incident08",
        CLUSTER,
        'if same and old.metadata.resource_version == obj.metadata.resource_version != "":',
        "if same:",
    ),
    Mistake(
        "watches",
        "time may go back",
        "Incident17",
        "kube/history.py",
        "            if runs_backwards(version, now):",
        "            if False:",
    ),
    Mistake(
        "watches",
        "silence is never looked into",
        "Incident11",
        "kube/doubt.py",
        "        elif was_probe:",
        "        elif False:",
    ),
    Mistake(
        "watches",
        "a pod made anew under its name keeps its old place",
        "LostEvents",
        CLUSTER,
        "if old is not None and old.metadata.uid != pod.metadata.uid:",
        "if False:",
    ),
    # --- the queue -------------------------------------------------------------------------------
    Mistake(
        "queue",
        "changes during an attempt are lost",
        "Advisers",
        QUEUE,
        "except_uid, self.gangs)\n        self.in_flight.record(change)",
        "except_uid, self.gangs)",
    ),
    Mistake(
        "queue",
        "a pod that changes during its attempt is not tried again",
        "Advisers",
        QUEUE,
        "                self.in_flight.record(Change(trigger, old, new))\n            return",
        "                pass\n            return",
    ),
    Mistake(
        "queue",
        "a pod that is gone stays queued",
        "Churn",
        QUEUE,
        "        if queued is not None:\n            self.places.leave(queued)",
        "        if queued is not None and False:\n            self.places.leave(queued)",
    ),
    Mistake(
        "queue",
        "a failed pod comes back as it was before",
        "Advisers",
        QUEUE,
        "            return\n        queued.pod = pod_now\n",
        "            return\n",
    ),
    Mistake(
        "queue",
        "a freed place wakes nobody",
        "BurningServer",
        "core/cycle/binding.py",
        "        if given_back:\n            context.queue.move(freed, context.now_s)\n"
        "        make_failure =",
        "        make_failure =",
    ),
    # --- holds -----------------------------------------------------------------------------------
    Mistake(
        "holds",
        "what is held does not count",
        "HeldPlaces",
        HOLDS,
        "        if is_moved:\n            self._move(hold, 1)\n",
        "",
    ),
    Mistake(
        "holds",
        "what was held is never given back",
        "HeldPlaces",
        HOLDS,
        "        if not hold.is_lifted:\n            self._move(hold, -1)\n"
        "        return hold.places",
        "        return hold.places",
    ),
    # --- nominations -----------------------------------------------------------------------------
    Mistake(
        "nominations",
        "promised room is free for all",
        "IncidentN2",
        NOMINATED,
        "rejected |= layer.codes(verdict, pod)[:height] != 0",
        "pass",
    ),
    Mistake(
        "nominations",
        "a pod that is placed keeps its promise",
        "Preemptors",
        "core/cycle/placing.py",
        "        context.nominator.delete(info.pod.metadata.uid)\n",
        "",
    ),
    Mistake(
        "nominations",
        "promises of pods that are gone stay",
        "Incident06",
        QUEUE,
        "        if pod.metadata.uid in self.nominator.by_uid:\n"
        "            self.nominator.delete(pod.metadata.uid)\n"
        "        queued = self.places.get(pod.key)",
        "        queued = self.places.get(pod.key)",
    ),
    # --- neighbours ------------------------------------------------------------------------------
    Mistake(
        "neighbours",
        "evictions for others' benefit never end",
        "IncidentN1",
        "core/preemption/taken_nodes.py",
        "PAUSE_S: Final = 60.0",
        "PAUSE_S: Final = 0.0",
    ),
    Mistake(
        "neighbours",
        "the next pod goes to the kubelet that refused the last",
        "Incident01",
        "core/cluster/refusals.py",
        "HOLD_S: Final = 10.0",
        "HOLD_S: Final = 0.0",
    ),
    # --- as a stranger would ---------------------------------------------------------------------
    Mistake(
        "fences",
        "what waits in a lane is sent after the lease was lost",
        "LeaderChanges",
        "kube/transport.py",
        "        if not self._may_send():",
        "        if False:",
        (("serve/telemetry/measured.py", "        if self._may_send():", "        if True:"),),
    ),
    Mistake(
        "fences",
        "a lease that somebody else has taken is renewed",
        "LeaderChanges",
        ELECTION,
        "        if self._holds():\n            self.slow_renewals += 1",
        "        if self._holds() or self.is_leader:\n            self.slow_renewals += 1",
        ((ELECTION, "if self.is_leader and now_s >= self.fence_s:", "if False:"),),
    ),
    Mistake(
        "fences",
        "a leader tries to renew after its time",
        "LeaderChanges",
        ELECTION,
        "if self.is_leader and now_s >= self.fence_s:",
        "if False:",
        ((ELECTION, "        if now_s >= self.fence_s:\n            return self._lost()\n", ""),),
    ),
    Mistake(
        "confirmation",
        "a place is given back when the second of two requests is refused",
        "LateBindings",
        CONFIRMATION,
        "(BindingPhase.RESENT, Refused): BindingPhase.HELD,",
        "(BindingPhase.RESENT, Refused): BindingPhase.RELEASED,",
    ),
    Mistake(
        "confirmation",
        "nobody looks whether the watch has shown the place",
        "LateBindings",
        CONFIRMATION,
        "        if placed is not None:\n            return placed",
        "        if False:\n            return placed",
    ),
    Mistake(
        "confirmation",
        "the place of a pod that goes while it is bound is kept",
        "EveryPhase",
        "core/queue/event_handlers.py",
        "return _released(new) if starts_to_end else []",
        "return []",
    ),
    Mistake(
        "budgets",
        "budgets are read once",
        "Budgets",
        BUDGETS,
        "if entries is not None and not entries and not self._changed:",
        "if entries is not None and not self._changed:",
    ),
    Mistake(
        "watches",
        "of what comes at once the first is taken",
        "RollingDrain",
        WATCH,
        "        for event in events:\n            if event.type == codec.ERROR:",
        "        for event in events[:1]:\n            if event.type == codec.ERROR:",
    ),
    Mistake(
        "watches",
        "the version moves on with bookmarks alone",
        "Churn",
        WATCH,
        "            if event.version:\n",
        "            if event.version and event.obj is None:\n",
    ),
    Mistake(
        "watches",
        "a list that is older than what is known is believed",
        "Churn",
        WATCH,
        "        if runs_backwards(self.version, everything.version):",
        "        if False:",
    ),
    # --- with no look at the simulation ----------------------------------------------------------
    Mistake(
        "fences",
        "a lease is given back that somebody else holds",
        "LeaderChanges",
        ELECTION,
        "        if record.holder != self.rules.identity:\n            return None\n",
        "",
    ),
    Mistake(
        "fences",
        "a lease is written whatever became of it meanwhile",
        "LeaderChanges",
        "host/lease_client.py",
        'self._body(write.lease["metadata"], write)',
        'self._body({**write.lease["metadata"], "resourceVersion": ""}, write)',
    ),
    Mistake(
        "fences",
        "a lease is handed on while a binding may still be carried out",
        "Takeovers",
        "host/loops.py",
        '= self._is_settled\n        await self.tasks.cancel("dispatcher", "pools")\n',
        '= True\n        await self.tasks.cancel("dispatcher", "pools")\n',
    ),
    Mistake(
        "confirmation",
        "an answer that got lost is told as a refusal",
        "LateBindings",
        "kube/retries.py",
        "    if isinstance(effect, ReadPod) or maybe_done:",
        "    if isinstance(effect, ReadPod):",
    ),
    Mistake(
        "confirmation",
        "a binding is for whoever has the name",
        "OldNames",
        "kube/writes.py",
        '"namespace": pod.namespace, "uid": pod.uid}\n    if pod.resource_version:',
        '"namespace": pod.namespace, "uid": ""}\n    if False:',
    ),
    Mistake(
        "confirmation",
        "a pod stays where it was assumed, wherever the watch shows it",
        "SideBySide",
        CLUSTER,
        "info.node_name == pod.spec.node_name and (",
        "True and (",
    ),
    Mistake(
        "budgets",
        "a budget speaks for pods of every namespace",
        "Budgets",
        BUDGETS,
        "self._index.add(frozenset((budget.namespace,)), budget.selector, entry)",
        "self._index.add(None, budget.selector, entry)",
    ),
    Mistake(
        "budgets",
        "the last one that may go counts as one too many",
        "Budgets",
        BUDGETS,
        "(allowed[numbers] < 0)",
        "(allowed[numbers] <= 0)",
    ),
    Mistake(
        "budgets",
        "a budget that is gone speaks on",
        "Budgets",
        BUDGETS,
        "            del self._budgets[key]\n",
        "            pass\n",
    ),
    Mistake(
        "watches",
        "a stream that broke goes on from the newest",
        "Churn",
        WATCH,
        '"""Read one stream from the last version to its end."""\n',
        '""""""\n        if self._is_shaken:\n'
        "            self._version = await self._history.cached(self.kind)\n",
    ),
    Mistake(
        "watches",
        "decisions begin before everything is listed",
        "Quotas",
        "host/loops.py",
        "        for reflector in self.reflectors.values():\n            await",
        "        for reflector in list(self.reflectors.values())[:0]:\n            await",
    ),
    Mistake(
        "watches",
        "of two events of an object the older one is kept",
        "Churn",
        "kube/inbox.py",
        "                self._facts[at - self.drained] = fact\n",
        "",
    ),
    # --- the seal --------------------------------------------------------------------------------
    Mistake(
        "seal",
        "a binding carries no version of its pod",
        "HardRestarts",
        "kube/writes.py",
        "    if pod.resource_version:\n",
        "    if False:\n",
    ),
    Mistake(
        "seal",
        "no pod is touched",
        "HardRestarts",
        SEAL,
        "                await self._touch(pool, kind, obj, message)\n",
        "                del kind, obj\n",
    ),
    Mistake(
        "seal",
        "no claim is touched",
        "InheritedDevices",
        SEAL,
        "if claim.status.allocation is None and self._reach.claim(claim)",
        "if False",
    ),
    Mistake(
        "seal",
        "a pod is touched with the value that it has",
        "HardRestarts",
        SEAL,
        'f"a new scheduler decides about this pod: {run}"',
        '"a new scheduler decides about this pod"',
        ((SEAL, "if version == obj.metadata.resource_version:", "if False:"),),
    ),
    Mistake(
        "seal",
        "decisions begin before the watch shows the last touch",
        "SlowSeals",
        SEAL,
        "        if not why:\n            await self._catch_up()\n",
        "        if not why:\n            pass\n",
    ),
    Mistake(
        "seal",
        "a leader that decides still says that it has not",
        "UnfinishedSeals",
        "host/loops.py",
        "            await leadership.decides()\n",
        "",
    ),
    Mistake(
        "seal",
        "a binding that its pod's version refuses loses its place",
        "HardRestarts",
        CONFIRMATION,
        "    return refused.code == CONFLICT and not names_node(refused)",
        "    return False",
    ),
    Mistake(
        "order",
        "after each end of a leader a pod goes behind the others, whatever its priority",
        "KeptOrder",
        SUSPECTS,
        "ENDS_MIN: Final = 3",
        "ENDS_MIN: Final = 1",
        ((SUSPECTS, "        if has_equals:", "        if False:"),),
    ),
    # --- pools -----------------------------------------------------------------------------------
    Mistake(
        "pools",
        "a free pool is not taken for a while",
        "Pools",
        "core/leader/pools.py",
        "return since_s if first == member else since_s + head_start_s",
        "return since_s + 9 * head_start_s",
    ),
    Mistake(
        "pools",
        "a namespace is let go of while a pod with a rule about it is being bound",
        "MovingRules",
        "host/pools.py",
        "return isinstance(rules, NodePools) and rules.reaches_out(info)",
        "return False",
    ),
    Mistake(
        "pools",
        "a pod that is pinned to a node of another pool ignores its quota",
        "PoolRules",
        "core/plugins/node_pools.py",
        "if pools.of_waiting(pod.pod) != pools.of_namespace(own):",
        "if False:",
    ),
    Mistake(
        "pools",
        "pods of another pool's namespace are evicted as others",
        "Pools",
        "core/preemption/eviction.py",
        "if self._is_visitor(now):",
        "if False:",
    ),
    Mistake(
        "seal",
        "without an election nothing is sealed",
        "HardRestarts",
        "host/loops.py",
        "await Seal(self, Predecessor()).run()",
        "await Seal(self, None).run()",
    ),
)
