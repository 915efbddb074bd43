"""The layout of pools: what all replicas have to agree on that share them (`core/leader/pools.py`).

A layout is what the pools of a configuration select, and the times of their Leases. Replicas of
two layouts never decide at the same time. Profiles are no part of it: replicas may decide by
different ones, as during a rollout without pools.
"""

import hashlib
from collections.abc import Mapping
from typing import Final, NamedTuple

import msgspec

from asched.core.config.pools import DEFAULT_POOL
from asched.core.config.v1 import SchedulerConfiguration

#: The first part of what is hashed; another protocol gets another one.
PROTOCOL: Final = "1"
DIGITS: Final = 16


def layout_of(configuration: SchedulerConfiguration) -> str:
    """The layout of a configuration, as a hash."""
    pools = [msgspec.to_builtins(pool) for pool in configuration.pools]
    for pool in pools:
        del pool["profile"]
        if pool["lease"] is None:
            del pool["lease"]
    layout = msgspec.json.encode((PROTOCOL, pools, lease_of(configuration)), order="sorted")
    return hashlib.sha256(layout).hexdigest()[:DIGITS]


class LeaseNs(NamedTuple):
    """Times of a Lease in nanoseconds."""

    lease_ns: int
    renew_ns: int
    retry_ns: int


def lease_of(configuration: SchedulerConfiguration) -> LeaseNs:
    """The times of the Lease of all replicas."""
    election = configuration.leader_election
    return LeaseNs(election.lease_duration_ns, election.renew_deadline_ns, election.retry_period_ns)


def leases_of(configuration: SchedulerConfiguration) -> Mapping[str, LeaseNs]:
    """The times of the Lease of each pool, `default` included."""
    times = lease_of(configuration)
    found = dict.fromkeys(pools_of(configuration), times)
    for pool in configuration.pools:
        if (own := pool.lease) is not None:
            found[pool.name] = LeaseNs(
                own.lease_duration_ns or times.lease_ns,
                own.renew_deadline_ns or times.renew_ns,
                own.retry_period_ns or times.retry_ns,
            )
    return found


def pools_of(configuration: SchedulerConfiguration) -> tuple[str, ...]:
    """The names of all pools, `default` included."""
    return (*(pool.name for pool in configuration.pools), DEFAULT_POOL)
