r"""A scheduler that throws dice: among the nodes that fit, any one is as good as any other.

The profile switches all other scores off, so that nothing else has a say:

    asched demo --nodes 50 --pods 500 --plugin examples/random_scheduler.py \
        --config examples/random_scheduler.yaml
"""

import random
from dataclasses import dataclass

from asched.plugin import Node, Pod


@dataclass
class Args:
    """A seed makes runs repeatable; without one each run differs."""

    seed: int | None = None


class RandomScore:
    def __init__(self, args: Args) -> None:
        self._dice = random.Random(args.seed)

    def score(self, pod: Pod, node: Node) -> int:
        return self._dice.randint(0, 100)
