"""Errors of filters: an error on a node that was reached ends the attempt.

A filter computes all rows at once, also those that an earlier filter rejected; upstream would not
run it there, so an error there is ignored.

Source  kubernetes/kubernetes v1.36 pkg/scheduler/framework/runtime/framework.go (RunFilterPlugins)
"""

from collections.abc import Collection, Sequence

import numpy as np

from asched.core.cluster.pods import PodInfo
from asched.core.framework.rejection import explained
from asched.core.framework.results.cached import CachedVerdict
from asched.core.framework.status import PointError
from asched.core.model.arrays import Mask


def end_on_errors(
    pod: PodInfo,
    active: Sequence[CachedVerdict],
    live: Mask,
    narrowed: Collection[int] | None,
) -> None:
    """`active` in profile order, with codes up to date. Raises PointError."""
    for position, verdict in enumerate(active):
        plugin = verdict.plugin
        if plugin.errors_from is None:
            continue
        for row in np.flatnonzero(verdict.codes >= plugin.errors_from).tolist():
            if not live[row] or (narrowed is not None and row not in narrowed):
                continue
            if not any(earlier.codes[row] for earlier in active[:position]):
                said = explained(plugin, pod, int(verdict.codes[row])).message
                raise PointError(f'running "{plugin.name}" filter plugin: {said}')
