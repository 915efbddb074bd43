"""Which addresses probe the health pages: in practice the kubelet's.

The source of a kubelet's probe is an address of the pod's node, which no other pod can use. The
manifests name it in NODE_VARIABLE; where the network of pods has a bridge or a virtual router on
the node, the kubelet uses that one's address, which is the pod's gateway. Processes of the
container itself, and of the node where the pod uses its network, use the loopback addresses.

Other networks have yet other addresses. An address that was answered a probe is therefore
remembered, too: the PROBERS_MAX that have probed for the longest time without a pause of PROBER_S.
Further ones do not take the place of these, so that clients cannot displace the kubelet by probing.
"""

import os
import socket
import struct
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path
from typing import Final

#: Addresses of the node, separated by commas.
NODE_VARIABLE: Final = "ASCHED_NODE_ADDRESSES"
LOOPBACK: Final = ("127.0.0.1", "::1")
ROUTES: Final = Path("/proc/net/route")
#: A kubelet or two, load balancers, a monitoring system.
PROBERS_MAX: Final = 8
#: Above the period of each probe of the manifests.
PROBER_S: Final = 60.0


class Probers:
    """Addresses that probe: those of the node, and those that have done so for the longest time."""

    def __init__(self, node: Collection[str] = ()) -> None:
        self._node = frozenset(node)
        #: Address -> its last answered probe.
        self._last_s: dict[str, float] = {}

    def __contains__(self, address: object) -> bool:
        return address in self._node or address in self._last_s

    def answered(self, address: str, now_s: float) -> None:
        """A probe of this address was answered."""
        if address in self._node:
            return
        if address not in self._last_s and len(self._last_s) >= PROBERS_MAX:
            idle = min(self._last_s, key=self._last_s.__getitem__)
            if now_s - self._last_s[idle] < PROBER_S:
                return
            del self._last_s[idle]
        self._last_s[address] = now_s


def addresses_of_node() -> frozenset[str]:
    """What is known of the node's addresses at the start."""
    named = os.environ.get(NODE_VARIABLE, "").split(",")
    return frozenset((*LOOPBACK, *filter(None, map(str.strip, named)), *_gateways()))


def _gateways() -> list[str]:
    """The gateways of the default routes of IPv4; none where the kernel does not list routes."""
    gateways = []
    with suppress(OSError, ValueError, struct.error):
        for line in ROUTES.read_text(encoding="ascii").splitlines()[1:]:
            _, destination, gateway, *_ = line.split()
            if int(destination, 16) == 0 and int(gateway, 16) != 0:
                gateways.append(socket.inet_ntoa(struct.pack("=I", int(gateway, 16))))
    return gateways
