"""Filter results for whole domains: all nodes with the same value of a label.

When a zone's result changes, a third of all rows would have to be filtered, folded and ranked
again. A filter with the same result for all rows of a domain, and few domains, provides results by
domain only, and no row is visited.
"""

from typing import Final

import numpy as np
import numpy.typing as npt

from asched.core.cluster.nodes import LabelColumn

I32 = npt.NDArray[np.int32]

#: With more values of a label results are by row: a ranking stores its peaks for each value. A
#: guess: regions have three to six zones.
DOMAINS_MAX: Final = 16


class DomainCodes:
    """`codes` int32[D]: the code of each value id of `column`, rows without the label first. The
    filter updates it when its stamp is read.
    """

    def __init__(self) -> None:
        #: None: the results are by row at the moment
        self.column: LabelColumn | None = None
        self.codes: I32 = np.zeros(0, dtype=np.int32)
        #: changes whenever the code of a domain changes
        self.version = 0

    def tell(self, column: LabelColumn | None, codes: I32) -> None:
        """Set the results."""
        if column is not self.column or codes.tobytes() != self.codes.tobytes():
            self.version += 1
        self.column, self.codes = column, codes

    def of_row(self, row: int) -> int:
        assert self.column is not None
        code: int = self.codes.item(self.column.ids.item(row))
        return code

    def by_row(self, height: int) -> I32:
        """int32[N]"""
        assert self.column is not None
        return self.codes.take(self.column.ids[:height])
