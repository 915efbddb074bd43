"""A serving port with a cast of users, as the recordings had them, and a client that asks it."""

import ssl
from collections.abc import Mapping
from contextlib import asynccontextmanager

import aiohttp

from asched.core.config.text import effective
from asched.host.configuration.file import load_config
from asched.serve.app import Server
from asched.serve.auth import ACCESS_REVIEWS, Authenticator, Authorizer
from asched.serve.connections import listen
from asched.serve.health import PING, Check, Health
from asched.serve.options import AccessOptions, AuthorizationOptions, ServingOptions
from asched.serve.routes import Routes
from asched.serve.telemetry.metrics import Metrics

DEFAULTS = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
"""

#: token -> (user, groups)
USERS = {
    "admin": ("admin", ["system:masters"]),
    "nobody": ("nobody", []),
    "prometheus": ("prometheus", ["system:monitoring"]),
    "scheduler": ("system:kube-scheduler", []),
}
TOKENS = {
    "none": "",
    "admin": "admin",
    "unknown token": "who-is-this",
    "user without rights": "nobody",
    "group system:monitoring": "prometheus",
    "user system:kube-scheduler": "scheduler",
}
PUBLIC = ("/healthz", "/livez", "/readyz", "/version", "/version/")
DISCOVERY_PREFIXES = ("/api", "/openapi")
MONITORING = ("/metrics", "/metrics/slis", "/flagz", "/statusz")
MONITORING_PREFIXES = ("/healthz/", "/livez/", "/readyz/")


async def review(path: str, asked: Mapping) -> tuple[int, Mapping]:
    """What a cluster with the bootstrap roles answers."""
    spec = asked["spec"]
    if path != ACCESS_REVIEWS:
        user = USERS.get(spec["token"])
        if user is None:
            return 201, {"status": {"authenticated": False, "error": "unknown"}}
        return 201, {
            "status": {"authenticated": True, "user": {"username": user[0], "groups": user[1]}}
        }
    wanted = spec["nonResourceAttributes"]
    is_allowed = wanted["verb"] == "get" and (
        wanted["path"] in PUBLIC
        or (
            "system:authenticated" in spec.get("groups", ())
            and wanted["path"].startswith(DISCOVERY_PREFIXES)
        )
        or (
            "system:monitoring" in spec.get("groups", ())
            and (wanted["path"] in MONITORING or wanted["path"].startswith(MONITORING_PREFIXES))
        )
    )
    return 201, {"status": {"allowed": is_allowed}}


class Glass:
    """An inspector that shows what a test put there."""

    def __init__(self) -> None:
        self.leads = True
        self.known_pods = []
        self.told = {}

    def is_leader(self):
        return self.leads

    def configuration(self):
        return effective(load_config(text=DEFAULTS).configuration)

    def pods(self):
        return self.known_pods

    async def queue_dump(self):
        for part in self.told.get("queue", [("active", [])]):
            yield part

    async def cache_dump(self):
        yield "nodes", []

    def shadow(self):
        return self.told.get("shadow", {})

    def audit_report(self):
        return {"found": 0}

    async def audit_now(self):
        return {"found": 1}

    async def explain(self, namespace, name, against_node="", *, tries_changes=True):
        return self.told.get(f"{namespace}/{name}")

    async def drain(self, name, *, deletes_data):
        return self.told.get(name) and {"node": name, "deletes_data": deletes_data}

    async def view(self, names_of, since):
        return {"names_of": names_of, "since": since}

    def node(self, name):
        return self.told.get(name)

    def gang(self, key):
        return self.told.get(key)


class Port:
    """A running server and a client."""

    def __init__(self, server, session, inspector, troubles, metrics, routes) -> None:
        self.server = server
        self.session = session
        self.inspector = inspector
        #: check -> what is wrong with it
        self.troubles = troubles
        self.metrics = metrics
        self.routes = routes

    async def ask(self, path, token="", *, method="GET", accept="", data=None):
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        if accept:
            headers["Accept"] = accept
        url = f"https://127.0.0.1:{self.server.port}{path}"
        async with self.session.request(
            method, url, headers=headers, data=data, ssl=client_tls()
        ) as answer:
            return answer, await answer.read()


def client_tls():
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


@asynccontextmanager
async def a_port(
    *,
    elects=True,
    delegates=True,
    profiles=True,
    flags=None,
    allowed=None,
    options=None,
    limits=None,
):
    """Serve on some port until the block ends."""
    rules = AuthorizationOptions()
    if allowed is not None:
        rules = AuthorizationOptions(authorization_always_allow_paths=allowed)
    access = AccessOptions(authorization=rules)
    metrics, inspector, troubles = Metrics(), Glass(), {}

    def check(name):
        return Check(name, lambda: troubles.get(name, ""))

    election = [check("leaderElection")] if elects else []
    health = Health(
        {
            "healthz": election or [PING],
            "livez": [PING],
            "readyz": [*election, check("shutdown"), check("sched-handler-sync")],
        }
    )
    routes = Routes(
        inspector, inspector, metrics, health, flags or {}, is_profiling=profiles, started_s=1.5e9
    )
    post = review if delegates else None
    server = Server(
        options or ServingOptions(bind_address="127.0.0.1", secure_port=0),
        routes.page,
        Authenticator(access, post, metrics.access),
        Authorizer(access, post, metrics.access),
        limits,
    )
    server.start(await listen("127.0.0.1", 0, cure=""))
    try:
        async with aiohttp.ClientSession() as session:
            yield Port(server, session, inspector, troubles, metrics, routes)
    finally:
        await server.stop()
