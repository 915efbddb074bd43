"""Which pods are vast, that is, expensive to process. To find out, the pod is encoded until a
buffer overflows: a microsecond for a plain pod, a few for the largest.
"""

from typing import Final

import msgspec

from asched.core.model.pod import Pod

#: Bytes of spec and labels. A guess: ordinary pods take hundreds, and a thousand list or map
#: entries as much as this.
VAST_BYTES: Final = 16 << 10
_encoder: Final = msgspec.msgpack.Encoder()


def is_vast(pod: Pod) -> bool:
    """Whether its spec and labels take more than VAST_BYTES."""
    room = bytearray(VAST_BYTES)
    locked = memoryview(room)  # a buffer with a view cannot grow
    try:
        _encoder.encode_into((pod.metadata.labels, pod.spec), room)
    except BufferError:
        return True
    locked.release()
    return False
