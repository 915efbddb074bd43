"""Selectors over labels: compiled once, then matched against label maps.

Two kinds exist. A *label selector* (pods, namespaces, persistent volumes) ANDs `matchLabels` and
`matchExpressions`; None matches nothing and an empty one everything. A *node selector* ORs its
terms, adds the integer operators Gt and Lt, and a term without any requirement matches nothing.

Source  kubernetes/kubernetes v1.36 staging/src/k8s.io/apimachinery/pkg/labels/selector.go,
        staging/src/k8s.io/component-helpers/scheduling/corev1/nodeaffinity/nodeaffinity.go
"""

import re
from collections.abc import Iterable, Mapping
from itertools import chain
from operator import itemgetter
from typing import Final, NamedTuple

from asched.core.model.meta import LabelSelector, LabelSelectorRequirement, Record

Labels = Mapping[str, str]

#: A label value has at most 63 characters, and Python refuses numbers of thousands of digits.
_INTEGER: Final = re.compile(r"[+-]?[0-9]{1,63}")
_INT64: Final = 2**63
#: Operators that match an absent label.
_MEETS_ABSENT: Final = frozenset(("NotIn", "DoesNotExist"))


class Requirement(NamedTuple):
    """`key operator values`, with the API's operators: In, NotIn, Exists, DoesNotExist, Gt, Lt."""

    key: str
    operator: str
    values: frozenset[str]

    def matches(self, labels: Labels) -> bool:
        value = labels.get(self.key)
        return self.accepts(value)

    def accepts(self, value: str | None) -> bool:
        """Whether a label with this value (None: absent) meets the requirement."""
        match self.operator:
            case "In":
                return value in self.values
            case "NotIn":
                return value not in self.values
            case "Exists":
                return value is not None
            case "DoesNotExist":
                return value is None
            case "Gt" | "Lt":
                return value is not None and self._compares(value)
        return False

    def _compares(self, value: str) -> bool:
        number, bound = integer(value), integer(next(iter(self.values), ""))
        if number is None or bound is None:
            return False
        return number > bound if self.operator == "Gt" else number < bound


class Selector(NamedTuple):
    """All requirements must hold; an empty selector matches everything."""

    requirements: tuple[Requirement, ...]

    def matches(self, labels: Labels) -> bool:
        return all(requirement.matches(labels) for requirement in self.requirements)

    @property
    def is_everything(self) -> bool:
        return not self.requirements

    def merged(self, other: "Selector") -> "Selector":
        """Both must hold; duplicates are dropped, so that equal selectors stay equal."""
        return Selector(_in_order((*self.requirements, *other.requirements)))


class Matcher:
    """The requirements of one or more selectors that must all hold, prepared for many calls.

    A tenant may write thousands of requirements, but only those for keys of the label set are
    evaluated: for the rest it suffices to know whether one of them requires an absent key.
    """

    __slots__ = ("_by_key", "_needed")

    def __init__(self, requirements: Iterable[Requirement]) -> None:
        self._by_key: dict[str, list[Requirement]] = {}
        needed: dict[str, None] = {}
        for requirement in together(requirements):
            key, operator, _ = requirement
            self._by_key.setdefault(key, []).append(requirement)
            if operator not in _MEETS_ABSENT:
                needed[key] = None
        #: keys without which nothing matches
        self._needed = tuple(needed)

    def matches(self, labels: Labels) -> bool:
        """Whether all requirements hold."""
        if len(self._needed) > len(labels):
            return False
        for key in self._needed:
            if key not in labels:
                return False
        by_key = self._by_key
        for key in by_key if len(by_key) <= len(labels) else labels:
            for requirement in by_key.get(key, ()):
                if not requirement.accepts(labels.get(key)):
                    return False
        return True


def together(requirements: Iterable[Requirement]) -> tuple[Requirement, ...]:
    """Merge requirements with the same key and operator where possible; the result is
    equivalent.
    """
    values_of: dict[tuple[str, str], list[frozenset[str]]] = {}
    written = tuple(requirements)
    for requirement in written:
        values_of.setdefault(requirement[:2], []).append(requirement.values)
    if len(values_of) == len(written):
        return written
    merged = []
    for (key, operator), values in values_of.items():
        if len(values) == 1:
            merged.append(Requirement(key, operator, values[0]))
        elif operator == "In":
            merged.append(Requirement(key, operator, frozenset.intersection(*values)))
        elif operator == "NotIn":
            merged.append(Requirement(key, operator, frozenset().union(*values)))
        else:
            merged += [Requirement(key, operator, each) for each in dict.fromkeys(values)]
    return tuple(merged)


