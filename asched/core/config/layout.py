"""The layout of pools: what all replicas have to agree on that share them (`core/leader/pools.py`).

A layout is the pools of a configuration and the times of their Leases. Replicas of two layouts
never decide at the same time.
"""

import hashlib
from typing import Final

import msgspec

from asched.core.config.pools import DEFAULT_POOL
from asched.core.config.v1 import SchedulerConfiguration

#: The first part of what is hashed; another protocol gets another one.
PROTOCOL: Final = "1"
DIGITS: Final = 16


def layout_of(configuration: SchedulerConfiguration) -> str:
    """The layout of a configuration, as a hash."""
    election = configuration.leader_election
    times = election.lease_duration_ns, election.renew_deadline_ns, election.retry_period_ns
    layout = msgspec.json.encode((PROTOCOL, configuration.pools, times), order="sorted")
    return hashlib.sha256(layout).hexdigest()[:DIGITS]


def pools_of(configuration: SchedulerConfiguration) -> tuple[str, ...]:
    """The names of all pools, `default` included."""
    return (*(pool.name for pool in configuration.pools), DEFAULT_POOL)
