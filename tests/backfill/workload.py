"""Rigid jobs as supercomputers see them, drawn by a seed.

Sizes, run times and their correlation follow the model of Lublin and Feitelson (JPDC 63(11), 2003):
a quarter are serial, most others powers of two; the logarithm of the run time is hyper-gamma, and
larger jobs run longer. Arrivals are a Poisson process with a daily cycle whose rate gives the
load that is asked for. What users ask for is what they need times one to five, rounded up to
minutes, as users round.
"""

from dataclasses import dataclass
from math import ceil, exp, log2, sin, tau
from random import Random

SERIAL, POWER_OF_TWO = 0.24, 0.75
#: Shape and scale of both gammas of ln(seconds), and the share of the first: PA * size + PB.
SHORT, LONG = (4.2, 0.94), (312.0, 0.03)
PA, PB = -0.0054, 0.78
RUN_S_MAX = 2 * 86_400
#: A user asks for as much as he needs up to so many times more.
OVER_MAX = 5.0
DAY_S = 86_400


@dataclass(frozen=True, slots=True)
class Job:
    """`size` processors for `run_s`; it would be ended after `limit_s`. Times in seconds."""

    name: str
    arrives_s: float
    size: int
    run_s: float
    limit_s: int


def jobs(seed: int, count: int, processors: int, load: float, pace: float = 10.0) -> list[Job]:
    """In the order in which they arrive; everything takes 1 / pace of its time."""
    random = Random(seed)
    sizes = [_size_and_time(random, processors) for _ in range(count)]
    drawn = [(size, max(run_s / pace, 1.0)) for size, run_s in sizes]
    work = sum(size * run_s for size, run_s in drawn)
    gap_s = work / (processors * load) / count
    found, now_s = [], 0.0
    for number, (size, run_s) in enumerate(drawn):
        daily = 1 + 0.5 * sin(tau * now_s * pace / DAY_S)
        now_s += random.expovariate(daily / gap_s)
        rounded_s = max(60 / pace, 1.0)
        limit_s = ceil(rounded_s * ceil(run_s * random.uniform(1, OVER_MAX) / rounded_s))
        found.append(Job(f"job-{number}", now_s, size, run_s, limit_s))
    return found


def _size_and_time(random: Random, processors: int) -> tuple[int, float]:
    size = 1
    if random.random() >= SERIAL:
        low, high = 0.8, log2(processors)
        middle = high - 2.5
        exponent = random.uniform(low, middle if random.random() < 0.86 else high)
        exponent = round(exponent) if random.random() < POWER_OF_TWO else exponent
        size = min(max(round(2**exponent), 1), processors)
    shape, scale = SHORT if random.random() < PA * size + PB else LONG
    return size, min(max(exp(random.gammavariate(shape, scale)), 1.0), RUN_S_MAX)
