"""The HTTP extender of a recording: it changes no verdict, and remembers what it was sent.

It sees the nodes that passed the filters of the scheduler, and the candidates of a preemption. Its
scores are those of `points`: they shift the choice in a known way, so that a choice also shows how
the scores of other nodes compare.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Self

from aiohttp import web

WEIGHT: Final = 1
TIMEOUT: Final = "30s"
#: The largest request: victims and names only, whole nodes are not sent.
BODY_MAX: Final = 16 << 20
Json = dict[str, Any]


@dataclass
class Questions:
    """What the extender was asked about one pod. None: not asked."""

    feasible: list[str] | None = None
    candidates: Json | None = None


@dataclass
class Extender:
    """`async with Extender(port)`; `asked` is by the uid of the pod, `points` by node, 0 to 10."""

    port: int
    host: str = "127.0.0.1"
    points: Mapping[str, int] = field(default_factory=dict)
    asked: dict[str, Questions] = field(default_factory=dict)

    @property
    def configuration(self) -> Json:
        """The entry of `extenders` in the scheduler's configuration."""
        return {
            "urlPrefix": f"http://{self.host}:{self.port}",
            "filterVerb": "filter",
            "prioritizeVerb": "prioritize",
            "preemptVerb": "preempt",
            "weight": WEIGHT,
            "httpTimeout": TIMEOUT,
            "nodeCacheCapable": True,
        }

    async def __aenter__(self) -> Self:
        app = web.Application(client_max_size=BODY_MAX)
        app.router.add_post("/filter", self._filter)
        app.router.add_post("/prioritize", self._prioritize)
        app.router.add_post("/preempt", self._preempt)
        self._runner = web.AppRunner(app, access_log=None)
        await self._runner.setup()
        await web.TCPSite(self._runner, self.host, self.port).start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._runner.cleanup()

    def about(self, uid: str) -> Questions:
        return self.asked.setdefault(uid, Questions())

    async def _filter(self, request: web.Request) -> web.Response:
        body = json.loads(await request.read())
        names = body["NodeNames"]
        questions = self.about(body["Pod"]["metadata"]["uid"])
        if questions.candidates is None:  # asched filters the candidates of a preemption, too
            questions.feasible = sorted(names)
        return _json({"NodeNames": names})

    async def _prioritize(self, request: web.Request) -> web.Response:
        names = json.loads(await request.read())["NodeNames"]
        return _json([{"Host": name, "Score": self.points.get(name, 0)} for name in names])

    async def _preempt(self, request: web.Request) -> web.Response:
        body = json.loads(await request.read())
        candidates = body["NodeNameToMetaVictims"]
        self.about(body["Pod"]["metadata"]["uid"]).candidates = candidates
        return _json({"NodeNameToMetaVictims": candidates})


def _json(value: Any) -> web.Response:
    return web.Response(body=json.dumps(value).encode(), content_type="application/json")
