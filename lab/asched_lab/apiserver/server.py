"""The embedded API server: sockets around `routing.route`.

    server = ApiServer()
    await server.start()
    server.create("nodes", {...})        # in process, without HTTP
    ...                                  # clients use server.url or server.kubeconfig()
    await server.stop()

One event loop does all work. A request is answered in one synchronous step; only watches, delayed
answers, requests to pods and the sockets themselves await.
"""

import asyncio
import base64
import logging
import socket
import ssl
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qsl, unquote

import yaml
from aiohttp import web

from asched import names
from asched.kube import certificates
from asched_lab.apiserver import bodies, bootstrap, crud, faults, proxying
from asched_lab.apiserver.auth import ADMIN, ANONYMOUS, Authenticator, check_path
from asched_lab.apiserver.call import Call, User, refusal
from asched_lab.apiserver.context import Context, Options
from asched_lab.apiserver.controllers import Controllers
from asched_lab.apiserver.faults import Fault, Faults
from asched_lab.apiserver.kubelet import Kubelet
from asched_lab.apiserver.refusals import ApiError
from asched_lab.apiserver.resources import BY_KIND, find
from asched_lab.apiserver.watching import BOOKMARK_BEFORE_END_S, BOOKMARK_EVERY_S, Watch

JsonObject = dict[str, Any]

log = logging.getLogger(__name__)

#: Seconds that a read of a future version waits before it fails.
FUTURE_WAIT_S: Final = 3.0
#: Seconds for open connections to end when the server stops.
SHUTDOWN_S: Final = 1.0
#: Rounds of the loop from the acceptance of a connection to the first step of its handler.
ACCEPT_ROUNDS: Final = 4
#: Connections that wait to be accepted.
BACKLOG: Final = 1024
#: Maximum bytes of a request body; the limit of etcd.
BODY_BYTES_MAX: Final = 3 * 1024 * 1024


