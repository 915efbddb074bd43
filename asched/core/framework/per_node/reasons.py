"""Convert results of plain methods to statuses, and their reasons to codes for columns.

Bounds  REASONS_MAX distinct reasons are stored per plugin; an older code gets a general message. A
        reason that contains a changing number makes many.
"""

from collections import OrderedDict
from typing import Final, NoReturn

import numpy as np

from asched.core.framework.per_node.late import nonsense
from asched.core.framework.status import SUCCESS, Code, PluginError, Status, unschedulable

#: A guess: every node of a large cluster may have several reasons of its own.
REASONS_MAX: Final = 1 << 16
#: Codes start again here; the old ones have been dropped long before.
CODE_MAX: Final = 1 << 30

WANTED: Final = "None, True, False, a reason or a Status"


def status_of(answer: object, plugin: str, point: str) -> Status:
    """None and True accept, False and a text reject, a Status is used as it is.

    Raises PluginError for anything else.
    """
    if answer is None or answer is True:
        return SUCCESS
    if isinstance(answer, Status):
        return answer
    if isinstance(answer, str) and answer:
        return unschedulable(answer)
    if isinstance(answer, (bool, np.bool_)):
        return SUCCESS if answer else unschedulable(f"node(s) were rejected by plugin {plugin}")
    raise nonsense(plugin, point, answer, WANTED)


def raise_error(status: Status, plugin: str) -> NoReturn:
    """End the attempt: the status is neither acceptance nor rejection."""
    said = status.message
    if status.code is not Code.ERROR:
        said = f"{status.code.text} is not a valid answer here {said}".rstrip()
    raise PluginError(f'running "{plugin}" filter plugin: {said}', plugin, "filter")


class Reasons:
    """Codes for the statuses of one plugin, in order of appearance."""

    def __init__(self) -> None:
        self._codes: dict[Status, int] = {}
        self._statuses: OrderedDict[int, Status] = OrderedDict()
        self._next = 1

    def code_of(self, status: Status) -> int:
        known = self._codes.get(status)
        if known is not None:
            return known
        code = self._next
        self._next = code + 1 if code < CODE_MAX else 1
        self._codes[status] = code
        self._statuses[code] = status
        if len(self._statuses) > REASONS_MAX:
            _, oldest = self._statuses.popitem(last=False)
            del self._codes[oldest]
        return code

    def status_of(self, code: int, plugin: str) -> Status:
        known = self._statuses.get(code)
        return known or unschedulable(f"node(s) were rejected by plugin {plugin}")
