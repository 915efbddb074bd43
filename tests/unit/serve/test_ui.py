"""The page /ui/ as a document: nothing from elsewhere, nothing unescaped, and its policy holds."""

import re
from base64 import b64encode
from hashlib import sha256
from pathlib import Path

import pytest

from asched.serve import ui
from tests.unit.serve.world import a_port

FOLDER = Path(ui.__file__).parent
SOURCES = sorted(path for path in FOLDER.iterdir() if path.suffix in (".html", ".css", ".js"))
#: What makes markup or code of text.
MAKES_MARKUP = re.compile(
    r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|srcdoc"
    r"|DOMParser|createContextualFragment|setTimeout\([\"'`]|javascript:"
)
FROM_ELSEWHERE = re.compile(r"https?://(?!www\.w3\.org/2000/svg\b)|@import|url\(|//cdn")


def part(tag: str, document: str) -> str:
    found = re.search(rf"<{tag}>(.*)</{tag}>", document, re.DOTALL)
    assert found is not None
    return found[1]


def test_the_policy_allows_its_own_script_and_style_and_nothing_else() -> None:
    page = ui.page()
    document = page.body.decode()
    hashes = {
        tag: b64encode(sha256(part(tag, document).encode()).digest()).decode()
        for tag in ("script", "style")
    }
    policy = dict(
        rule.strip().split(" ", 1) for rule in page.headers["Content-Security-Policy"].split(";")
    )
    assert policy == {
        "default-src": "'none'",
        "script-src": f"'sha256-{hashes['script']}'",
        "style-src": f"'sha256-{hashes['style']}'",
        "connect-src": "'self'",
        "base-uri": "'none'",
        "form-action": "'none'",
        "frame-ancestors": "'none'",
    }
    assert document.count("<script") == document.count("<style") == 1


def test_every_part_of_it_is_in_it() -> None:
    document = ui.page().body.decode()
    for path in SOURCES:
        if path.suffix != ".html":
            assert path.read_text(encoding="utf-8") in document, path.name


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.name)
def test_nothing_makes_markup_of_text_and_nothing_comes_from_elsewhere(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert not MAKES_MARKUP.findall(text)
    assert not FROM_ELSEWHERE.findall(text)
    assert len(text.splitlines()) <= 400


def test_the_markup_has_no_handlers_and_no_styles_of_its_own() -> None:
    markup = (FOLDER / "page.html").read_text(encoding="utf-8")
    assert not re.findall(r"\s(on[a-z]+|style)\s*=", markup)


async def test_it_is_shown_to_those_who_may_see_it() -> None:
    async with a_port(allowed=("/ui/*",)) as port:
        answer, body = await port.ask("/ui/")
        assert (answer.status, body) == (200, ui.page().body)
        assert answer.headers["Content-Type"] == ui.HTML
        assert answer.headers["Cache-Control"] == "no-cache, private"
        for name, value in ui.page().headers.items():
            assert answer.headers[name] == value
    async with a_port() as port:
        for path in ("/ui/", "/debug/asched/view", "/debug/asched/nodes/n1"):
            assert (await port.ask(path))[0].status == 403
            assert (await port.ask(path, "nobody"))[0].status == 403
            assert (await port.ask(path, "who-is-this"))[0].status == 401


async def test_what_is_asked_of_the_view_is_two_numbers() -> None:
    async with a_port(allowed=("/*",)) as port:
        for query, wanted in (
            ("", {"names_of": -1, "since": 0}),
            ("?names=7&since=12", {"names_of": 7, "since": 12}),
            ("?names=x&since=1e9", {"names_of": -1, "since": 0}),
            ("?names=" + "9" * 400, {"names_of": -1, "since": 0}),
        ):
            answer, _ = await port.ask(f"/debug/asched/view{query}")
            assert await answer.json() == wanted


async def test_nodes_and_gangs_are_found_by_name() -> None:
    async with a_port(allowed=("/*",)) as port:
        port.inspector.told = {"n1": {"node": "n1"}, "team/crew": {"group": "team/crew"}}
        for path, status in (
            ("nodes/n1", 200),
            ("nodes/n2", 404),
            ("nodes/", 404),
            ("groups/team/crew", 200),
            ("groups/team", 404),
            ("groups/team/crew/more", 404),
            ("elsewhere", 404),
        ):
            answer, _ = await port.ask(f"/debug/asched/{path}")
            assert answer.status == status, path
