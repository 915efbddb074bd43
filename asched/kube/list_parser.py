"""Parse a list while it arrives, so that a large body is never stored as a whole.

    {"kind":"PodList","apiVersion":"v1","metadata":{...},"items":[{"metadata":{...},...},{...},...]}
    └──────────────────────── head ─────────────────────────────┘└── part ──┘└── part ──┘└─ rest ─┘

A part ends between two objects, found by the text between them, which cannot occur within a string,
where quotation marks are escaped. It may occur deeper, in an array inside of an object; then the
part is not JSON, and everything is kept until the end, as for a server that formats its lists in
another way.

Bounds  PART_BYTES and one object are buffered, unless no part can be split off.
"""

from typing import Final

from asched.core.model.meta import Record
from asched.kube.codec import KindCodec, ListPage

PART_BYTES: Final = 1 << 20
_ITEMS: Final = b'"items":['
_BETWEEN: Final = b'},{"metadata":{'


class ListParser:
    """Feed it received bytes, then take the rest with `end`."""

    def __init__(self, codec: KindCodec) -> None:
        self._codec = codec
        self._head = b""
        self._kept = bytearray()
        self._looked = 0
        self._is_whole = False

    def feed(self, piece: bytes) -> list[Record]:
        """The complete objects, once there are many."""
        kept = self._kept
        kept += piece
        if self._is_whole or len(kept) - self._looked < PART_BYTES:
            return []
        self._looked = len(kept)
        if not self._head:
            start = kept.find(_ITEMS) + len(_ITEMS)
            if start < len(_ITEMS):
                return []
            self._head = bytes(kept[:start])
            del kept[:start]
        cut = kept.rfind(_BETWEEN)
        if cut < 0:
            return []
        objects = self._codec.array(b"[" + kept[: cut + 1] + b"]")
        if objects is None:
            self._is_whole = True
            return []
        del kept[: cut + 2]
        self._looked = len(kept)
        return objects

    def end(self) -> ListPage:
        """The remaining objects, with the list's version. Raises ProtocolBroken."""
        return self._codec.page(self._head + self._kept)
