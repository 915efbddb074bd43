"""Reserve, permit and post-bind working together: pods that need a floating license.

There are `seats` licenses. Reserve takes a seat for the pod, or rejects it if none is left;
Unreserve gives it back when the pod is not bound after all; Permit asks the license server while
other pods go on; PostBind logs the pod and its node.

    asched demo --nodes 50 --pods 200 --plugin examples/license_seats.py

In the demo no pod needs a license, so that all of them pass. `asched.testing` covers the rest:
`tests/examples/test_examples.py`.
"""

from dataclasses import dataclass

from asched.plugin import Node, Pod, logger, pending

LICENSE = "example.com/license"
log = logger("LicenseSeats")


@dataclass
class Args:
    seats: int = 2


class LicenseSeats:
    permit_timeout_s = 60.0  # a pod that waits longer is put back into the queue

    def __init__(self, args: Args) -> None:
        self._seats = args.seats
        self._taken: set[str] = set()

    def reserve(self, pod: Pod, node: Node) -> object:
        if LICENSE not in pod.labels:
            return None
        if len(self._taken) >= self._seats:
            return pending(f"all {self._seats} licenses are taken")
        self._taken.add(pod.uid)
        return None

    def unreserve(self, pod: Pod, node: Node) -> None:
        self._taken.discard(pod.uid)

    async def permit(self, pod: Pod, node: Node) -> str | None:
        if pod.uid not in self._taken:
            return None
        return None if await self.is_granted(pod) else "the license server said no"

    def post_bind(self, pod: Pod, node: Node) -> None:
        if pod.uid in self._taken:
            log.info("License in use", extra={"pod": pod.key, "node": node.name})

    async def is_granted(self, pod: Pod) -> bool:
        """Ask over the network here; other pods are scheduled meanwhile."""
        return pod.labels[LICENSE] != "revoked"
