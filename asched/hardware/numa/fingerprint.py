"""The fingerprint of the pods on a node, as agents write it: equal for equal sets of names.

Source  k8stopologyawareschedwg/podfingerprint, version 1: xxHash64 of the sorted hashes of all
        pods, each the hash of its name seeded with that of its namespace
"""

from collections.abc import Iterable
from typing import Final

try:
    from xxhash import xxh64_hexdigest, xxh64_intdigest
except ImportError:
    raise ModuleNotFoundError("it needs xxhash: install asched[numa]") from None

PREFIX: Final = "pfp0v001"


def fingerprint(pods: Iterable[tuple[str, str]]) -> str:
    """The fingerprint of pods, each (namespace, name)."""
    hashes = sorted(
        xxh64_intdigest(name.encode(), seed=xxh64_intdigest(namespace.encode()))
        for namespace, name in pods
    )
    joined = b"".join(value.to_bytes(8, "little") for value in hashes)
    return PREFIX + xxh64_hexdigest(joined)
