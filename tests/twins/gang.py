"""Can a gang be placed at all, in whatever order? By trying everything, on raw objects.

The judge of each single step is `asched/lab/sim/checker.py`, which shares no code with the
scheduler. Equal pods are not told apart, and a state that was seen is not looked at again; nothing
else is left out.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from asched.lab.sim.checker import EndState
from asched.lab.sim.rules import selects

Json = Mapping[str, Any]
#: (class of pods, node) of those that have places, in the order of classes and names.
State = tuple[tuple[int, str], ...]


def on(pod: Json, node: str) -> Json:
    return {**pod, "spec": {**pod["spec"], "nodeName": node}}


def is_placeable(
    nodes: Sequence[Json],
    others: Sequence[Json],
    gang: Sequence[Json],
    needed: int,
    namespaces: Sequence[Json] = (),
    objects: Sequence[Json] = (),
) -> bool:
    """Whether `needed` of the gang's pods can get places one after the other."""
    classes: dict[str, list[Json]] = {}
    for pod in gang:
        key = repr((pod["metadata"].get("labels"), pod["spec"]))
        classes.setdefault(key, []).append(pod)
    members = list(classes.values())
    seen: set[State] = {()}
    stack: list[State] = [()]
    while stack:
        state = stack.pop()
        if len(state) >= needed:
            return True
        for more in _steps(nodes, others, members, state, namespaces, objects):
            if more not in seen:
                seen.add(more)
                stack.append(more)
    return False


def _steps(
    nodes: Sequence[Json],
    others: Sequence[Json],
    members: list[list[Json]],
    state: State,
    namespaces: Sequence[Json],
    objects: Sequence[Json],
) -> Iterator[State]:
    used = [0] * len(members)
    placed = []
    for c, node in state:
        placed.append(on(members[c][used[c]], node))
        used[c] += 1
    world = EndState(nodes, [*others, *placed], namespaces)
    for c, pods in enumerate(members):
        if used[c] == len(pods):
            continue
        for name in world.nodes:
            if fits(world, name, pods[used[c]], objects):
                yield tuple(sorted((*state, (c, name))))


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
    """Whether a node takes a pod, by its claims as well: they must be bound, to volumes that can be
    reached from there, and those for one pod must not be used by another.
    """
    if not world.fits(node, pod):
        return False
    claims = {o["metadata"]["name"]: o for o in objects if o["kind"] == "PersistentVolumeClaim"}
    volumes = {o["metadata"]["name"]: o for o in objects if o["kind"] == "PersistentVolume"}
    for name in claims_of(pod):
        spec = claims[name]["spec"]
        affinity = volumes[spec["volumeName"]]["spec"].get("nodeAffinity")
        asked = {"requiredDuringSchedulingIgnoredDuringExecution": (affinity or {}).get("required")}
        only = {"spec": {"affinity": {"nodeAffinity": asked}}, "metadata": {}}
        if affinity and not selects(world.nodes[node], only):
            return False
        alone = "ReadWriteOncePod" in spec["accessModes"]
        if alone and any(name in claims_of(other) for other in world.counted):
            return False
    return True


def claims_of(pod: Json) -> list[str]:
    named = (v.get("persistentVolumeClaim") for v in pod["spec"].get("volumes") or ())
    return [claim["claimName"] for claim in named if claim]


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
