"""Can a gang be placed at all, in whatever order? By trying everything, on raw objects.

The judge of each single step is `lab/asched_lab/sim/checker.py`, which shares no code with the
scheduler; claims are served in every way there is (`gang_claims.py`). Equal pods are not told
apart, a state that was seen is not looked at again, nor what comes of one in which too many pods
find no node with room: room only ever gets less. Nothing else is left out.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from asched_lab.sim.checker import EndState, selects
from tests.conformance.twins.gang_claims import (
    Chosen,
    Claims,
    claims_of,
    devices_of,
    requests_of,
    sees,
)

Json = Mapping[str, Any]
#: (class of pods, node, what was chosen for its own claims) of those that have places, in order,
#: and what was chosen for claims that pods share.
State = tuple[tuple[tuple[int, str, tuple[Any, ...]], ...], Chosen]
#: More states than these are not looked at.
STATES_MAX: Final = 60_000


def on(pod: Json, node: str) -> Json:
    return {**pod, "spec": {**pod["spec"], "nodeName": node}}


def is_placeable(
    nodes: Sequence[Json],
    others: Sequence[Json],
    gang: Sequence[Json],
    needed: int,
    namespaces: Sequence[Json] = (),
    objects: Sequence[Json] = (),
) -> bool | None:
    """Whether `needed` of the gang's pods can get places one after the other; None if there are
    too many ways to try.
    """
    classes: dict[str, list[Json]] = {}
    for pod in gang:
        key = repr((pod["metadata"].get("labels"), pod["spec"]))
        classes.setdefault(key, []).append(pod)
    trying = _Trying(nodes, others, list(classes.values()), needed, namespaces, objects)
    first: State = ((), trying.claims.given)
    seen, stack = {first}, [first]
    while stack:
        state = stack.pop()
        if len(state[0]) >= needed:
            return True
        if len(seen) > STATES_MAX:
            return None
        for more in trying.steps(state):
            if more not in seen:
                seen.add(more)
                stack.append(more)
    return False


class _Trying:
    def __init__(
        self,
        nodes: Sequence[Json],
        others: Sequence[Json],
        members: list[list[Json]],
        needed: int,
        namespaces: Sequence[Json],
        objects: Sequence[Json],
    ) -> None:
        self.nodes, self.others, self.members = nodes, others, members
        self.needed = needed
        self.namespaces, self.objects = namespaces, objects
        self.claims = Claims(objects)

    def steps(self, state: State) -> Iterator[State]:
        used = [0] * len(self.members)
        placed: list[Json] = []
        chosen = state[1]
        for c, node, own in state[0]:
            pod = self.members[c][used[c]]
            placed.append(on(pod, node))
            chosen |= frozenset(zip(_own(pod), own, strict=False))
            used[c] += 1
        world = EndState(self.nodes, [*self.others, *placed], self.namespaces)
        roomy = {
            c: [name for name in world.nodes if world.has_place(name, pods[used[c]])]
            for c, pods in enumerate(self.members)
            if used[c] < len(pods)
        }
        left = sum(len(self.members[c]) - used[c] for c, names in roomy.items() if names)
        if len(placed) + left < self.needed:
            return
        for c, names in roomy.items():
            pod = self.members[c][used[c]]
            for name in names:
                if fits(world, name, pod, self.objects):
                    for all_chosen in self.claims.served(world.nodes[name], pod, chosen):
                        yield self._after(state, (c, name), pod, all_chosen - chosen)

    def _after(self, state: State, place: tuple[int, str], pod: Json, new: Chosen) -> State:
        mine = _own(pod)
        found = dict(new)
        own = tuple(found[name] for name in mine) if mine and mine[0] in found else ()
        shared = frozenset((name, what) for name, what in new if name not in mine)
        entries = sorted((*state[0], (*place, own)))
        return tuple(entries), state[1] | shared


def _own(pod: Json) -> list[str]:
    """Its claims that were made from templates."""
    statuses = (pod.get("status") or {}).get("resourceClaimStatuses") or ()
    return [f"device/{one['resourceClaimName']}" for one in statuses]


def can_come_to(
    nodes: Sequence[Json],
    others: Sequence[Json],
    places: Sequence[tuple[Json, str]],
    namespaces: Sequence[Json] = (),
    objects: Sequence[Json] = (),
) -> list[str]:
    """Whether pods can get exactly these places, one after the other: the names of those that
    cannot, after all that could. Where whoever can goes first, later ones may be barred (spread):
    then all orders are tried, if they are few.
    """
    stuck = _at_once(nodes, others, places, namespaces, objects)
    if not stuck or len(places) > 10:
        return stuck
    seen: set[frozenset[int]] = set()
    stack: list[frozenset[int]] = [frozenset()]
    while stack:
        done = stack.pop()
        if len(done) == len(places):
            return []
        world = EndState(nodes, [*others, *(on(*places[i]) for i in done)], namespaces)
        for i, (pod, node) in enumerate(places):
            more = done | {i}
            if i not in done and more not in seen and fits(world, node, pod, objects):
                seen.add(more)
                stack.append(more)
    return stuck


def fits(world: EndState, node: str, pod: Json, objects: Sequence[Json]) -> bool:
    """Whether a node takes a pod, by its claims as well, as far as they are bound: to volumes that
    can be reached from there, and those for one pod must not be used by another.
    """
    if not world.fits(node, pod):
        return False
    claims = {o["metadata"]["name"]: o for o in objects if o["kind"] == "PersistentVolumeClaim"}
    volumes = {o["metadata"]["name"]: o for o in objects if o["kind"] == "PersistentVolume"}
    for name in claims_of(pod):
        spec = claims[name]["spec"]
        if spec.get("volumeName"):
            affinity = volumes[spec["volumeName"]]["spec"].get("nodeAffinity")
            required = (affinity or {}).get("required")
            asked = {"requiredDuringSchedulingIgnoredDuringExecution": required}
            only = {"spec": {"affinity": {"nodeAffinity": asked}}, "metadata": {}}
            if affinity and not selects(world.nodes[node], only):
                return False
        alone = "ReadWriteOncePod" in spec["accessModes"]
        if alone and any(name in claims_of(other) for other in world.counted):
            return False
    return True


def claims_broken(
    nodes: Sequence[Json], places: Sequence[tuple[Json, str]], objects: Sequence[Json]
) -> list[str]:
    """What is wrong with claims in the end: a volume or a device that two have, a claim that is not
    served, or from where its pod is. Devices that may be shared are left aside.
    """
    claims, named = Claims(objects), {node["metadata"]["name"]: node for node in nodes}
    volumes = [c["spec"]["volumeName"] for c in claims.claims.values() if "volumeName" in c["spec"]]
    devices = [one for claim in claims.requests.values() for one in devices_of(claim)]
    alone = [d for d in devices if not claims.devices[d][1].get("allowMultipleAllocations")]
    found = [f"{one} is taken twice" for one in {*alone} if alone.count(one) > 1]
    found += [f"volume {one} is taken twice" for one in {*volumes} if volumes.count(one) > 1]
    for pod, node in places:
        for name in claims_of(pod):
            if not claims.claims[name]["spec"].get("volumeName"):
                found.append(f"volume claim {name} is not bound")
        for name in requests_of(pod):
            held = devices_of(claims.requests[name])
            if not held or not all(sees(named[node], claims.devices[one][0]) for one in held):
                found.append(f"claim {name} has {held}, its pod is on {node}")
    return found


def _at_once(
    nodes: Sequence[Json],
    others: Sequence[Json],
    places: Sequence[tuple[Json, str]],
    namespaces: Sequence[Json],
    objects: Sequence[Json],
) -> list[str]:
    world = EndState(nodes, list(others), namespaces)
    left = list(places)
    while left:
        stuck = []
        for pod, node in left:
            if fits(world, node, pod, objects):
                world.place(pod, node)
            else:
                stuck.append((pod, node))
        if len(stuck) == len(left):
            return [pod["metadata"]["name"] for pod, _ in stuck]
        left = stuck
    return []
