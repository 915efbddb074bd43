"""Twin of the sharing plugins' filter: does a pod find devices on a node? Device by device.

`there` are the pods on the node, each with what it asks for and, by `parts`, what it has got: for
each container a list of (device, memory, cores), or None if nobody has told.
"""

from typing import Any, NamedTuple

Json = dict[str, Any]


class Asks(NamedTuple):
    """A container: role, how many devices, memory (or percent of it) and cores of each."""

    role: str
    number: int
    memory: int
    percent: int
    cores: int


class Gpu(NamedTuple):
    id: str
    model: str
    slots: int
    memory: int
    cores: int
    healthy: bool


class There(NamedTuple):
    asks: list[Asks]
    parts: list[list[tuple[str, int, int]]] | None


#: For each container, the devices that it gets.
Choice = list[list[tuple[str, int, int]]]


def finds_devices(
    gpus: list[Gpu], there: list[There], asks: list[Asks], model: str, spread: bool
) -> bool:
    left = {gpu.id: [gpu.slots, gpu.memory, gpu.cores] for gpu in gpus}
    unknown = []
    for pod in there:
        if pod.parts is not None and is_plausible(pod, gpus) and is_free(pod, gpus, left):
            subtract(pod, gpus, left)
        else:
            unknown.append(pod)
    for pod in unknown:
        parts = choose(gpus, left, pod.asks, "", spread)
        if parts is not None:
            subtract(There(pod.asks, parts), gpus, left)
        else:
            subtract_somewhere(pod.asks, gpus, left)
    return choose(gpus, left, asks, model, spread) is not None


def is_free(pod: There, gpus: list[Gpu], left: dict[str, list[int]]) -> bool:
    for gpu in gpus:
        slots, memory, cores = worst(pod, gpu)
        if slots > left[gpu.id][0] or memory > left[gpu.id][1]:
            return False
        if gpu.cores and cores > left[gpu.id][2]:
            return False
    return True


def subtract(pod: There, gpus: list[Gpu], left: dict[str, list[int]]) -> None:
    for gpu in gpus:
        taken = worst(pod, gpu)
        left[gpu.id] = [max(a - b, 0) for a, b in zip(left[gpu.id], taken, strict=True)]


def subtract_somewhere(asks: list[Asks], gpus: list[Gpu], left: dict[str, list[int]]) -> None:
    """A pod that fits nowhere: as on the freest devices, and what is missing there on the next."""
    order = sorted(gpus, key=lambda gpu: -left[gpu.id][1])
    parts = [[(gpu.id, 0, 0) for gpu in order[: one.number]] for one in asks]
    for at in range(3):
        missing = sum(worst(There(asks, parts), gpu)[at] for gpu in gpus)
        for gpu in order:
            taken = min(missing, left[gpu.id][at])
            left[gpu.id][at] -= taken
            missing -= taken


def choose(
    gpus: list[Gpu], left: dict[str, list[int]], asks: list[Asks], model: str, spread: bool
) -> Choice | None:
    """Devices for each container: sidecars first; init containers each beside these alone."""
    found: Choice = [[] for _ in asks]
    beside = left
    for role in ("sidecar", "container", "init"):
        running = beside
        for at, one in enumerate(asks):
            if one.role != role or not one.number:
                continue
            taken = fill(gpus, beside if role == "init" else running, one, model, spread)
            if taken is None:
                return None
            running, found[at] = taken
        if role == "sidecar":
            beside = running
    return found


def is_plausible(pod: There, gpus: list[Gpu]) -> bool:
    """Whether it names as many devices of the node as it asks for."""
    known = {gpu.id for gpu in gpus}
    for one, parts in zip(pod.asks, pod.parts or [], strict=False):
        named = [device for device, _, _ in parts]
        if len(named) != one.number or len(set(named)) != len(named) or set(named) - known:
            return False
    return True


def worst(pod: There, gpu: Gpu) -> list[int]:
    """Slots, memory, cores that a pod takes of a device at its worst moment."""
    moments: dict[str, list[list[int]]] = {"sidecar": [], "container": [], "init": []}
    for at, one in enumerate(pod.asks):
        for device, _, _ in (pod.parts or [])[at]:
            if device == gpu.id:
                memory = one.memory or gpu.memory * one.percent // 100
                moments[one.role].append([1, memory, one.cores])
    always = [sum(column) for column in zip([0, 0, 0], *moments["sidecar"], strict=True)]
    later = [sum(column) for column in zip([0, 0, 0], *moments["container"], strict=True)]
    first = [max(column) for column in zip([0, 0, 0], *moments["init"], strict=True)]
    return [a + max(b, c) for a, b, c in zip(always, later, first, strict=True)]


def fill(
    gpus: list[Gpu], left: dict[str, list[int]], one: Asks, model: str, spread: bool
) -> tuple[dict[str, list[int]], list[tuple[str, int, int]]] | None:
    """What is left with one more container, and its devices."""
    left = {name: list(amounts) for name, amounts in left.items()}
    fitting = [gpu for gpu in gpus if model in gpu.model and takes(gpu, left[gpu.id], one)]
    if len(fitting) < one.number:
        return None
    chosen: list[Gpu] = []
    while len(chosen) < one.number:
        pool = [gpu for gpu in fitting if gpu not in chosen]
        best = pool[0]
        for gpu in pool[1:]:
            here, there = left[gpu.id][1], left[best.id][1]
            if (here > there) if spread else (here < there):
                best = gpu
        chosen.append(best)
    for gpu in chosen:
        memory = one.memory or gpu.memory * one.percent // 100
        for at, amount in enumerate((1, memory, one.cores)):
            left[gpu.id][at] = max(left[gpu.id][at] - amount, 0)
    return left, [(gpu.id, 0, 0) for gpu in chosen]


def takes(gpu: Gpu, left: list[int], one: Asks) -> bool:
    slots, memory, cores = left
    if not gpu.healthy or slots < 1:
        return False
    if (one.memory or gpu.memory * one.percent // 100) > memory:
        return False
    if gpu.cores > 0 and (one.cores > cores or cores == 0):
        return False
    wants_all = one.cores == 100 and gpu.cores == 100
    return not (wants_all and slots < gpu.slots)
