"""What placed pods occupy beside amounts: host ports and volume claims, indexed by what they
occupy.
"""

from collections import defaultdict

from asched.core.state.pods import PodInfo


class Occupancy:
    """`ports[protocol, port][row][ip]` and `claims["namespace/name"][row]` count the pods that use
    them.
    """

    def __init__(self) -> None:
        self.ports: dict[tuple[str, int], dict[int, dict[str, int]]] = defaultdict(dict)
        self.claims: dict[str, dict[int, int]] = {}
        #: moves with every change of `claims`
        self.claims_version = 0

    def move(self, info: PodInfo, row: int, amount: int) -> None:
        """A pod appeared on (+1) or left (-1) a row."""
        for ip, protocol, port in info.cls.host_ports:
            by_row = self.ports[protocol, port]
            used = by_row.setdefault(row, {})
            used[ip] = used.get(ip, 0) + amount
            if not used[ip]:
                del used[ip]
            if not used:
                del by_row[row]
        for name in info.cls.claim_names:
            self._move_claim(f"{info.pod.metadata.namespace}/{name}", row, amount)

    def _move_claim(self, key: str, row: int, amount: int) -> None:
        rows = self.claims.setdefault(key, {})
        rows[row] = rows.get(row, 0) + amount
        if not rows[row]:
            del rows[row]
        if not rows:
            del self.claims[key]
        self.claims_version += 1
