"""Codes of the verdict on a pod's claims by node: they can be allocated there, or why not."""

from typing import Final

from asched.core.cluster.nodes import Aspect

#: Changes of a node that can change its verdict.
NODE_ASPECTS: Final = Aspect.LABELS | Aspect.ALLOCATABLE | Aspect.LIVE

FITS: Final = 0
CANNOT_ALLOCATE: Final = 1
UNAVAILABLE: Final = 2
STALE_EXTENDED: Final = 3
CANNOT_FIT: Final = 4
INVALID: Final = 5

#: From this value on, a code stands for an error that ends the attempt.
TIMED_OUT: Final = 100
FAILED: Final = 101

INVALID_POOLS: Final = "invalid resource pools were encountered"
TIMED_OUT_TEXT: Final = "timed out trying to allocate devices"
TEXTS: Final = {
    CANNOT_ALLOCATE: "cannot allocate all claims",
    UNAVAILABLE: "resourceclaim not available on the node",
    STALE_EXTENDED: "cannot schedule extended resource claim",
    CANNOT_FIT: "cannot fit resource",
    INVALID: INVALID_POOLS,
}
