"""The page /ui/: one document with its style and script inside, without external resources.

It requests `../debug/asched/...` and therefore works at any path: on the port itself, behind the
API server's proxy, or in `asched top --web`. Its content security policy names script and style by
their hashes; the page can load and send nothing else, and runs no text written by users of the
cluster.

Bounds  read once per process, on first use.
"""

from base64 import b64encode
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Final

from asched.serve.pages import NOSNIFF, Page

HTML: Final = "text/html; charset=utf-8"
#: In the order of concatenation.
SCRIPTS: Final = ("words", "charts", "nodes", "lists", "details", "page")
_HERE: Final = Path(__file__).parent


@cache
def page() -> Page:
    """The document with its headers."""
    style = _text("style.css")
    parts = "\n".join(_text(f"{name}.js") for name in SCRIPTS)
    script = f'"use strict";\n(() => {{\n{parts}}})();\n'
    document = _text("page.html")
    document = document.replace("/* style */", style).replace("/* script */", script)
    policy = (
        f"default-src 'none'; script-src {_hash(script)}; style-src {_hash(style)};"
        " connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
    headers = {
        **NOSNIFF,
        "Content-Security-Policy": policy,
        "Referrer-Policy": "no-referrer",
        "X-Frame-Options": "DENY",
    }
    return Page(document.encode(), 200, HTML, headers)


#: Redirect for a missing final slash; relative, as the page may be below another path.
MOVED: Final = Page(b"", 301, "", {"Location": "ui/"})


def _text(name: str) -> str:
    return (_HERE / name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"
