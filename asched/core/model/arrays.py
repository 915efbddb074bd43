"""The types of arrays, one name for each."""

import numpy as np
import numpy.typing as npt

I32 = npt.NDArray[np.int32]
I64 = npt.NDArray[np.int64]
F64 = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]
#: Numbers of rows or entries, as NumPy finds them.
Indices = npt.NDArray[np.intp]
