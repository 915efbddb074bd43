"""Counts of the operations that updated cached results."""

from asched.core.framework.meter import Meter


class OperationCounts:
    """Counts of operations since the start, for benchmarks and regression tests. `meter`, if set,
    times plugins.
    """

    def __init__(self) -> None:
        self.meter: Meter | None = None
        self.full_passes = 0
        self.row_passes = 0
        self.rows = 0