def integer(text: str) -> int | None:
    """A label value as int64, or None if it is none (strconv.ParseInt)."""
    if not _INTEGER.fullmatch(text):
        return None
    number = int(text)
    return number if -_INT64 <= number < _INT64 else None


def compile_selector(
    selector: LabelSelector | None, keys: Iterable[str] = (), labels: Labels | None = None
) -> Selector | None:
    """None stays None (matches nothing). With `matchLabelKeys`, the values of `labels` for these
    keys are required, too. Raises ValueError for an unknown operator.
    """
    if selector is None:
        return None
    own = {key: labels[key] for key in keys if key in labels} if labels else {}
    equal = chain((selector.match_labels or {}).items(), own.items())
    parts = [Requirement(key, "In", frozenset((value,))) for key, value in equal]
    parts.extend(map(_label_requirement, selector.match_expressions or ()))
    return Selector(_in_order(parts))


def equality_selector(labels: Labels | None) -> Selector:
    """The selector of services and replication controllers, a plain map."""
    parts = [Requirement(key, "In", frozenset((value,))) for key, value in (labels or {}).items()]
    return Selector(_in_order(parts))


def matches(selector: Selector | None, labels: Labels | None) -> bool:
    """None matches nothing."""
    return selector is not None and selector.matches(labels or {})


def _in_order(requirements: Iterable[Requirement]) -> tuple[Requirement, ...]:
    """Without duplicates and in a fixed order, so that equivalent selectors are equal. Values are
    not sorted: there may be ten thousands. Requirements of one key and operator keep their order.
    """
    return tuple(sorted(dict.fromkeys(requirements), key=itemgetter(0, 1)))


def _label_requirement(wanted: LabelSelectorRequirement) -> Requirement:
    values = frozenset(wanted.values or ())
    if wanted.operator not in ("In", "NotIn", "Exists", "DoesNotExist"):
        raise ValueError(f'"{wanted.operator}" is not a valid label selector operator')
    if wanted.operator in ("In", "NotIn") and not values:
        raise ValueError(f"key {wanted.key!r}: operator {wanted.operator} needs at least one value")
    return Requirement(wanted.key, wanted.operator, values)


# --- node selectors ------------------------------------------------------------------------------


class NodeSelectorTerm(Record, frozen=True, gc=False):
    match_expressions: tuple[LabelSelectorRequirement, ...] | None = None
    match_fields: tuple[LabelSelectorRequirement, ...] | None = None


class NodeSelector(Record, frozen=True, gc=False):
    node_selector_terms: tuple[NodeSelectorTerm, ...] | None = None


class PreferredSchedulingTerm(Record, frozen=True, gc=False):
    weight: int = 0
    preference: NodeSelectorTerm = NodeSelectorTerm()


class NodeTerm(NamedTuple):
    """One term of a node selector, compiled. `broken` terms match nothing, as upstream."""

    expressions: tuple[Requirement, ...]
    fields: tuple[Requirement, ...]
    broken: bool

    @property
    def is_empty(self) -> bool:
        return not self.expressions and not self.fields

    def matches(self, name: str, labels: Labels) -> bool:
        if self.broken or self.is_empty:
            return False
        return all(r.matches(labels) for r in self.expressions) and all(
            r.accepts(name) for r in self.fields
        )


def compile_term(term: NodeSelectorTerm) -> NodeTerm:
    """Compile one term; an invalid requirement makes the whole term match nothing."""
    expressions = tuple(
        Requirement(r.key, r.operator, frozenset(r.values or ()))
        for r in term.match_expressions or ()
    )
    fields = tuple(
        Requirement(r.key, r.operator, frozenset(r.values or ())) for r in term.match_fields or ()
    )
    broken = not all(map(_node_requirement_is_valid, expressions)) or not all(
        f.key == "metadata.name" and f.operator in ("In", "NotIn") and len(f.values) == 1
        for f in fields
    )
    return NodeTerm(expressions if broken else together(expressions), fields, broken)


def _node_requirement_is_valid(requirement: Requirement) -> bool:
    match requirement.operator:
        case "In" | "NotIn":
            return bool(requirement.values)
        case "Exists" | "DoesNotExist":
            return not requirement.values
        case "Gt" | "Lt":
            return (
                len(requirement.values) == 1 and integer(next(iter(requirement.values))) is not None
            )
    return False


def compile_node_selector(selector: NodeSelector | None) -> tuple[NodeTerm, ...] | None:
    """The terms, any of which may match; None means no restriction."""
    if selector is None:
        return None
    return tuple(compile_term(term) for term in selector.node_selector_terms or ())
