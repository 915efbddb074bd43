"""Host ports and volume claims used by placed pods, indexed by port and claim."""

from collections.abc import Iterable

from asched.core.cluster.pods import PodInfo

#: (protocol, port) -> address -> users, on one row.
PortsUsed = dict[tuple[str, int], dict[str, int]]


class Occupancy:
    """`ports[protocol, port][row][ip]` and `claims["namespace/name"][row]` count the pods that use
    them.
    """

    def __init__(self) -> None:
        self.ports: dict[tuple[str, int], dict[int, dict[str, int]]] = {}
        self.claims: dict[str, dict[int, int]] = {}
        #: changes with every change of `claims`
        self.claims_version = 0

    def move(self, info: PodInfo, row: int, amount: int, *, on_trial: bool = False) -> None:
        """A pod was added to (+1) or left (-1) a row.

        In a trial a port is free as soon as one of its users leaves, as upstream (two pods should
        not have it anyway); `ports_of` and `put_back` undo that.
        """
        for ip, protocol, port in info.cls.host_ports:
            by_row = self.ports.setdefault((protocol, port), {})
            used = by_row.setdefault(row, {})
            used[ip] = max(amount, 0) if on_trial else used.get(ip, 0) + amount
            if not used[ip]:
                del used[ip]
            if not used:
                self._clear((protocol, port), row)
        for name in info.cls.claim_names:
            self._move_claim(f"{info.pod.metadata.namespace}/{name}", row, amount)

    def ports_of(self, infos: Iterable[PodInfo], row: int) -> PortsUsed:
        """The users, on a row, of the ports that these pods use."""
        keys = {(protocol, port) for i in infos for _, protocol, port in i.cls.host_ports}
        return {key: dict(self.ports.get(key, {}).get(row, ())) for key in keys}

    def put_back(self, saved: PortsUsed, row: int) -> None:
        """Restore the result of `ports_of`."""
        for key, used in saved.items():
            if used:
                self.ports.setdefault(key, {})[row] = used
            else:
                self._clear(key, row)

    def _clear(self, key: tuple[str, int], row: int) -> None:
        by_row = self.ports.get(key, {})
        by_row.pop(row, None)
        if not by_row:
            self.ports.pop(key, None)

    def _move_claim(self, key: str, row: int, amount: int) -> None:
        rows = self.claims.setdefault(key, {})
        rows[row] = rows.get(row, 0) + amount
        if not rows[row]:
            del rows[row]
        if not rows:
            del self.claims[key]
        self.claims_version += 1
