"""A selector that limits a serving loop's share of CPU time and serves client addresses in turn.

    loop = asyncio.SelectorEventLoop(FairSelector())

Everything a loop does follows from the events of its selector: handshakes, reads, answers. This one
returns one client event at a time: of the least recently served address, its least recently served
connection. A probe is therefore next even when other clients send much. When the thread has used
more CPU time than its share, the selector sleeps before it returns; bytes of clients wait in the
kernel meanwhile. Events of other files (the listening socket, the API client, calls of other
threads) are returned at once.

Bounds  SHARE of the CPU time that the process uses, or of half a CPU if it uses less; CREDIT_S
        ahead of it, DEBT_S behind it; ADDRESSES_MAX addresses stored.
"""

import selectors
from collections import OrderedDict
from time import monotonic, process_time, sleep, thread_time
from typing import Final

#: The scheduling loop shares the interpreter lock with this thread, and makes the pages.
SHARE: Final = 0.035
#: If the process uses less CPU time, the scheduling loop is idle and can spare more.
IDLE_SHARE: Final = 0.5
CREDIT_S: Final = 0.05
#: No event of an ordinary client costs as much; a page for an administrator may exceed it.
DEBT_S: Final = 0.02
ADDRESSES_MAX: Final = 1024

Ready = tuple[selectors.SelectorKey, int]


class FairSelector(selectors.DefaultSelector):
    """For one thread, which creates it."""

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
        """Remove the descriptor, before it is closed."""
        self._address_of.pop(descriptor, None)
        self._last.pop(descriptor, None)

    def select(self, timeout: float | None = None) -> list[Ready]:
        self._keep_to_share()
        ready = super().select(timeout)
        clients = [event for event in ready if event[0].fd in self._address_of]
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
        return [event for event in ready if event is chosen or event[0].fd not in self._address_of]

    def _last_turn(self, event: Ready) -> tuple[int, int]:
        descriptor = event[0].fd
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
