"""Keys by which a selector finds the pods that it may match.

A selector can match only pods with one of the values of its first `In` requirement: it seeks one
key per value. A pod offers two keys for each label: for its namespace, and for any namespace.
"""

from collections.abc import Collection, Iterator

from asched.core.model.pod import Pod
from asched.core.model.selector import Selector

#: Namespace (None: any), label, value.
LabelKey = tuple[str | None, str, str]


def sought_labels(
    namespaces: Collection[str] | None, selector: Selector | None
) -> Collection[LabelKey] | None:
    """Pods that match the selector in these namespaces (None: in any) offer at least one of these
    keys; None if there is no such set.
    """
    if selector is None:
        return ()
    named = next((r for r in selector.requirements if r.operator == "In"), None)
    if named is None:
        return None
    places: Collection[str | None] = (None,) if namespaces is None else namespaces
    return [(place, named.key, value) for place in places for value in named.values]


def offered_labels(pod: Pod) -> Iterator[LabelKey]:
    namespace = pod.metadata.namespace
    for key, value in pod.labels.items():
        yield None, key, value
        yield namespace, key, value
