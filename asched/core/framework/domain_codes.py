"""What a filter says of whole domains: of all nodes that show the same value of a label.

A zone that turns would have a third of all rows judged, folded and ranked anew. Where a filter says
the same of every row of a domain, and there are few domains, it says so of the domains alone, and
nobody visits their rows.
"""

from typing import Final

import numpy as np
import numpy.typing as npt

from asched.core.state.nodes import LabelColumn

I32 = npt.NDArray[np.int32]

#: With more values of a label rows are told one by one: a ranking keeps its peaks for each value.
#: A guess: regions have three to six zones.
DOMAINS_MAX: Final = 16


class DomainCodes:
    """`codes` int32[D]: the code of each value id of `column`, that of rows without the label
    first. Kept up to date by the filter, once its stamp has been asked.
    """

    __slots__ = ("codes", "column", "version")

    def __init__(self) -> None:
        #: None: now it speaks of rows, as other filters do
        self.column: LabelColumn | None = None
        self.codes: I32 = np.zeros(0, dtype=np.int32)
        #: moves whenever a domain has another code
        self.version = 0

    def tell(self, column: LabelColumn | None, codes: I32) -> None:
        """These, from now on."""
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
