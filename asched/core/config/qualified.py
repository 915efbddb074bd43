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


def _faults(value: str, bytes_max: int, pattern: str, text: str, prefix: str = "") -> list[str]:
    """Faults of a value of limited length that must match a pattern."""
    faults = []
    if len(value.encode()) > bytes_max:
        faults.append(f"{prefix}must be no more than {bytes_max} bytes")
    if not re.fullmatch(pattern, value):
        faults.append(prefix + text)
    return faults


def subdomain_faults(value: str, prefix: str = "") -> list[str]:
    """Faults of a DNS-1123 subdomain."""
    return _faults(value, SUBDOMAIN_LENGTH_MAX, _SUBDOMAIN, _SUBDOMAIN_TEXT, prefix)


def label_value_faults(value: str) -> list[str]:
    return _faults(value, LABEL_VALUE_LENGTH_MAX, _VALUE, _VALUE_TEXT)


def qualified_name_faults(value: str) -> list[str]:
    """Faults of `[prefix/]name`."""
    prefix, slash, name = value.rpartition("/")
    if "/" in prefix:
        return [_PARTS_TEXT]
    faults = []
    if slash:
        part = "prefix part "
        faults += subdomain_faults(prefix, part) if prefix else [part + _EMPTY]
    if not name:
        faults.append(f"name part {_EMPTY}")
    return faults + _faults(name, QUALIFIED_NAME_LENGTH_MAX, _NAME, _NAME_TEXT, "name part ")
