"""Which pods are vast: whatever is made of one takes long. To find out, it is written down until
that takes more room than there is: a microsecond for a plain pod, a few for the largest.
"""

from typing import Final

import msgspec

from asched.core.model.pod import Pod

#: Of spec and labels. A guess: pods that people write take hundreds, and a thousand entries of
#: lists and maps as much as this.
VAST_BYTES: Final = 16 << 10
_encoder: Final = msgspec.msgpack.Encoder()


def is_vast(pod: Pod) -> bool:
    """Whether its spec and labels take more than VAST_BYTES."""
    room = bytearray(VAST_BYTES)
    looked_at = memoryview(room)  # what somebody looks at cannot grow
    try:
        _encoder.encode_into((pod.metadata.labels, pod.spec), room)
    except BufferError:
        return True
    looked_at.release()
    return False
