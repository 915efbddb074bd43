"""A selector that keeps a serving loop within its share of CPU time, and serves addresses in turn.

    loop = asyncio.SelectorEventLoop(FairSelector())

Everything a loop does follows from what its selector returns: handshakes, reads, answers. This one
returns one event of a client at a time, that of the address that was served least recently, of its
connections the one served least recently. A probe is therefore next however much others send. When
the thread has used more CPU time than its share, the selector sleeps before it returns anything;
clients' bytes wait in the kernel meanwhile. Events of other files (the listening socket, the API
client, other threads' calls) are returned at once.

Bounds  SHARE of the CPU time that the process takes, or of half a CPU where it takes less; CREDIT_S
        ahead of it, DEBT_S behind it; ADDRESSES_MAX addresses remembered.
"""

import selectors
from collections import OrderedDict
from time import monotonic, process_time, sleep, thread_time
from typing import Final

#: The deciding loop shares Python's lock with this thread, and makes the pages: together below 5 %.
SHARE: Final = 0.035
#: Where the process takes less CPU time, the deciding loop is idle and spares more.
IDLE_SHARE: Final = 0.5
CREDIT_S: Final = 0.05
#: No single event of a client costs so much; what a page for an administrator costs is forgiven.
DEBT_S: Final = 0.02
ADDRESSES_MAX: Final = 1024

Ready = tuple[selectors.SelectorKey, int]


class FairSelector(selectors.DefaultSelector):
    """To be used by one thread, the one that makes it."""

    def __init__(self, share: float = SHARE) -> None:
        super().__init__()
        self._share = share
        self._credit_s = CREDIT_S
        self._now_s = monotonic(), process_time(), thread_time()
        self._address_of: dict[int, str] = {}
        self._turn = 0
        #: Address or descriptor -> its last turn.
        self._last_of: OrderedDict[str, int] = OrderedDict()
        self._last: dict[int, int] = {}

    def join(self, descriptor: int, address: str) -> None:
        """Count a descriptor as a connection of the address."""
        self._address_of[descriptor] = address

    def leave(self, descriptor: int) -> None:
        """Forget the descriptor, before it is closed."""
        self._address_of.pop(descriptor, None)
        self._last.pop(descriptor, None)

    def select(self, timeout: float | None = None) -> list[Ready]:
        self._keep_to_share()
        ready = super().select(timeout)
        clients = [one for one in ready if one[0].fd in self._address_of]
        if not clients:
            return ready
        chosen = min(clients, key=self._last_turn)
        descriptor = chosen[0].fd
        address = self._address_of[descriptor]
        self._turn += 1
        self._last[descriptor] = self._last_of[address] = self._turn
        self._last_of.move_to_end(address)
        if len(self._last_of) > ADDRESSES_MAX:
            self._last_of.popitem(last=False)
        return [one for one in ready if one is chosen or one[0].fd not in self._address_of]

    def _last_turn(self, one: Ready) -> tuple[int, int]:
        descriptor = one[0].fd
        address = self._address_of[descriptor]
        return self._last_of.get(address, 0), self._last.get(descriptor, 0)

    def _keep_to_share(self) -> None:
        then_s, self._now_s = self._now_s, (monotonic(), process_time(), thread_time())
        wall_s, process_s, own_s = (
            now - then for now, then in zip(self._now_s, then_s, strict=True)
        )
        earned_s = max(process_s, wall_s * IDLE_SHARE) * self._share - own_s
        self._credit_s = max(min(self._credit_s + earned_s, CREDIT_S), -DEBT_S)
        if self._credit_s < 0:
            sleep(-self._credit_s / self._share)
