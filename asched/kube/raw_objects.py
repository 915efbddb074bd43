"""Whole nodes and pods, as bytes, for extenders that need them.

The state stores small records; an extender may read any field. While an extender that needs whole
objects is configured, the newest version of each is stored here as the API server sent it, without
the fields that kube-scheduler does not pass on either: kind and apiVersion, which items of a list
do not have, and managedFields.

    codec ──keep──> RawObjects <──splice── request of an extender
    facts ──observe──> deleted objects are dropped

Bounds  one version per object of the requested kinds; an object is trimmed when first used.
"""

from collections.abc import Iterable
from typing import Any, Final

import msgspec

from asched.core.cluster.facts import Fact, Gone, Listed
from asched.core.framework.effects import Whole, Wholes
from asched.core.model.decode import MalformedError
from asched.core.model.kinds import POD, Kind
from asched.core.model.meta import Record
from asched.core.model.pod import Pod
from asched.kube.parsing import read

_ENVELOPE_KEY: Final = "object"
#: Field values are neither decoded nor encoded again.
_fields: Final = msgspec.json.Decoder(dict[str, msgspec.Raw] | None)


class MissingRawObjectError(Exception):
    """The object was deleted before the request was sent, or cannot be passed on."""


class _Original:
    __slots__ = ("bytes", "is_line", "is_trimmed", "uid")

    def __init__(self, uid: str, content: bytes, *, is_line: bool) -> None:
        self.uid = uid
        self.bytes = content
        self.is_line = is_line
        self.is_trimmed = False

    def trimmed(self) -> bytes:
        if not self.is_trimmed:
            fields = _fields_of(self.bytes)
            if self.is_line:
                fields = _fields_of(fields[_ENVELOPE_KEY])
            fields.pop("kind", None)
            fields.pop("apiVersion", None)
            metadata = _fields_of(fields.get("metadata", b"null"))
            if metadata.pop("managedFields", None) is not None:
                fields["metadata"] = msgspec.Raw(msgspec.json.encode(metadata))
            self.bytes = msgspec.json.encode(fields)
            self.is_trimmed = True
        return self.bytes


def _fields_of(content: bytes | msgspec.Raw) -> dict[str, msgspec.Raw]:
    return read(_fields.decode, bytes(content)) or {}


class RawObjects:
    """Stores whole objects of `kinds`; most extenders need only waiting pods."""

    def __init__(self, kinds: Iterable[Kind] = (), *, with_placed_pods: bool = True) -> None:
        self._kept: dict[str, dict[str, _Original]] = {}
        self._with_placed_pods = False
        self.want(kinds, with_placed_pods=with_placed_pods)

    def want(self, kinds: Iterable[Kind], *, with_placed_pods: bool) -> tuple[Kind, ...]:
        """Store these kinds from now on and drop others. Returns the kinds that must be listed
        again.
        """
        kinds = tuple(kinds)
        adds_pods = with_placed_pods and not self._with_placed_pods
        missing = tuple(
            kind
            for kind in kinds
            if kind.resource not in self._kept or (kind.resource == POD.resource and adds_pods)
        )
        self._kept = {kind.resource: self._kept.get(kind.resource, {}) for kind in kinds}
        self._with_placed_pods = with_placed_pods
        return missing

    def wants(self, kind: Kind) -> bool:
        return kind.resource in self._kept

    def count(self, kind: Kind) -> int:
        return len(self._kept.get(kind.resource, ()))

    # --- from the watch --------------------------------------------------------------------------

    def keep(self, kind: Kind, obj: Record, content: bytes, *, is_line: bool = False) -> None:
        """Store a version: the bytes of the object, or of the watch line that contains it."""
        if not self.wants(kind):
            return
        metadata: Any = obj.metadata  # type: ignore[attr-defined]
        if isinstance(obj, Pod) and obj.spec.node_name and not self._with_placed_pods:
            self._kept[kind.resource].pop(metadata.key, None)
            return
        original = _Original(metadata.uid, content, is_line=is_line)
        self._kept[kind.resource][metadata.key] = original

    def observe(self, fact: Fact) -> None:
        """Drop deleted objects."""
        if not self._kept:
            return
        if isinstance(fact, Gone) and self.wants(fact.kind):
            metadata: Any = fact.obj.metadata  # type: ignore[attr-defined]
            kept = self._kept[fact.kind.resource]
            known = kept.get(metadata.key)
            if known is not None and known.uid == metadata.uid:
                del kept[metadata.key]
        elif isinstance(fact, Listed) and self.wants(fact.kind):
            listed = {obj.metadata.key for obj in fact.objects}  # type: ignore[attr-defined]
            kept = self._kept[fact.kind.resource]
            for key in kept.keys() - listed:
                del kept[key]

    # --- for requests ----------------------------------------------------------------------------

    def splice(self, stand_in: Any) -> msgspec.Raw:
        """The bytes for a `Whole` or `Wholes`. Raises MissingRawObjectError."""
        try:
            return self._spliced(stand_in)
        except MalformedError as error:
            raise MissingRawObjectError(f"an object cannot be passed on: {error}") from error

    def _spliced(self, stand_in: Any) -> msgspec.Raw:
        if isinstance(stand_in, Whole):
            original = self._kept.get(stand_in.kind.resource, {}).get(stand_in.key)
            if original is None or stand_in.uid not in ("", original.uid):
                raise MissingRawObjectError(
                    f'{stand_in.kind.plural} "{stand_in.key.rpartition("/")[2]}" not found'
                )
            return msgspec.Raw(original.trimmed())
        if isinstance(stand_in, Wholes):
            kept = self._kept.get(stand_in.kind.resource, {})
            parts = (kept[key].trimmed() for key in stand_in.keys if key in kept)
            return msgspec.Raw(b"[" + b",".join(parts) + b"]")
        raise TypeError(f"{type(stand_in).__name__} cannot be written as JSON")
