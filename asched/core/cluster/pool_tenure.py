"""What a process may use of the pools, where several processes share them by a Lease for each pool.

    a pool is held     its pods may be decided, and its nodes used, by this process alone
    a node or a namespace comes to the pool, a namespace has other labels, or the pool is taken
                       it is used once all other pools have let go of it: they have seen a version
                       at least as new as the one in which it was seen here, and have no open
                       request about it (`core/leader/pools.py`)

Each change of a node or a namespace is noted when it is received, in a turn, so that a recording
repeats what may be used. A version of before counts if a list hides that one left and came back:
the other pool's holder has to see as much before it uses anything.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Final, NamedTuple

#: Newer than all others: of an object whose version is no number.
NEVER: Final = 2**63 - 1


class Since(NamedTuple):
    """The pool of an object, and the version in which it was first seen there."""

    pool: int
    version: int


class Versions(NamedTuple):
    """Up to which resourceVersions of nodes and of namespaces all changes were seen, or other pools
    have let go.
    """

    nodes: int = 0
    namespaces: int = 0

    def merged(self, other: "Versions", choose: Callable[[int, int], int]) -> "Versions":
        """The smaller or the larger ones, as `choose` is min or max."""
        return Versions(*map(choose, self, other))


class Tenure:
    """Pools are numbers, as in `Pools`."""

    def __init__(self) -> None:
        self.held: frozenset[int] = frozenset()
        self.let_go: Mapping[int, Versions] = {}
        #: by name
        self.nodes: dict[str, Since] = {}
        self.namespaces: dict[str, Since] = {}

    def hold(self, let_go: Mapping[int, Versions], new: Iterable[int]) -> set[int]:
        """Hold these pools from now on; all that the `new` ones have is new to them. Returns the
        pools of which more or less may be used.
        """
        changed = {
            pool
            for pool in self.let_go.keys() | let_go.keys()
            if self.let_go.get(pool) != let_go.get(pool)
        }
        self.held, self.let_go = frozenset(let_go), dict(let_go)
        renewed = set(new)
        for known in (self.nodes, self.namespaces):
            for name in [name for name, since in known.items() if since.pool in renewed]:
                del known[name]
        return changed | renewed

    def may_use_node(self, name: str, pool: int, version: str) -> bool:
        """Note the node's pool in this version, and evaluate it."""
        let_go, since = self.let_go.get(pool), _noted(self.nodes, name, pool, version)
        return let_go is not None and since.version <= let_go.nodes

    def may_use_namespace(self, name: str, pool: int, version: str) -> bool:
        """As of a node."""
        let_go, since = self.let_go.get(pool), _noted(self.namespaces, name, pool, version)
        return let_go is not None and since.version <= let_go.namespaces

    def newest(self) -> dict[int, Versions]:
        """By pool: up to which versions other pools have to let go so that all of it is used."""
        nodes, namespaces = dict[int, int](), dict[int, int]()
        for known, newest in ((self.nodes, nodes), (self.namespaces, namespaces)):
            for pool, version in known.values():
                if version > newest.get(pool, 0):
                    newest[pool] = version
        return {
            pool: Versions(nodes.get(pool, 0), namespaces.get(pool, 0))
            for pool in nodes.keys() | namespaces.keys()
        }

    def is_helped(self, pool: int, before: Versions, now: Versions) -> bool:
        """Whether the pool may use more once other pools have let go of more."""
        return any(
            since.pool == pool and lower < since.version <= upper
            for known, lower, upper in zip((self.nodes, self.namespaces), before, now, strict=True)
            for since in known.values()
        )

    def note_node(self, name: str, pool: int, version: str) -> None:
        """Note the node's pool in this version."""
        _noted(self.nodes, name, pool, version)

    def note_namespace(self, name: str, pool: int, version: str, *, is_new: bool) -> None:
        """As of a node. `is_new`: it has other labels, so that pods of other pools may have rules
        about its pods from now on, and may be on their way.
        """
        if is_new:
            self.namespaces.pop(name, None)
        _noted(self.namespaces, name, pool, version)


def _noted(known: dict[str, Since], name: str, pool: int, version: str) -> Since:
    since = known.get(name)
    if since is None or since.pool != pool:
        since = known[name] = Since(pool, number_of(version))
    return since


def number_of(version: str) -> int:
    """A resourceVersion as a number."""
    return int(version) if version.isdecimal() else NEVER
