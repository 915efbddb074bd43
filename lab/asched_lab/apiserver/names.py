"""Rules for names, label keys and label values, with kube-apiserver's messages."""

import re
from typing import Final

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
