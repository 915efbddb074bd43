"""Statuses and reasons: the results of rules.

Source  kubernetes/kubernetes v1.36 staging/src/k8s.io/kube-scheduler/framework/interface.go
"""

from enum import IntEnum
from typing import Final, NamedTuple, NoReturn

import msgspec

from asched.core.cluster.budget import OutOfTurn


class Code(IntEnum):
    """Upstream's codes and numbers. Rejections are U, UAU and PENDING."""

    SUCCESS = 0
    ERROR = 1
    UNSCHEDULABLE = 2
    UNSCHEDULABLE_AND_UNRESOLVABLE = 3
    WAIT = 4
    SKIP = 5
    PENDING = 6

    @property
    def text(self) -> str:
        """The name in metrics, logs and recordings."""
        return _TEXT[self]

    @property
    def is_rejection(self) -> bool:
        return self in (Code.UNSCHEDULABLE, Code.UNSCHEDULABLE_AND_UNRESOLVABLE, Code.PENDING)


_TEXT: Final = {code: code.name.title().replace("_", "") for code in Code}


#: Exceptions that count as a failure of the plugin that raises them and fail one attempt, including
#: `sys.exit()`, which would end the process. Other BaseExceptions come from elsewhere: Ctrl-C, a
#: closed generator, a cancelled task.
MISTAKES: Final = (Exception, SystemExit)


#: Length of an exception's text in a message: it may quote an object of any size.
RAISED_CHARS_MAX: Final = 1_000


class PointError(Exception):
    """A plugin failed or returned an invalid result: the attempt ends in an error."""


class PluginError(PointError):
    """An invalid result of a plugin, or its exception `error`; `plugin` and `point` name it."""

    def __init__(
        self, message: str, plugin: str, point: str, error: BaseException | None = None
    ) -> None:
        super().__init__(message)
        self.plugin = plugin
        self.point = point
        self.error: BaseException = self if error is None else error

    @classmethod
    def of(cls, plugin: str, point: str, raised: BaseException) -> BaseException:
        """The error for an exception of a plugin, or one that its result caused. `raised` itself if
        it is a PointError, which may name a plugin that this one called, or OutOfTurn.
        """
        if isinstance(raised, (PointError, OutOfTurn)):
            return raised
        return cls(f'plugin "{plugin}" raised {raised_text(raised)}', plugin, point, raised)


def raised_text(raised: BaseException) -> str:
    """The type and text of an exception, for messages."""
    return f"{type(raised).__name__}: {raised}"[:RAISED_CHARS_MAX]


def raise_plugin_error(plugin: str, point: str, raised: BaseException) -> NoReturn:
    """Raise `PluginError.of` these; for the `except` around a call of the plugin."""
    error = PluginError.of(plugin, point, raised)
    try:
        if error is raised:
            raise raised
        raise error from raised
    finally:  # else the error and its traceback would keep each other
        del error, raised


class Reason(NamedTuple):
    """One message of a rule, and whether evicting pods from the node could change it."""

    text: str
    resolvable: bool

    @property
    def code(self) -> Code:
        return Code.UNSCHEDULABLE if self.resolvable else Code.UNSCHEDULABLE_AND_UNRESOLVABLE

    @property
    def status(self) -> "Status":
        return Status(self.code, (self.text,))


class Status(msgspec.Struct, frozen=True):
    """A code with its reasons; the runner sets `plugin`."""

    code: Code
    reasons: tuple[str, ...] = ()
    plugin: str = ""

    @property
    def message(self) -> str:
        return ", ".join(self.reasons)

    @property
    def is_success(self) -> bool:
        return self.code is Code.SUCCESS

    @property
    def is_rejection(self) -> bool:
        return self.code.is_rejection

    def by(self, plugin: str) -> "Status":
        return Status(self.code, self.reasons, plugin)


SUCCESS: Final = Status(Code.SUCCESS)
SKIP: Final = Status(Code.SKIP)


def unschedulable(*reasons: str) -> Status:
    """A rejection that evicting pods could change."""
    return Status(Code.UNSCHEDULABLE, reasons)


def unresolvable(*reasons: str) -> Status:
    """A rejection that evicting pods cannot change."""
    return Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, reasons)


def pending(*reasons: str) -> Status:
    """A rejection that waits for something outside the scheduler."""
    return Status(Code.PENDING, reasons)


def failure(message: str) -> Status:
    """An error: the attempt ends, and the pod is retried after its error backoff."""
    return Status(Code.ERROR, (message,))
