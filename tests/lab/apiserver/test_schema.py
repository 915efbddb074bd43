"""Decoding by the table of types: pruning, unknown fields, canonical values, wrong types."""

from collections.abc import Iterator
from typing import Any

import pytest
from kubernetes_asyncio.client import models

from asched_lab.apiserver import schema
from asched_lab.apiserver.resources import BY_KIND, PODS
from tests.lab.whatif.whole_objects import KINDS


def test_unknown_fields_are_named_by_path() -> None:
    _, unknown = schema.decode(
        PODS, {"spec": {"containers": [{"name": "c", "x": 1}], "y": 2}, "z": 3}
    )
    assert unknown == ["spec.containers[0].x", "spec.y", "z"]


@pytest.mark.parametrize(
    "spec",
    [
        {"containers": "x"},
        {"containers": [{"name": 1}]},
        {"priority": "high"},
        {"priority": 2**31},
        {"nodeSelector": ["a"]},
        {"overhead": {"cpu": "lots"}},
    ],
)
def test_wrong_types_are_refused(spec: dict) -> None:
    with pytest.raises(schema.DecodeError):
        schema.decode(PODS, {"spec": spec})


def model_of(api_version: str, kind: str) -> Any:
    version = api_version.rpartition("/")[2]
    names = (f"{version[0].upper()}{version[1:]}{kind}", f"ResourceV1{kind}")
    return next((getattr(models, name) for name in reversed(names) if hasattr(models, name)), None)


def differences(model: Any, type_text: str, path: str, seen: set[str]) -> Iterator[str]:
    """Fields of the client library's model that the table does not have, or with another shape."""
    if type_text in seen or type_text in schema.OPEN_TYPES:
        return
    seen.add(type_text)
    for attribute, of_model in model.openapi_types.items():
        name = model.attribute_map[attribute]
        field = schema.field_of(type_text, name)
        if field is None:
            if name not in ("kind", "apiVersion"):
                yield f"{path}.{name}: not described"
            continue
        shape = "[" if of_model.startswith("list") else "{" if of_model.startswith("dict") else ""
        inner = of_model.partition("[" if shape == "[" else "str, ")[2][:-1] if shape else of_model
        if field.form != "any" and shape != (field.form[0] if field.form[0] in "[{" else ""):
            yield f"{path}.{name}: {field.form}, but {of_model}"
        elif (form := field.form.strip("[]{}")) in schema.TYPES and hasattr(models, inner):
            yield from differences(getattr(models, inner), form, f"{path}.{name}", seen)


def test_every_field_of_the_client_library_is_described() -> None:
    """A field that is missing here would be refused in manifests as misspelt."""
    seen: set[str] = set()
    found: list[str] = []
    for key in KINDS:
        if (model := model_of(*key)) is not None:
            found += differences(model, schema.type_name(BY_KIND[key]), key[1], seen)
    assert found == []
    assert len(seen) > 200
