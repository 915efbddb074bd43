r"""A random scheduler: every feasible node is equally good.

The profile switches all other scores off:

    asched demo --nodes 50 --pods 500 --plugin examples/random_scheduler.py \
        --config examples/random_scheduler.yaml
"""

import random
from dataclasses import dataclass

from asched.plugin import Node, Pod


@dataclass
class Args:
    """A seed makes runs repeatable; without a seed each run differs."""

    seed: int | None = None


class RandomScore:
    def __init__(self, args: Args) -> None:
        self._random = random.Random(args.seed)

    def score(self, pod: Pod, node: Node) -> int:
        return self._random.randint(0, 100)
