"""Free amounts of a node, and whether they suffice: what "has room" means for reserved places.

A place has room if there is enough of each resource that its holder asks for. Other resources of
the node do not matter, however overcommitted they are: filters do not read them either, and any
client that may create pods can overcommit a node by naming it in `spec.nodeName`.

Amounts are int64[R+1]: axis R of the columns, then the number of pods.
"""

from collections.abc import Mapping

import numpy as np

from asched.core.cluster.nodes import NodeTable
from asched.core.model.arrays import I64, Mask
from asched.core.model.quantity import within_int64


def vector(nodes: NodeTable, accounted: Mapping[str, int], pods: int) -> I64:
    """int64[R+1]: amounts by axis; resources that no node has are left out."""
    amounts = np.zeros(len(nodes.columns.read("allocatable")) + 1, dtype=np.int64)
    for name, amount in accounted.items():
        at = nodes.find_resource(name)
        if at is not None:
            amounts[at] = within_int64(amount)  # the sum of several pods may be larger
    amounts[-1] = pods
    return amounts


def free_amounts(nodes: NodeTable, row: int) -> I64:
    """int64[R+1]: the free amounts of a row, negative where more is requested."""
    read = nodes.columns.read
    amounts = read("allocatable")[:, row] - read("requested")[:, row]
    return np.append(amounts, read("allowed_pods")[row] - read("pod_count")[row])


def have_room(free: I64, need: I64) -> Mask:
    """bool[n]: whether free amounts int64[R+1, n] suffice for int64[R+1] `need`, in the resources
    that it asks for.
    """
    is_needed = need > 0
    enough: Mask = np.logical_and.reduce(need[is_needed, None] <= free[is_needed], axis=0)
    return enough


def has_room(free: I64, need: I64) -> bool:
    """The same for one row: int64[R+1] `free`."""
    return bool(have_room(free[:, None], need)[0])
