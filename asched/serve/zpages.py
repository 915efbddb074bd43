"""/statusz and /flagz: the process and its flags, for people; structured on request.

The text form uses another separator at each request, as upstream's does, to discourage parsing.
Structured forms are requested by version, group and kind.

Source  pages recorded from kube-scheduler 1.36.2 (component-base/zpages)
"""

import platform
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from itertools import cycle
from time import monotonic, time
from typing import Any, Final

import orjson

from asched.kube.yaml_text import to_yaml
from asched.serve.pages import JSON, Page, PageRequest, failure
from asched.serve.telemetry.component_metrics import KUBERNETES_VERSION

#: The component name of upstream, for existing dashboards and scripts.
COMPONENT: Final = "kube-scheduler"
GROUP: Final = "config.k8s.io"
OLD_VERSION: Final = "v1alpha1"
VERSION: Final = "v1beta1"
YAML: Final = "application/yaml"
PATHS: Final = ("/configz", "/flagz", "/healthz", "/livez", "/metrics", "/readyz")
_DELIMITERS: Final = (":", "=", " ")
_HEAD: Final = (
    "\n{} {}\nWarning: This endpoint is not meant to be machine parseable, has no formatting"
    " compatibility guarantees and is for debugging purposes only.\n"
)
_NOT_ACCEPTABLE: Final = (
    "only the following media types are accepted: application/json, application/yaml, text/plain"
)


class ZPage:
    """One of the two pages; `fields` and `lines` provide its content."""

    def __init__(
        self,
        name: str,
        fields: Callable[[], Mapping[str, Any]],
        lines: Callable[[str], list[str]],
    ) -> None:
        self._name = name
        self._kind = name.capitalize()
        self._fields = fields
        self._lines = lines
        self._delimiters = cycle(_DELIMITERS)

    def page(self, asked: PageRequest) -> Page:
        for media_type, parameters in accepted(asked.accept):
            if media_type in ("text/plain", "*/*", "text/*"):
                return self._text()
            if media_type in (JSON, YAML) and self._is_offered(parameters):
                return self._structured(media_type, parameters["v"])
        return failure(406, "NotAcceptable", _NOT_ACCEPTABLE)

    def _is_offered(self, parameters: Mapping[str, str]) -> bool:
        return (
            parameters.get("g") == GROUP
            and parameters.get("as") == self._kind
            and parameters.get("v") in (VERSION, OLD_VERSION)
        )

    def _text(self) -> Page:
        lines = self._lines(next(self._delimiters))
        return Page((_HEAD.format(COMPONENT, self._name) + "\n".join(lines) + "\n").encode())

    def _structured(self, media_type: str, version: str) -> Page:
        document = {
            "kind": self._kind,
            "apiVersion": f"{GROUP}/{version}",
            "metadata": {"name": COMPONENT},
            **self._fields(),
        }
        body = orjson.dumps(document) if media_type == JSON else to_yaml(document).encode()
        headers = {}
        if version == OLD_VERSION:
            text = f"This version of the {self._name} endpoint is deprecated."
            headers["Warning"] = f'299 - "{text} Please use a newer version."'
        kind = f"{media_type};g={GROUP};v={version};as={self._kind}"
        return Page(body, 200, kind, headers)


def accepted(header: str) -> list[tuple[str, dict[str, str]]]:
    """(media type, parameters) in the order written; everything without a header."""
    found = []
    for part in (header or "text/plain").split(","):
        media_type, *parameters = (word.strip() for word in part.split(";"))
        pairs = (parameter.partition("=") for parameter in parameters)
        found.append((media_type.lower(), {key: value for key, _, value in pairs}))
    return found


def statusz(minor: str = KUBERNETES_VERSION.rpartition(".")[0]) -> ZPage:
    """Start time, and the version whose rules are in force (`minor`)."""
    started_s, began = time(), monotonic()
    runtime = f"python{platform.python_version()}"

    def fields() -> Mapping[str, Any]:
        stamp = datetime.fromtimestamp(started_s, UTC)
        return {
            "startTime": stamp.strftime("%Y-%m-%dT%H:%M:%SZ"),
            "uptimeSeconds": int(monotonic() - began),
            "goVersion": runtime,
            "binaryVersion": KUBERNETES_VERSION,
            "emulationVersion": minor,
            "paths": list(PATHS),
        }

    def lines(delimiter: str) -> list[str]:
        minutes, seconds = divmod(int(monotonic() - began), 60)
        hours, minutes = divmod(minutes, 60)
        stamp = datetime.fromtimestamp(started_s, UTC).strftime("%a %b %e %H:%M:%S UTC %Y")
        values = {
            "Started": stamp,
            "Up": f"{hours} hr {minutes:02} min {seconds:02} sec",
            "Go version": runtime,
            "Binary version": KUBERNETES_VERSION,
            "Emulation version": minor,
            "Paths": " ".join(PATHS),
        }
        return ["", *(f"{name}{delimiter} {value}" for name, value in values.items())]

    return ZPage("statusz", fields, lines)


def flagz(flags: Mapping[str, str]) -> ZPage:
    """Every flag with its value, by name."""
    named = dict(sorted(flags.items()))

    def lines(delimiter: str) -> list[str]:
        return [f"{name}{delimiter} {value}" for name, value in named.items()]

    return ZPage("flagz", lambda: {"flags": named}, lines)
