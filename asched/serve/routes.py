"""Paths and their pages.

    /healthz /livez /readyz and their checks     /metrics /metrics/resources /metrics/slis
    /configz /statusz /flagz                     /debug/pprof/* /debug/flags/v (profiling)
    /debug/asched/queue, /cache, /pods/NS/NAME   asched's own: dumps, and a pod's history
    /debug/asched/shadow                         comparison with a shadowed scheduler
    /debug/asched/audit                          differences to the API server; POST audits again
    /debug/asched/view, /nodes/NAME, /groups/NS/NAME, /ui/   the live view and its page
    /debug/asched/nodes/NAME/drain               where a node's pods would move, or do

As upstream, most pages ignore the method; `DELETE` on a metrics page resets the metrics.
"""

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from functools import partial
from typing import Any, Final

import orjson
from prometheus_client.core import Metric

from asched.core.config.versions import BASE
from asched.serve import resources, ui
from asched.serve.health import Health
from asched.serve.inspection import Inspection
from asched.serve.pages import JSON, NOSNIFF, NOT_FOUND, Page, PageRequest, as_json, text
from asched.serve.profiling import PREFIX, PROFILES, Profiling
from asched.serve.telemetry.log import set_verbosity
from asched.serve.telemetry.metrics import Metrics
from asched.serve.telemetry.page import exposed
from asched.serve.view.live import LiveView
from asched.serve.zpages import accepted, flagz, statusz

METRICS_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8; escaping={}"
OWN: Final = "/debug/asched/"
PODS: Final = f"{OWN}pods/"
NODES: Final = f"{OWN}nodes/"
GROUPS: Final = f"{OWN}groups/"
UI: Final = "/ui/"
RESET: Final = text("metrics reset\n")
#: As for upstream's flag.
VERBOSITY_BITS: Final = 31


class Routes:
    """All pages of a process except `hidden`. `is_profiling` adds /debug/pprof and /debug/flags."""

    def __init__(
        self,
        inspector: Inspection,
        viewer: LiveView,
        metrics: Metrics,
        health: Health,
        flags: Mapping[str, str],
        *,
        rules: str = BASE,
        is_profiling: bool,
        started_s: float,
        hidden: frozenset[str] = frozenset(),
    ) -> None:
        self._inspector = inspector
        self._viewer = viewer
        self._metrics = metrics
        self._health = health
        self._profiling = Profiling() if is_profiling else None
        self._started_s = started_s
        self._table: dict[str, Callable[[PageRequest], Page | Awaitable[Page]]] = {
            "/metrics": self._counted,
            "/metrics/resources": self._resources,
            "/metrics/slis": self._slis,
            "/configz": lambda _: as_json({"componentconfig": inspector.configuration()}),
            "/statusz": statusz(rules).page,
            "/flagz": flagz(flags).page,
            f"{OWN}queue": lambda _: _dumped(inspector.queue_dump()),
            f"{OWN}cache": lambda _: _dumped(inspector.cache_dump()),
            f"{OWN}view": self._view,
            f"{OWN}shadow": self._shadow,
            f"{OWN}audit": self._audit,
            UI: lambda _: ui.page(),
            UI[:-1]: lambda _: ui.MOVED,
        }
        if self._profiling is not None:
            for name in ("", "/", *(f"/{profile}" for profile in PROFILES)):
                self._table[f"{PREFIX}{name}"] = self._profiling.page
            self._table["/debug/flags/v"] = _verbosity
        for path in hidden:
            del self._table[path]

    def paths(self) -> Iterator[str]:
        """Every served path; paths of objects once."""
        yield from self._table
        yield from (f"{PODS}NAMESPACE/NAME", f"{NODES}NAME", f"{NODES}NAME/drain")
        yield f"{GROUPS}NAMESPACE/NAME"
        yield from self._health.paths()

    async def page(self, asked: PageRequest) -> Page:
        handler = self._table.get(asked.path)
        if handler is not None:
            answer = handler(asked)
            return answer if isinstance(answer, Page) else await answer
        if asked.path.startswith(OWN):
            return await self._object(asked)
        if self._profiling is not None and asked.path.startswith(f"{PREFIX}/"):
            return await self._profiling.page(asked)
        return self._health.page(asked) or NOT_FOUND

    async def _counted(self, asked: PageRequest) -> Page:
        if asked.method == "DELETE":
            self._metrics.reset()
            return RESET
        return _metrics(await self._metrics.page(), asked)

    async def _resources(self, asked: PageRequest) -> Page:
        if asked.method == "DELETE":
            return RESET
        if not self._inspector.is_leader():
            return Page(content_type="")
        pods = list(self._inspector.pods())
        return _metrics(await asyncio.to_thread(resources.render, pods), asked)

    def _slis(self, asked: PageRequest) -> Page:
        if asked.method == "DELETE":
            return RESET
        found = exposed(partial(_health_metrics, self._health, self._started_s))
        return _metrics(found, asked)

    async def _view(self, asked: PageRequest) -> Page:
        names_of, since = _number(asked, "names", -1), _number(asked, "since", 0)
        return as_json(await self._viewer.view(names_of, since))

    def _shadow(self, _: PageRequest) -> Page:
        report = self._inspector.shadow()
        return NOT_FOUND if report is None else as_json(report)

    async def _audit(self, asked: PageRequest) -> Page:
        """POST compares everything with the API server; GET returns the findings so far."""
        if asked.method == "POST":
            return as_json(await self._inspector.audit_now())
        return as_json(self._inspector.audit_report())

    async def _object(self, asked: PageRequest) -> Page:
        """A pod, a node or a gang."""
        inspector, found_object = self._inspector, None
        match asked.path.removeprefix(OWN).split("/"):
            case ["pods", namespace, name]:
                against = "".join(asked.query.get("against", ())[:1])
                tries, explain = asked.query.get("changes") != ("no",), inspector.explain
                found_object = await explain(namespace, name, against, tries_changes=tries)
            case ["nodes", name]:
                found_object = self._viewer.node(name)
            case ["nodes", name, "drain"]:
                deletes = asked.query.get("deleteEmptydirData") == ("yes",)
                found_object = await inspector.drain(name, deletes_data=deletes)
            case ["groups", namespace, name]:
                found_object = self._viewer.gang(f"{namespace}/{name}")
                rejected = (found_object or {}).get("rejected", "")
                if rejected and asked.query.get("explain") == ("yes",):
                    why = await inspector.explain(*rejected.split("/"))
                    found_object = {**(found_object or {}), "rejectedPod": why}
        return NOT_FOUND if found_object is None else as_json(found_object)


