r"""Prefer cheap nodes: a node label has the cost of the node per hour.

`score` returns the cost, `normalize_scores` maps costs to 0..100, the cheapest feasible node
highest. A node without the label counts as the most expensive.

    asched demo --nodes 50 --pods 500 --plugin examples/cost_aware.py \
        --config examples/cost_aware.yaml

In the demo no node has the label, so that all of them cost the same. `tests/examples` has nodes
with costs.
"""

from dataclasses import dataclass

from asched.plugin import Node, Pod


@dataclass
class Args:
    label: str = "example.com/cents-per-hour"
    without_label: int = 1_000_000


class CostAware:
    def __init__(self, args: Args) -> None:
        self._args = args

    def score(self, pod: Pod, node: Node) -> int:
        written = node.labels.get(self._args.label, "")
        return int(written) if written.isdecimal() else self._args.without_label

    def normalize_scores(self, pod: Pod, scores: dict[str, int]) -> dict[str, int]:
        low, high = min(scores.values()), max(scores.values())
        span = max(high - low, 1)
        return {name: (high - cost) * 100 // span for name, cost in scores.items()}
