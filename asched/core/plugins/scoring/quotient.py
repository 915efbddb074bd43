"""Integer division as in Go: toward zero, on 64-bit integers that wrap."""

from typing import Final

import numpy as np
import numpy.typing as npt

I64 = npt.NDArray[np.int64]

#: Whole numbers below this are exact floats.
EXACT_MAX: Final = 1 << 53


def quotient(dividend: I64, divisor: I64) -> I64:
    """`dividend / divisor` for positive divisors, truncated toward zero, in place of the dividend.

    A dividend is negative only where a product has overflowed 64 bits (amounts beyond 80 PiB).
    """
    least = int(dividend.min()) if dividend.size else 0
    if least >= 0 and int(max(dividend.max(initial=0), divisor.max(initial=0))) < EXACT_MAX:
        # Below that, float division never rounds up to the next whole number, and is twice as fast.
        np.copyto(dividend, dividend / divisor, casting="unsafe")
    elif least < 0:
        negative = dividend < 0
        np.negative(dividend, out=dividend, where=negative)
        dividend //= divisor
        np.negative(dividend, out=dividend, where=negative)
    else:
        dividend //= divisor
    return dividend
