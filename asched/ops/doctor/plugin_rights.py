"""Rights that a user's plugin declares: `rbac_rules` of its class.

    rbac_rules = [{"apiGroups": ["acme.example"], "resources": ["quotas"], "verbs": ["get"]}]

Rules   a list of rules as in a ClusterRole: apiGroups, resources and verbs are lists of strings,
        resourceNames is optional; `namespace` means that a Role there suffices. The declaration
        grants nothing: `asched doctor` checks each right.
"""

from collections.abc import Iterator, Mapping
from itertools import product
from typing import Any, Final

from asched.core.config.problem import did_you_mean
from asched.ops.doctor.permissions import Right

ATTRIBUTE: Final = "rbac_rules"
REQUIRED: Final = ("apiGroups", "resources", "verbs")
OPTIONAL: Final = ("resourceNames", "namespace")


class RulesError(ValueError):
    """Invalid rules: one line with the place."""


def rights_of(cls: type[Any]) -> tuple[Right, ...]:
    """Every right that the class declares. Raises RulesError."""
    rules = getattr(cls, ATTRIBUTE, ())
    if not isinstance(rules, list | tuple):
        raise RulesError(f"{ATTRIBUTE} must be a list of rules, as in a ClusterRole")
    return tuple(right for i, rule in enumerate(rules) for right in _rights(rule, i))


def _rights(rule: Any, number: int) -> Iterator[Right]:
    where = f"{ATTRIBUTE}[{number}]"
    if not isinstance(rule, Mapping):
        raise RulesError(f'{where} must be a mapping, such as {{"apiGroups": [""], ...}}')
    for key in rule:
        if key not in (*REQUIRED, *OPTIONAL):
            hint = did_you_mean(str(key), (*REQUIRED, *OPTIONAL))
            raise RulesError(f"{where} has no field {key!r}{f' ({hint})' if hint else ''}")
    groups, resources, verbs = (_texts(rule, key, where) for key in REQUIRED)
    named = _texts(rule, "resourceNames", where) if "resourceNames" in rule else ("",)
    namespace = rule.get("namespace", "")
    if not isinstance(namespace, str):
        raise RulesError(f"{where}.namespace must be a string")
    for group, resource, name, verb in product(groups, resources, named, verbs):
        yield Right(verb, group, resource, namespace, name)


def _texts(rule: Mapping[str, Any], key: str, where: str) -> tuple[str, ...]:
    value = rule.get(key)
    is_list = isinstance(value, list | tuple) and all(isinstance(text, str) for text in value)
    if not is_list or not value:
        raise RulesError(f"{where}.{key} must be a non-empty list of strings")
    return tuple(value)
