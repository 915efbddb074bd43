"""Integer division as upstream's language does it: toward zero, on 64-bit integers that wrap."""

import numpy as np
import numpy.typing as npt

I64 = npt.NDArray[np.int64]


def quotient(dividend: I64, divisor: I64) -> I64:
    """`dividend / divisor` for positive divisors, truncated toward zero, in place of the dividend.

    A dividend is negative only where a product has left 64 bits (amounts beyond 80 PiB).
    """
    if dividend.size and int(dividend.min()) < 0:
        negative = dividend < 0
        np.negative(dividend, out=dividend, where=negative)
        dividend //= divisor
        np.negative(dividend, out=dividend, where=negative)
    else:
        dividend //= divisor
    return dividend