async def _dumped(parts: AsyncIterator[tuple[str, list[Any]]]) -> Page:
    """A mapping of lists, encoded part by part: a dump may have 100,000 pods."""
    found: dict[str, list[bytes]] = {}
    async for name, some in parts:
        made = found.setdefault(name, [])
        if some:
            made.append(orjson.dumps(some)[1:-1])
    lists = (b'"%s":[%s]' % (name.encode(), b",".join(made)) for name, made in found.items())
    return Page(b"{%s}\n" % b",".join(lists), 200, JSON, NOSNIFF)


def _number(asked: PageRequest, name: str, otherwise: int) -> int:
    """A number of the query; an invalid one counts as absent."""
    text = "".join(asked.query.get(name, ())[:1])
    return int(text) if re.fullmatch(r"-?[0-9]{1,15}", text, re.ASCII) else otherwise


def _metrics(body: bytes, asked: PageRequest) -> Page:
    """Text 0.0.4 for every Accept header; only the escaping of names is negotiated."""
    escaping = "underscores"
    for media_type, parameters in accepted(asked.accept):
        if media_type == "text/plain" and parameters.get("escaping") == "allow-utf-8":
            escaping = "allow-utf-8"
    return Page(body, 200, METRICS_TYPE.format(escaping))


def _health_metrics(health: Health, started_s: float) -> Iterator[Metric]:
    text = "[STABLE] 1 if a health check passed when last asked."
    state = Metric("kubernetes_healthcheck", text, "gauge")
    for (name, root), passed in sorted(health.states.copy().items()):
        state.add_sample(state.name, {"name": name, "type": root}, passed)
    total = Metric("kubernetes_healthchecks", "[STABLE] Results of health checks.", "counter")
    for (name, status, root), count in sorted(health.counts.copy().items()):
        labels = {"name": name, "status": status, "type": root}
        total.add_sample("kubernetes_healthchecks_total", labels, count)
    yield from (metric for metric in (state, total) if metric.samples)
    text = "[ALPHA] When the process began, in seconds since 1970."
    start = Metric("process_start_time_seconds", text, "gauge")
    start.add_sample(start.name, {}, started_s)
    yield start


def _verbosity(asked: PageRequest) -> Page:
    """PUT sets `-v` of the running process."""
    if asked.method != "PUT":
        return _plain("unsupported http method\n", 406)
    found_object = asked.body.decode(errors="replace")
    if len(found_object) > VERBOSITY_BITS or not re.fullmatch(r"[0-9]+", found_object, re.ASCII):
        return _plain(f'strconv.ParseUint: parsing "{found_object}": invalid syntax\n', 400)
    if int(found_object) >= 1 << VERBOSITY_BITS:
        return _plain(f'strconv.ParseUint: parsing "{found_object}": value out of range\n', 400)
    set_verbosity(int(found_object))
    return _plain(f"successfully set klog.logging.verbosity to {int(found_object)}\n", 200)


def _plain(content: str, status: int) -> Page:
    return Page(content.encode(), status, "text/plain", NOSNIFF)
