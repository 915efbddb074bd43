"""Names, labels, and selectors: from a text to a predicate over stored objects.

The label grammar is parsed token by token as in Kubernetes, because the error messages name the
token that was found and those that were expected. Field selectors have a fixed list of fields per
kind. Messages are kube-apiserver's.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from asched_lab.apiserver.refusals import ApiError, bad_request
from asched_lab.apiserver.resources import Resource

LABEL: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
SUBDOMAIN: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
QUALIFIED: Final = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]")
VALUE: Final = re.compile(r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?")

LABEL_LENGTH_MAX: Final = 63
SUBDOMAIN_LENGTH_MAX: Final = 253

LABEL_FAULT: Final = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and"
    " must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used"
    " for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
)
SUBDOMAIN_FAULT: Final = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or"
    " '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used"
    r" for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
NAME_PART_FAULT: Final = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end"
    " with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for"
    " validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
VALUE_FAULT: Final = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.',"
    " and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or"
    " '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)
QUALIFIED_FORM_FAULT: Final = (
    "a qualified name must consist of alphanumeric characters, '-', '_' or '.', and must start and"
    " end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used"
    " for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]') with an optional DNS subdomain"
    " prefix and '/' (e.g. 'example.com/MyName')"
)


def too_long(limit: int) -> str:
    return f"must be no more than {limit} characters"


def label_faults(text: str) -> list[str]:
    """Errors in an RFC 1123 label: namespaces, containers."""
    faults = [too_long(LABEL_LENGTH_MAX)] if len(text) > LABEL_LENGTH_MAX else []
    return faults if LABEL.fullmatch(text) else [*faults, LABEL_FAULT]


def subdomain_faults(text: str) -> list[str]:
    """Errors in an RFC 1123 subdomain: the names of most objects."""
    faults = [too_long(SUBDOMAIN_LENGTH_MAX)] if len(text) > SUBDOMAIN_LENGTH_MAX else []
    return faults if SUBDOMAIN.fullmatch(text) else [*faults, SUBDOMAIN_FAULT]


def path_segment_faults(text: str) -> list[str]:
    """Errors in a name that only has to fit into a path: roles and their bindings."""
    if text in {".", ".."}:
        return [f"may not be '{text}'"]
    return [f"may not contain '{char}'" for char in "/%" if char in text]


def qualified_faults(text: str) -> list[str]:
    """Errors in a qualified name: label keys, finalizers, gates, resources."""
    prefix, slash, name = text.rpartition("/")
    if "/" in prefix:
        return [QUALIFIED_FORM_FAULT]
    faults = []
    if slash and not prefix:
        faults.append("prefix part must be non-empty")
    elif slash:
        faults += [f"prefix part {fault}" for fault in subdomain_faults(prefix)]
    if not name:
        faults.append("name part must be non-empty")
    elif len(name) > LABEL_LENGTH_MAX:
        faults.append(f"name part {too_long(LABEL_LENGTH_MAX)}")
    return faults if QUALIFIED.fullmatch(name) else [*faults, NAME_PART_FAULT]


def value_faults(text: str) -> list[str]:
    """Errors in a label value."""
    faults = [too_long(LABEL_LENGTH_MAX)] if len(text) > LABEL_LENGTH_MAX else []
    return faults if VALUE.fullmatch(text) else [*faults, VALUE_FAULT]


def check_key(key: str) -> None:
    """Raise ValueError, with the message of the selector parser, unless `key` is a label key."""
    faults = qualified_faults(key)
    if faults:
        raise ValueError(f'<nil>: Invalid value: "{key}": {"; ".join(faults)}')


def check_value(value: str) -> None:
    """Raise ValueError, with the message of the selector parser, unless `value` is valid."""
    faults = value_faults(value)
    if faults:
        raise ValueError(f'values[0]: Invalid value: "{value}": {"; ".join(faults)}')


JsonObject = dict[str, Any]
LabelTest = Callable[[Mapping[str, str]], bool]
FieldTest = Callable[[JsonObject], bool]

#: Cached parsed selectors; clients repeat a few. A guess with a margin.
REMEMBERED: Final = 512
TOKEN: Final = re.compile(r"\s*(==|!=|[(),!=<>]|[^\s(),!=<>]+)")
OPERATORS: Final = frozenset({"=", "==", "!=", "in", "notin", "<", ">"})
SYMBOLS: Final = frozenset("(),!=<>") | {"==", "!="}


class _Labels:
    """A cursor over the tokens of one label selector; '' is the end of the text."""

    def __init__(self, text: str) -> None:
        self.tokens = TOKEN.findall(text)
        self.at = 0

    def peek(self) -> str:
        return self.tokens[self.at] if self.at < len(self.tokens) else ""

    def take(self) -> str:
        token = self.peek()
        self.at += 1
        return token

    def parse(self) -> list[LabelTest]:
        tests: list[LabelTest] = []
        while self.peek():
            if self.peek() in SYMBOLS - {"!"}:
                raise bad_request(
                    f"found '{self.peek()}', expected: !, identifier, or 'end of string'"
                )
            try:
                tests.append(self._requirement())
            except ValueError as fault:
                raise bad_request(f"unable to parse requirement: {fault}") from None
            after = self.take()
            if after not in {",", ""}:
                raise bad_request(f"found '{after}', expected: ',' or 'end of string'")
            if after == "," and (not self.peek() or self.peek() in SYMBOLS - {"!"}):
                raise bad_request(f"found '{self.peek()}', expected: identifier after ','")
        return tests

    def _requirement(self) -> LabelTest:
        absent = self.peek() == "!"
        if absent:
            self.take()
        key = self.take()
        if not key or key in SYMBOLS:
            raise ValueError(f"found '{key}', expected: identifier")
        check_key(key)
        if absent:
            return lambda labels: key not in labels
        operator = self.peek()
        if operator in {"", ","}:
            return lambda labels: key in labels
        if operator not in OPERATORS:
            # An identifier in place of an operator ends the requirement; the caller reports the
            # error.
            if operator in SYMBOLS:
                raise ValueError(f"found '{operator}', expected: in, notin, =, ==, !=, gt, lt")
            return lambda labels: key in labels
        self.take()
        values = self._values() if operator in {"in", "notin"} else [self._exact()]
        for value in values:
            check_value(value)
        return _label_test(key, operator, frozenset(values))

    def _values(self) -> list[str]:
        if self.peek() != "(":
            raise ValueError(f"found '{self.take()}' expected: '('")
        self.take()
        values: list[str] = []
        value = ""
        while True:
            word = self.take()
            if word in {",", ")"}:
                values.append(value)
                value = ""
                if word != ",":
                    return values
            elif not word or word in SYMBOLS:
                raise ValueError(f"found '{word}', expected: ',', or ')'")
            else:
                value = word

    def _exact(self) -> str:
        if self.peek() in {"", ","}:
            return ""
        token = self.take()
        if token in SYMBOLS:
            raise ValueError(f"found '{token}', expected: identifier")
        return token


def _label_test(key: str, operator: str, values: frozenset[str]) -> LabelTest:
    if operator in {"!=", "notin"}:
        return lambda labels: labels.get(key) not in values
    if operator in {"<", ">"}:
        bound = int(next(iter(values)))

        def compare(labels: Mapping[str, str]) -> bool:
            text = labels.get(key, "")
            if not re.fullmatch(r"-?\d+", text):
                return False
            return int(text) > bound if operator == ">" else int(text) < bound

        return compare
    return lambda labels: labels.get(key) in values


@lru_cache(maxsize=REMEMBERED)
def label_tests(text: str) -> tuple[LabelTest, ...]:
    """The requirements of a label selector. Raises ApiError 400 for a malformed one."""
    return tuple(_Labels(text).parse())


def _text(value: Any) -> str:
    if value is None:
        return ""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _path(*steps: str, default: str = "") -> Callable[[JsonObject], str]:
    def get(obj: JsonObject) -> str:
        value: Any = obj
        for step in steps:
            value = value.get(step)
            if value is None:
                return default
        return _text(value)

    return get


def _pod_ips(obj: JsonObject) -> str:
    return ",".join(ip["ip"] for ip in obj["status"].get("podIPs") or ())


def _source(obj: JsonObject) -> str:
    return obj["source"].get("component") or obj.get("reportingComponent") or ""


def _reference(label: str, member: str) -> dict[str, Callable[[JsonObject], str]]:
    parts = ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")
    return {f"{label}.{part}": _path(member, part) for part in parts}


METADATA: Final = {
    "metadata.name": _path("metadata", "name"),
    "metadata.namespace": _path("metadata", "namespace"),
}
#: (group, plural) -> the fields of selectors; a kind that is not listed has METADATA only.
FIELDS: Final = {
    ("", "pods"): METADATA
    | {
        "spec.nodeName": _path("spec", "nodeName"),
        "spec.schedulerName": _path("spec", "schedulerName"),
        "spec.restartPolicy": _path("spec", "restartPolicy"),
        "spec.serviceAccountName": _path("spec", "serviceAccountName"),
        "spec.hostNetwork": _path("spec", "hostNetwork", default="false"),
        "status.phase": _path("status", "phase"),
        "status.podIP": _path("status", "podIP"),
        "status.podIPs": _pod_ips,
        "status.nominatedNodeName": _path("status", "nominatedNodeName"),
    },
    ("", "nodes"): {
        "metadata.name": METADATA["metadata.name"],
        "spec.unschedulable": _path("spec", "unschedulable", default="false"),
    },
    ("", "namespaces"): {
        "metadata.name": METADATA["metadata.name"],
        "status.phase": _path("status", "phase"),
    },
    ("", "secrets"): METADATA | {"type": _path("type")},
    ("", "replicationcontrollers"): METADATA
    | {"status.replicas": _path("status", "replicas", default="0")},
    ("batch", "jobs"): METADATA | {"status.successful": _path("status", "succeeded", default="0")},
    ("resource.k8s.io", "resourceslices"): {
        "metadata.name": METADATA["metadata.name"],
        "spec.nodeName": _path("spec", "nodeName"),
        "spec.driver": _path("spec", "driver"),
    },
    ("", "events"): METADATA
    | _reference("involvedObject", "involvedObject")
    | {
        "reason": _path("reason"),
        "reportingComponent": _path("reportingComponent"),
        "source": _source,
        "type": _path("type"),
    },
    ("events.k8s.io", "events"): METADATA
    | _reference("regarding", "involvedObject")
    | {
        "reason": _path("reason"),
        "reportingController": _path("reportingComponent"),
        "type": _path("type"),
    },
}


def _field_term(term: str, whole: str) -> tuple[str, bool, str]:
    match = re.match(r"^((?:[^=!\\]|\\.|!(?!=))*)(!=|==?)(.*)$", term, re.DOTALL)
    if match is None:
        raise bad_request(f"invalid selector: '{whole}'; can't understand '{term}'")
    label, operator, value = match.groups()
    return label, operator != "!=", re.sub(r"\\([,=\\])", r"\1", value)


@lru_cache(maxsize=REMEMBERED)
def field_tests(key: tuple[str, str], text: str) -> tuple[FieldTest, ...]:
    """The terms of a field selector. Raises ApiError 400 for unknown fields and bad syntax."""
    tests: list[FieldTest] = []
    for term in re.split(r"(?<!\\),", text):
        if not term:
            continue
        label, equal, value = _field_term(term, text)
        if not label and not value:
            continue
        getter = FIELDS.get(key, METADATA).get(label)
        if getter is None:
            raise _unknown_field(key, label)
        tests.append(_field_test(getter, value, equal=equal))
    return tuple(tests)


def _unknown_field(key: tuple[str, str], label: str) -> ApiError:
    if key in FIELDS:
        return bad_request(f"field label not supported: {label}")
    known = ", ".join(f'"{name}"' for name in METADATA)
    return bad_request(f'"{label}" is not a known field selector: only {known}')


def _field_test(get: Callable[[JsonObject], str], value: str, *, equal: bool) -> FieldTest:
    if equal:
        return lambda obj: get(obj) == value
    return lambda obj: get(obj) != value


@dataclass(frozen=True, slots=True)
class Selector:
    """Both selectors of a request; `empty` if everything matches."""

    labels: tuple[LabelTest, ...] = ()
    fields: tuple[FieldTest, ...] = ()

    @property
    def empty(self) -> bool:
        return not self.labels and not self.fields

    def matches(self, obj: JsonObject) -> bool:
        for field_test in self.fields:
            if not field_test(obj):
                return False
        if self.labels:
            labels = obj["metadata"].get("labels") or {}
            for label_test in self.labels:
                if not label_test(labels):
                    return False
        return True


def selector_of(res: Resource, query: Mapping[str, str]) -> Selector:
    """The selector of a request. Raises ApiError 400."""
    labels = query.get("labelSelector", "")
    fields = query.get("fieldSelector", "")
    return Selector(
        label_tests(labels) if labels else (),
        field_tests((res.group, res.plural), fields) if fields else (),
    )


def matches_label_selector(selector: JsonObject | None, labels: Mapping[str, str]) -> bool:
    """A LabelSelector of a spec: a null selector matches nothing, an empty one everything."""
    if selector is None:
        return False
    for key, value in (selector.get("matchLabels") or {}).items():
        if labels.get(key) != value:
            return False
    for rule in selector.get("matchExpressions") or ():
        present, value = rule["key"] in labels, labels.get(rule["key"])
        values = rule.get("values") or ()
        is_met = {
            "In": present and value in values,
            "NotIn": not present or value not in values,
            "Exists": present,
            "DoesNotExist": not present,
        }.get(rule["operator"], False)
        if not is_met:
            return False
    return True
