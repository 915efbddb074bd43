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


def finds_devices(
    gpus: list[Gpu], there: list[There], asks: list[Asks], model: str, spread: bool
) -> bool:
    left = {gpu.id: [gpu.slots, gpu.memory, gpu.cores] for gpu in gpus}
    for pod in there:
        known = pod if is_plausible(pod, gpus) else There(pod.asks, None)
        for gpu in gpus:
            taken = worst(known, gpu)
            left[gpu.id] = [max(a - b, 0) for a, b in zip(left[gpu.id], taken, strict=True)]
    sidecars = [one for one in asks if one.role == "sidecar"]
    mains = [one for one in asks if one.role == "container"]
    inits = [one for one in asks if one.role == "init"]
    beside = fill(gpus, left, sidecars, model, spread)
    if beside is None or fill(gpus, beside, mains, model, spread) is None:
        return False
    return all(fill(gpus, beside, [one], model, spread) is not None for one in inits)


def is_plausible(pod: There, gpus: list[Gpu]) -> bool:
    """Whether it names as many devices of the node as it asks for; amounts are its request's."""
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
        if pod.parts is None:
            if one.number:
                memory = one.memory or gpu.memory * one.percent // 100
                moments[one.role].append([1, memory, one.cores])
            continue
        for device, _, _ in pod.parts[at]:
            if device == gpu.id:
                memory = one.memory or gpu.memory * one.percent // 100
                moments[one.role].append([1, memory, one.cores])
    always = [sum(column) for column in zip([0, 0, 0], *moments["sidecar"], strict=True)]
    later = [sum(column) for column in zip([0, 0, 0], *moments["container"], strict=True)]
    first = [max(column) for column in zip([0, 0, 0], *moments["init"], strict=True)]
    return [a + max(b, c) for a, b, c in zip(always, later, first, strict=True)]


def fill(
    gpus: list[Gpu], left: dict[str, list[int]], asks: list[Asks], model: str, spread: bool
) -> dict[str, list[int]] | None:
    left = {name: list(amounts) for name, amounts in left.items()}
    for one in asks:
        if not one.number:
            continue
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
    return left


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
