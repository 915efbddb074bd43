"""Qualified names, label values and DNS subdomains: Kubernetes' own rules and messages.

Source  k8s.io/apimachinery/pkg/util/validation (v1.36)
"""

import re
from typing import Final

from asched.names import QUALIFIED_NAME_PATTERN as _NAME
from asched.names import SUBDOMAIN_PATTERN as _SUBDOMAIN

QUALIFIED_NAME_LENGTH_MAX: Final = 63
LABEL_VALUE_LENGTH_MAX: Final = 63
SUBDOMAIN_LENGTH_MAX: Final = 253

_VALUE: Final = f"({_NAME})?"

_NAME_TEXT: Final = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "
    "alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for "
    f"validation is '{_NAME}')"
)
_VALUE_TEXT: Final = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', "
    "and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or "
    f"'12345', regex used for validation is '{_VALUE}')"
)
_SUBDOMAIN_TEXT: Final = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or "
    "'.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used "
    f"for validation is '{_SUBDOMAIN}')"
)
_PARTS_TEXT: Final = (
    f"a valid label key {_NAME_TEXT} with an optional DNS subdomain prefix and '/' "
    "(e.g. 'example.com/MyName')"
)
_EMPTY: Final = "must be non-empty"


def _too_long(limit: int) -> str:
    return f"must be no more than {limit} bytes"


def _length(text: str) -> int:
    return len(text.encode())


def subdomain_faults(value: str) -> list[str]:
    """Faults of a DNS-1123 subdomain."""
    faults = []
    if _length(value) > SUBDOMAIN_LENGTH_MAX:
        faults.append(_too_long(SUBDOMAIN_LENGTH_MAX))
    if not re.fullmatch(_SUBDOMAIN, value):
        faults.append(_SUBDOMAIN_TEXT)
    return faults


def qualified_name_faults(value: str) -> list[str]:
    """Faults of `[prefix/]name`."""
    parts = value.split("/")
    if len(parts) > 2:
        return [_PARTS_TEXT]
    faults = []
    if len(parts) == 2:
        prefix = parts[0]
        texts = subdomain_faults(prefix) if prefix else [_EMPTY]
        faults += [f"prefix part {text}" for text in texts]
    name = parts[-1]
    if not name:
        faults.append(f"name part {_EMPTY}")
    elif _length(name) > QUALIFIED_NAME_LENGTH_MAX:
        faults.append(f"name part {_too_long(QUALIFIED_NAME_LENGTH_MAX)}")
    if not re.fullmatch(_NAME, name):
        faults.append(f"name part {_NAME_TEXT}")
    return faults


def label_value_faults(value: str) -> list[str]:
    """Faults of a label's value."""
    faults = []
    if _length(value) > LABEL_VALUE_LENGTH_MAX:
        faults.append(_too_long(LABEL_VALUE_LENGTH_MAX))
    if not re.fullmatch(_VALUE, value):
        faults.append(_VALUE_TEXT)
    return faults
