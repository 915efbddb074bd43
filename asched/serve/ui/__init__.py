"""The page /ui/: one document with its style and its script inside, and nothing from elsewhere.

It asks for `../debug/asched/...`, so that it works wherever it is forwarded to: beside the port
itself, behind the API server's proxy, or in `asched ui`. Its content security policy names its
script and its style by their hashes; the page can load nothing, send nothing away, and runs nothing
that a cluster's users write.

Bounds  read once per process, when first asked for.
"""

from base64 import b64encode
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Final

from asched.serve.pages import NOSNIFF, Page

HTML: Final = "text/html; charset=utf-8"
#: In the order in which they are one script.
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


#: For whoever leaves the slash out; relative, as the page may lie below another path.
MOVED: Final = Page(b"", 301, "", {"Location": "ui/"})


def _text(name: str) -> str:
    return (_HERE / name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"
