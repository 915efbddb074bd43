"""ObjectMeta, owner references, object references, and label selectors in the API's form."""

import msgspec


def runs_backwards(before: str, after: str) -> bool:
    """Whether versions, which are growing numbers, decrease; other texts cannot be compared."""
    is_less = (len(after), after) < (len(before), before)
    return is_less and before.isdigit() and after.isdigit()


class Record(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, gc=False):
    """Base of every API record: camelCase outside, unknown fields ignored, immutable.

    Records cannot form cycles, so that the garbage collector can skip them (`gc=False`).
    """


class OwnerReference(Record, frozen=True, gc=False):
    kind: str = ""
    name: str = ""
    uid: str = ""
    api_version: str = ""
    controller: bool | None = None


class ObjectMeta(Record, frozen=True, gc=False):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    owner_references: tuple[OwnerReference, ...] | None = None
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    finalizers: tuple[str, ...] | None = None

    @property
    def key(self) -> str:
        """`namespace/name`, or the bare name of an object without a namespace."""
        return f"{self.namespace}/{self.name}" if self.namespace else self.name

    @property
    def controller(self) -> OwnerReference | None:
        """The managing owner, if any (metav1.GetControllerOf)."""
        for owner in self.owner_references or ():
            if owner.controller:
                return owner
        return None


class ApiObject(Record, frozen=True, gc=False):
    """Base of the records of whole objects."""

    metadata: ObjectMeta = ObjectMeta()


class ObjectReference(Record, frozen=True, gc=False):
    """core/v1 ObjectReference and its typed relatives; empty fields are left out."""

    api_version: str = ""
    kind: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""
    resource_version: str = ""


class LabelSelectorRequirement(Record, frozen=True, gc=False):
    key: str = ""
    operator: str = ""
    values: tuple[str, ...] | None = None


class LabelSelector(Record, frozen=True, gc=False):
    """metav1.LabelSelector. An absent selector matches nothing; `{}` matches everything."""

    match_labels: dict[str, str] | None = None
    match_expressions: tuple[LabelSelectorRequirement, ...] | None = None
