"""Requests to the API server as an administrator, and a watch of pods with times."""

import base64
import http.client
import json
import ssl
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self
from urllib.parse import quote, urlsplit

Json = dict[str, Any]

POLL_S = 0.1


class Api:
    """Requests, one connection each."""

    def __init__(self, kubeconfig: Path) -> None:
        document = json.loads(kubeconfig.read_text(encoding="utf-8"))
        cluster, user = document["clusters"][0]["cluster"], document["users"][0]["user"]
        self._address = urlsplit(cluster["server"])
        authority = base64.b64decode(cluster["certificate-authority-data"]).decode()
        self._context = ssl.create_default_context(cadata=authority)
        with tempfile.NamedTemporaryFile() as file:
            for name in ("client-certificate-data", "client-key-data"):
                file.write(base64.b64decode(user[name]))
            file.flush()
            self._context.load_cert_chain(file.name)

    def ask(self, method: str, path: str, body: Json | None = None) -> Json:
        with self.answer(method, path, body) as answer:
            return dict(json.loads(answer.read()))

    @contextmanager
    def answer(
        self, method: str, path: str, body: Json | None = None, timeout_s: float = 30.0
    ) -> Iterator[http.client.HTTPResponse]:
        connection = http.client.HTTPSConnection(
            str(self._address.hostname),
            self._address.port,
            timeout=timeout_s,
            context=self._context,
        )
        try:
            headers = {"Content-Type": "application/json"}
            connection.request(method, path, json.dumps(body) if body else None, headers)
            answer = connection.getresponse()
            if answer.status >= http.HTTPStatus.BAD_REQUEST:
                raise RuntimeError(f"{method} {path}: {answer.status} {answer.read().decode()}")
            yield answer
        finally:
            connection.close()


@dataclass
class Times:
    """When a pod was seen in each state for the first time, on this machine's clock, in seconds."""

    created: float
    bound: float | None = None
    running: float | None = None
    node: str = ""
    reason: str = ""


@dataclass
class Pods:
    """The pods of a label, watched from `with` on."""

    api: Api
    selector: str
    seen: dict[str, Times] = field(default_factory=dict)

    def __enter__(self) -> Self:
        self._path = f"/api/v1/namespaces/default/pods?labelSelector={quote(self.selector)}"
        version = self.api.ask("GET", self._path)["metadata"]["resourceVersion"]
        self._ended = False
        self._thread = threading.Thread(target=self._watch, args=(version,), daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended = True

    def _watch(self, version: str) -> None:
        """Follow the pods; a server ends the watch of a client that reads too slowly."""
        while not self._ended:
            path = f"{self._path}&watch=true&timeoutSeconds=3600&resourceVersion={version}"
            with self.api.answer("GET", path, timeout_s=3600) as answer:
                while not self._ended and (line := answer.readline()):
                    event = json.loads(line)
                    version = event["object"]["metadata"]["resourceVersion"]
                    self._note(event, time.monotonic())

    def _note(self, event: Json, now: float) -> None:
        pod = event["object"]
        if event["type"] == "DELETED" or pod["kind"] != "Pod":
            return
        times = self.seen.setdefault(pod["metadata"]["name"], Times(now))
        status = pod["status"]
        if (node := pod["spec"].get("nodeName")) and times.bound is None:
            times.bound, times.node = now, node
        if status.get("phase") in ("Running", "Succeeded") and times.running is None:
            times.running = now
        times.reason = status.get("reason", "")

    def bound(self) -> list[float]:
        """Seconds from creation to binding, of the bound ones, sorted."""
        seen = list(self.seen.values())
        return sorted(each.bound - each.created for each in seen if each.bound is not None)

    def started(self) -> list[float]:
        """Seconds from binding to Running, sorted."""
        seen = list(self.seen.values())
        return sorted(each.running - (each.bound or each.created) for each in seen if each.running)

    def first_bound_after(self, moment: float) -> float | None:
        """When the first pod that was created after a moment was bound."""
        bound = [each.bound for each in list(self.seen.values())
                 if each.created >= moment and each.bound is not None]  # fmt: skip
        return min(bound, default=None)


def wait(holds: Callable[[], object], limit_s: float, what: str) -> float:
    """Wait until something holds; for how many seconds."""
    begun = time.monotonic()
    while not holds():
        if time.monotonic() - begun > limit_s:
            raise TimeoutError(f"{what}: not within {limit_s:.0f} s")
        time.sleep(POLL_S)
    return time.monotonic() - begun
