"""Devices prepared for the search: values that are read often are computed once.

A `ReadyDevice` exists as long as its version of a slice. It caches the results of selectors
(`SelectorAnswers`).
"""

from fractions import Fraction
from functools import lru_cache
from typing import Any, Final, NamedTuple

from asched.core.dra.cel.frame import Frame
from asched.core.dra.cel.values import CelError
from asched.core.model.claim import Device, DeviceAttribute, ResourceSlice
from asched.core.model.quantity import parse
from asched.core.model.selector import Labels, NodeSelector, NodeTerm, compile_node_selector

#: Some 600,000 results: of six selectors for each of 100,000 devices.
BYTES_MAX: Final = 64 << 20
#: Classes and templates have a handful of selectors.
ANSWERS_MAX: Final = 256
#: An entry of a device's dictionary; an error with its message.
ANSWER_BYTES, ERROR_BYTES = 100, 700

Answer = bool | CelError


class SelectorAnswers:
    """Accounts for the cached results of selectors, which are stored with each device of an
    inventory; equal selectors share one string.

    A selector runs once per device, whatever the number of claims, pods and nodes. Any client that
    may create claims can add selectors of any length: so the cache is bounded in bytes, and the
    devices that were cached first are dropped first, with all their results.

    Bounds  BYTES_MAX per inventory; ANSWERS_MAX per device.
    """

    __slots__ = ("_devices", "_texts", "bytes")

    def __init__(self) -> None:
        self.bytes = 0
        self._devices: dict[ReadyDevice, None] = {}  # in the order of their first result
        self._texts: dict[str, tuple[str, int]] = {}  # (the shared string, number of devices)

    def keep(self, device: "ReadyDevice", expression: str, answer: Answer) -> None:
        """Cache a result for a device."""
        if len(device.answers) >= ANSWERS_MAX:
            self.forget(device)
        text, users = self._texts.get(expression, (expression, 0))
        self._texts[text] = text, users + 1
        if not users:
            self.bytes += len(text)
        device.answers[text] = answer
        self.bytes += _bytes_of(answer)
        self._devices.setdefault(device)
        while self.bytes > BYTES_MAX:
            self.forget(next(iter(self._devices)))

    def forget(self, device: "ReadyDevice") -> None:
        """Drop all results of a device, which may be freed then."""
        if self._devices.pop(device, device) is device:
            return
        for text, answer in device.answers.items():
            self.bytes -= _bytes_of(answer)
            users = self._texts[text][1] - 1
            if users:
                self._texts[text] = text, users
            else:
                del self._texts[text]
                self.bytes -= len(text)
        device.answers.clear()


def _bytes_of(answer: Answer) -> int:
    return ERROR_BYTES if isinstance(answer, CelError) else ANSWER_BYTES


#: Cached compiled node selectors of slices; a generous guess.
SELECTORS_MAX: Final = 4096
#: Cost of compiling an invalid expression, in units of CEL. A guess.
COMPILE_COST: Final = 100


#: A pool is named within its driver.
PoolId = tuple[str, str]
#: (counter set, counter) -> amount.
Amounts = dict[tuple[str, str], Fraction]


class DeviceId(NamedTuple):
    """Names are unique within a pool, pools within a driver."""

    driver: str
    pool: str
    device: str

    @property
    def text(self) -> str:
        return f"{self.driver}/{self.pool}/{self.device}"


class DevicePlace(NamedTuple):
    """Which nodes see devices: one node, all nodes, or those a selector matches. Nothing
    set: none.
    """

    node_name: str | None
    all_nodes: bool | None
    selector: NodeSelector | None

    @property
    def is_given(self) -> bool:
        return bool(self.node_name) or bool(self.all_nodes) or self.selector is not None

    def matches(self, name: str, labels: Labels) -> bool:
        """Whether a node of this name and these labels sees them."""
        if self.node_name:
            return name == self.node_name
        if self.all_nodes or self.selector is None:
            return bool(self.all_nodes)
        return any(term.matches(name, labels) for term in _terms(self.selector))


@lru_cache(maxsize=SELECTORS_MAX)
def _terms(selector: NodeSelector) -> tuple[NodeTerm, ...]:
    return compile_node_selector(selector) or ()


class ReadyDevice:
    """One device of one version of a slice."""

    __slots__ = (
        "_remembered",
        "_variable",
        "allows_multiple",
        "answers",
        "binds",
        "consumes",
        "id",
        "place",
        "pool_id",
        "record",
        "slice",
    )

    def __init__(self, owner: ResourceSlice, record: Device, remembered: SelectorAnswers) -> None:
        spec = owner.spec
        self.slice = owner
        self.record = record
        self.pool_id: PoolId = (spec.driver, spec.pool.name)
        self.id = DeviceId(spec.driver, spec.pool.name, record.name)
        self.allows_multiple = bool(record.allow_multiple_allocations)
        self.binds = bool(record.binding_conditions)
        #: None where the slice decides for all of its devices
        self.place: DevicePlace | None = None
        if spec.per_device_node_selection:
            self.place = DevicePlace(record.node_name, record.all_nodes, record.node_selector)
        self.consumes: Amounts = {
            (used.counter_set, name): parse(counter.value)
            for used in record.consumes_counters or ()
            for name, counter in (used.counters or {}).items()
        }
        self._variable: dict[str, Any] | None = None
        #: cached results of selectors; only `remembered` changes them
        self.answers: dict[str, Answer] = {}
        self._remembered = remembered

    def is_selected(self, expression: str) -> bool:
        """Result of a selector for this device. Raises CelError."""
        answer, _ = self.ask(expression)
        if isinstance(answer, CelError):
            raise answer.with_traceback(None)  # or the traceback would grow each time
        return answer

    def ask(self, expression: str) -> tuple[bool | CelError, int]:
        """(result of a selector for this device, its cost: 0 if it was cached)."""
        known = self.answers.get(expression)
        if known is not None:
            return known, 0
        answer, cost = self._evaluate(expression)
        self._remembered.keep(self, expression, answer)
        return answer, cost

    def _evaluate(self, expression: str) -> tuple[bool | CelError, int]:
        from asched.core.dra.cel.evaluate import compile_expression, device_variable  # 20 ms

        frame = None
        try:
            program = compile_expression(expression)
            if self._variable is None:
                self._variable = device_variable(self.id.driver, self.record)
            frame = Frame({"device": self._variable})
            answer: bool | CelError = program.run(frame)
        except CelError as error:
            answer = error.with_traceback(None)
        return answer, COMPILE_COST if frame is None else frame.spent

    def attribute(self, name: str) -> DeviceAttribute | None:
        """An attribute by its full name; one published without a domain belongs to the driver."""
        attributes = self.record.attributes
        if not attributes:
            return None
        if (found := attributes.get(name)) is not None:
            return found
        domain, slash, key = name.partition("/")
        return attributes.get(key) if slash and domain == self.id.driver else None
