"""What selectors seek among the labels of other pods, and what labels offer to selectors, as keys.

A selector can match only where one of the values is that its first `In` requirement names: so many
keys it seeks. A pod offers one for each of its labels, in its namespace and in whichever.
"""

from collections.abc import Collection, Iterator

from asched.core.model.pod import Pod
from asched.core.model.selector import Selector

#: Namespace or None for whichever, label, value.
LabelKey = tuple[str | None, str, str]


def sought_labels(
    namespaces: Collection[str] | None, selector: Selector | None
) -> Collection[LabelKey] | None:
    """Of pods that match the selector in these namespaces (None: in any), each offers at least one
    of these; None if that cannot be said.
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