class ApiServer:
    """One server with its own store in memory. Started again after a stop, it has the same objects;
    watches have to start anew.
    """

    def __init__(
        self,
        *,
        options: Options | None = None,
        users: Mapping[str, User] | None = None,
        anonymous: bool = True,
        kubelet: bool = False,
        controllers: bool = False,
        pace: float = 1.0,
        clock: Callable[[], float] = time.time,
        seed: int | None = None,
    ) -> None:
        """`users` maps bearer tokens to users; without it (and without `start(token=...)`) every
        client is an administrator. `kubelet` runs bound pods, `controllers` makes pods for
        Deployments and Jobs. `pace` stretches every wait, a watch's timeoutSeconds included; tests
        use less than 1.
        """
        self.auth = Authenticator(users, anonymous=anonymous)
        self.ctx = Context(auth=self.auth, options=options, clock=clock, seed=seed)
        self.store = self.ctx.store
        self.faults = Faults()
        self.hands = (
            *([Kubelet(self.ctx)] if kubelet else ()),
            *([Controllers(self.ctx)] if controllers else ()),
        )
        self.url = ""
        self.token = ""
        self.authority = b""
        self._pace = pace
        self._is_filled = False
        self._runner: web.ServerRunner | None = None
        self._listening: list[socket.socket] = []
        self._watches: set[Watch] = set()

    async def start(
        self,
        host: str = "127.0.0.1",
        port: int = 0,
        *,
        tls: bool | tuple[str, str] = False,
        token: str = "",
    ) -> None:
        """Listen. `tls` is True for a self-signed certificate, or paths of certificate and key;
        `token` is an administrator's bearer token, without which requests are then refused.
        """
        if token:
            self.token = token
            self.auth.tokens[token] = ADMIN
            self.auth.open = False
        context = self._tls(host, tls)
        server = web.Server(self._answer, access_log=None, handler_cancellation=True, logger=log)
        self._runner = web.ServerRunner(server, shutdown_timeout=SHUTDOWN_S)
        await self._runner.setup()
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        listening = socket.create_server((host, port), family=family, backlog=BACKLOG)
        self._listening = [listening]
        site = web.SockSite(self._runner, listening, ssl_context=context, backlog=BACKLOG)
        await site.start()
        bound_port = listening.getsockname()[1]
        shown = f"[{host}]" if ":" in host else host
        self.url = f"{'https' if context else 'http'}://{shown}:{bound_port}"
        if not self._is_filled:
            bootstrap.fill(self.ctx, port=bound_port, authority=self.authority.decode())
            self._is_filled = True
        self.store.begin_history()
        for hand in self.hands:
            hand.start()

    def _tls(self, host: str, tls: bool | tuple[str, str]) -> ssl.SSLContext | None:
        if isinstance(tls, tuple):
            certificate, key = (Path(name).read_bytes() for name in tls)
        elif tls:
            names = dict.fromkeys((*certificates.LOOPBACK, host))
            certificate, key = certificates.self_signed(tuple(names))
        else:
            return None
        self.authority = certificate
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        certificates.load_pem(context, certificate, key)
        return context

    async def stop(self) -> None:
        """End every watch and connection."""
        for hand in self.hands:
            hand.stop()
        for watch in tuple(self._watches):
            watch.end()
        if self._runner is not None:
            await accept_no_more(*self._listening)
            await self._runner.cleanup()
            self._runner = None

    def create(self, plural: str, obj: JsonObject) -> JsonObject:
        """Create an object in process, with defaults and admission; return the stored object.

        `plural` is a resource name; a manifest with kind and apiVersion may name another group's.
        Raises ApiError.
        """
        res = BY_KIND.get((obj.get("apiVersion", ""), obj.get("kind", ""))) or find(plural)
        made, _ = bodies.to_stored(res, obj)
        namespace = made["metadata"].get("namespace", "default") if res.namespaced else ""
        return crud.create(self.ctx, res, namespace, made).obj

    def get(self, plural: str, namespace: str, name: str) -> JsonObject | None:
        """A stored object, or None; callers must not change it."""
        record = self.ctx.get(find(plural), namespace, name)
        return record.obj if record is not None else None

    def list(self, plural: str, namespace: str = "") -> list[JsonObject]:
        """The stored objects of a kind, sorted; callers must not change them."""
        table = self.store.table(find(plural).storage)
        return [table.records[key].obj for key in table.range(namespace)]

    def kubeconfig(self, pages: str = "") -> str:
        """A kubeconfig, as YAML, of an administrator. `pages`: the address of a scheduler's pages,
        for clients that use them.
        """
        cluster: JsonObject = {"server": self.url}
        if pages:
            extension = {"name": names.PAGES_EXTENSION, "extension": {"server": pages}}
            cluster["extensions"] = [extension]
        if self.authority:
            cluster["certificate-authority-data"] = base64.b64encode(self.authority).decode()
        user = {"token": self.token} if self.token else {}
        name = "asched"
        return yaml.safe_dump(
            {
                "apiVersion": "v1",
                "kind": "Config",
                "clusters": [{"name": name, "cluster": cluster}],
                "users": [{"name": name, "user": user}],
                "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
                "current-context": name,
            },
            sort_keys=False,
        )

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        call = await self._call(request)
        fault = self._fault(call) if self.faults.rules else None
        if fault is not None:
            answered = await faults.instead(request, fault)
            if answered is not None:
                return answered
        try:
            call.user = self.auth.user(request.headers.get("Authorization", ""))
            spoken_for = request.headers.get("Impersonate-User")
            if spoken_for:
                groups = tuple(request.headers.getall("Impersonate-Group", ()))
                call.user = self.auth.impersonated(call.user, spoken_for, groups)
            if call.path == faults.PATH:
                check_path(self.ctx, call)
                return faults.response(self.faults.handle(call.method, call.body))
            proxied = proxying.destination(self.ctx, call)
            if proxied is not None:
                return await proxying.passed_on(request, call, proxied)
            reply = faults.handled(self.ctx, call, fault)
        except ApiError as error:
            if error.code == 504:
                await asyncio.sleep(FUTURE_WAIT_S * self._pace)
            reply = refusal(error)
        except Exception:
            log.exception("a handler failed: %s %s", call.method, call.path)
            reply = refusal(ApiError(500, "the handler failed; see the server's log"))
        if isinstance(reply, Watch):
            return await self._stream(request, reply, call)
        return await faults.delivered(request, reply, fault)

    def _fault(self, call: Call) -> Fault | None:
        if call.path == faults.PATH:
            return None
        return self.faults.hit(call.method, call.path, listing=faults.is_list(call))

    async def _call(self, request: web.BaseRequest) -> Call:
        path, _, query = request.raw_path.partition("?")
        return Call(
            method=request.method,
            path=unquote(path) if "%" in path else path,
            query=dict(parse_qsl(query, keep_blank_values=True)) if query else {},
            headers={name.lower(): value for name, value in request.headers.items()},
            body=await request.read() if request.can_read_body else b"",
            user=ANONYMOUS,
        )

    async def _stream(
        self, request: web.BaseRequest, watch: Watch, call: Call
    ) -> web.StreamResponse:
        """Send a watch's frames until it ends or its client leaves."""
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        awake = asyncio.Event()
        watch.wake = awake.set
        loop = asyncio.get_running_loop()
        timers = [loop.call_later(watch.lasting_s * self._pace, watch.end)]
        if watch.lasting_s > BOOKMARK_BEFORE_END_S:
            last_s = (watch.lasting_s - BOOKMARK_BEFORE_END_S) * self._pace
            timers.append(loop.call_later(last_s, watch.bookmark))
        self._watches.add(watch)
        bookmarks = asyncio.create_task(_bookmarks(watch)) if watch.options.bookmarks else None
        try:
            await response.prepare(request)
            while True:
                frames = watch.take()
                fault = self._watch_fault(watch, call) if frames else None
                if fault is not None:
                    if fault.action == "mute_watch":
                        await asyncio.Event().wait()  # until its client leaves
                    frames = faults.disturbed(frames, fault)
                if frames:
                    await response.write(b"".join(frames))
                if fault is not None and fault.action == "drop_watch":
                    return faults.reset(request)
                if watch.ended and not watch.frames:
                    break
                await awake.wait()
                awake.clear()
            await response.write_eof()
        except ConnectionError:
            log.debug("a watch's client left: %s", call.path)
        finally:
            watch.end()
            self._watches.discard(watch)
            for timer in timers:
                timer.cancel()
            if bookmarks is not None:
                bookmarks.cancel()
        return response

    def _watch_fault(self, watch: Watch, call: Call) -> Fault | None:
        fault = self.faults.hit(call.method, call.path, watch=True) if self.faults.rules else None
        if fault is not None and fault.action == "expire_watch":
            watch.expire()
        return fault


async def accept_no_more(*listening: socket.socket) -> None:
    """To be called before a server closes: a connection that asyncio has accepted, and not yet
    attached to a closing server, would stay open for ever.
    """
    loop = asyncio.get_running_loop()
    for sock in listening:
        loop.remove_reader(sock.fileno())
    for _ in range(ACCEPT_ROUNDS):
        await asyncio.sleep(0)


async def _bookmarks(watch: Watch) -> None:
    while True:
        await asyncio.sleep(BOOKMARK_EVERY_S)
        watch.bookmark()
