"""What runs here: text for people, structured forms for those that name version, group and kind."""

import orjson
import pytest
import yaml

from asched.serve.pages import PageRequest
from asched.serve.zpages import accepted, flagz


def of_kind(kind: str, media_type: str = "application/json", version: str = "v1beta1") -> str:
    return f"{media_type};v={version};g=config.k8s.io;as={kind}"


def test_flags_are_told_by_name_with_another_sign_each_time() -> None:
    page = flagz({"v": "2", "bind-address": "::"})
    texts = [
        page.page(PageRequest("GET", "/flagz", {}, "text/plain")).body.decode() for _ in range(4)
    ]
    for text, sign in zip(texts, (":", "=", " ", ":"), strict=True):
        lines = text.splitlines()
        assert lines[1] == "kube-scheduler flagz"
        assert lines[-2:] == [f"bind-address{sign} ::", f"v{sign} 2"]


@pytest.mark.parametrize("version", ["v1beta1", "v1alpha1"])
@pytest.mark.parametrize("media_type", ["application/json", "application/yaml"])
def test_structured_forms_are_given_to_those_that_name_them(media_type: str, version: str) -> None:
    accept = of_kind("Flagz", media_type, version)
    found = flagz({"v": "2"}).page(PageRequest("GET", "/flagz", {}, f"image/png, {accept}"))
    read = orjson.loads if media_type.endswith("json") else yaml.safe_load
    assert read(found.body) == {
        "kind": "Flagz",
        "apiVersion": f"config.k8s.io/{version}",
        "metadata": {"name": "kube-scheduler"},
        "flags": {"v": "2"},
    }
    assert found.content_type == f"{media_type};g=config.k8s.io;v={version};as=Flagz"
    assert ("Warning" in found.headers) is (version == "v1alpha1")


@pytest.mark.parametrize(
    ("accept", "status"),
    [
        ("", 200),
        ("*/*", 200),
        ("text/*", 200),
        ("TEXT/PLAIN", 200),
        ("application/json", 406),
        (of_kind("Statusz"), 406),
        (of_kind("Flagz", version="v2"), 406),
        (of_kind("Flagz").replace("config.k8s.io", "x"), 406),
        (of_kind("Flagz", "text/html"), 406),
        (f"{of_kind('Statusz')},text/plain", 200),
    ],
)
def test_who_asks_for_anything_else_is_told_what_there_is(accept: str, status: int) -> None:
    found = flagz({}).page(PageRequest("GET", "/flagz", {}, accept))
    assert found.status == status
    assert (b"only the following media types are accepted" in found.body) is (status == 406)


def test_what_is_accepted_is_read_in_order() -> None:
    assert accepted("a/B; x=1;y=2=3, c/d") == [("a/b", {"x": "1", "y": "2=3"}), ("c/d", {})]
    assert accepted("") == [("text/plain", {})]
