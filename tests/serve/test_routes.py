"""Which path shows what, before HTTP is thought of."""

import json

import pytest

from asched.serve import routes
from asched.serve.health import PING, Health
from asched.serve.pages import NOT_FOUND, Asked, Page
from asched.serve.routes import Routes
from asched.serve.telemetry.metrics import Metrics
from tests.builders import a_pod
from tests.serve.world import Glass

ESCAPED = "text/plain; version=0.0.4; charset=utf-8; escaping={}"


class Glasses(Glass):
    """Notes what it is asked."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = []

    async def explain(self, namespace, name, against_node="", *, tries_changes=True):
        self.asked.append((namespace, name, against_node, tries_changes))
        return self.told.get(f"{namespace}/{name}")


def some_routes(*, profiles=True, hidden=()):
    glass, metrics = Glasses(), Metrics()
    health = Health({root: [PING] for root in ("healthz", "livez", "readyz")})
    made = Routes(
        glass,
        glass,
        metrics,
        health,
        {},
        is_profiling=profiles,
        started_s=1.5e9,
        hidden=frozenset(hidden),
    )
    return glass, metrics, made


async def ask(made, path, method="GET", body=b"", accept="", **query):
    asked = Asked(method, path, {name: (value,) for name, value in query.items()}, accept, body)
    found = await made.page(asked)
    assert isinstance(found, Page)
    return found


async def told(made, path, **query):
    found = await ask(made, path, **query)
    assert found.status == 200, found.body
    return json.loads(found.body)


async def test_a_pod_is_explained_and_held_against_a_node():
    glass, _, made = some_routes()
    glass.told |= {"default/web": {"pod": "web"}, "default/web/n1": {"was": 1}}
    assert await told(made, "/debug/asched/pods/default/web") == {"pod": "web"}
    glass.told["default/web"] = {"pod": "web", "against": {"node": "n1"}}
    found = await told(made, "/debug/asched/pods/default/web", against="n1", changes="no")
    assert found == {"pod": "web", "against": {"node": "n1", "then": {"was": 1}}}
    await ask(made, "/debug/asched/pods/default/nobody", changes="yes")
    assert glass.asked == [
        ("default", "web", "", True),
        ("default", "web", "n1", False),
        ("default", "nobody", "", True),
    ]


async def test_a_gang_may_tell_of_the_pod_that_was_rejected():
    glass, _, made = some_routes()
    glass.told |= {"default/crew": {"rejected": "default/web"}, "default/web": {"pod": "web"}}
    assert await told(made, "/debug/asched/groups/default/crew") == {"rejected": "default/web"}
    found = await told(made, "/debug/asched/groups/default/crew", explain="yes")
    assert found == {"rejected": "default/web", "rejectedPod": {"pod": "web"}}
    glass.told["default/fine"] = {"rejected": ""}
    assert await told(made, "/debug/asched/groups/default/fine", explain="yes") == {"rejected": ""}
    glass.told["n1"] = {"node": "n1"}
    assert await told(made, "/debug/asched/nodes/n1") == {"node": "n1"}


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/debug/asched/",
        "/debug/asched/pods/default",
        "/debug/asched/pods/default/web/more",
        "/debug/asched/nodes/n1/more",
        "/debug/asched/nodes/nobody",
        "/debug/asched/groups/default/nobody",
        "/debug/asched/groups/crew",
        "/debug/asched/other/x",
        "/other",
        "/readyz/other",
    ],
)
async def test_what_is_not_there_is_not_found(path):
    _, _, made = some_routes()
    assert await ask(made, path, explain="yes") is NOT_FOUND


async def test_paths_may_be_hidden_and_profiling_off():
    _, _, made = some_routes(profiles=False, hidden=["/configz"])
    for path in ("/configz", "/debug/flags/v", "/debug/pprof/heap", "/debug/pprof/x"):
        assert await ask(made, path) is NOT_FOUND
        assert path not in set(made.paths())
    assert (await ask(made, "/flagz")).status == 200


@pytest.mark.parametrize(
    ("query", "wanted"),
    [
        ({}, (-1, 0)),
        ({"names": "7", "since": "12"}, (7, 12)),
        ({"names": "-3", "since": "x"}, (-3, 0)),
        ({"names": "1" * 15, "since": "1" * 16}, (int("1" * 15), 0)),
        ({"names": "", "since": "٣"}, (-1, 0)),
    ],
)
async def test_the_view_is_asked_for_from_a_number_on(query, wanted):
    _, _, made = some_routes()
    found = await told(made, "/debug/asched/view", **query)
    assert (found["names_of"], found["since"]) == wanted


async def test_a_shadow_is_told_where_there_is_one():
    glass, _, made = some_routes()
    assert await told(made, "/debug/asched/shadow") == {}
    glass.told["shadow"] = None
    assert await ask(made, "/debug/asched/shadow") is NOT_FOUND


@pytest.mark.parametrize(
    ("accept", "escaping"),
    [
        ("", "underscores"),
        ("text/plain;escaping=allow-utf-8", "allow-utf-8"),
        ("text/plain;escaping=dots", "underscores"),
        ("application/json;escaping=allow-utf-8", "underscores"),
        ("image/png, text/plain;escaping=allow-utf-8", "allow-utf-8"),
    ],
)
async def test_metrics_are_text_whatever_is_asked_for(accept, escaping):
    _, _, made = some_routes()
    for path in ("/metrics", "/metrics/slis", "/metrics/resources"):
        found = await ask(made, path, accept=accept)
        assert found.content_type == ESCAPED.format(escaping)


async def test_metrics_can_be_reset():
    glass, metrics, made = some_routes()
    metrics.access.authn_requests.of("201").value += 3
    for path in ("/metrics/resources", "/metrics/slis"):
        assert (await ask(made, path, "DELETE")).body == b"metrics reset\n"
    assert metrics.access.authn_requests.of("201").value == 3
    assert (await ask(made, "/metrics", "DELETE")).body == b"metrics reset\n"
    assert metrics.access.authn_requests.of("201").value == 0
    glass.known_pods = [a_pod().requests(cpu="1").build()]
    assert b"kube_pod_resource_request{" in (await ask(made, "/metrics/resources")).body
    glass.leads = False
    assert await ask(made, "/metrics/resources") == Page(content_type="")


async def test_health_checks_are_metrics():
    _, _, made = some_routes()
    for _ in range(2):
        await ask(made, "/livez")
    lines = (await ask(made, "/metrics/slis")).body.decode().splitlines()
    labels = 'name="ping",type="livez"'
    assert [line for line in lines if not line.startswith("#")] == [
        f"kubernetes_healthcheck{{{labels}}} 1.0",
        'kubernetes_healthchecks_total{name="ping",status="success",type="livez"} 2.0',
        "process_start_time_seconds 1.5e+09",
    ]


@pytest.mark.parametrize(
    ("body", "status", "words"),
    [
        (b"0", 200, "successfully set klog.logging.verbosity to 0\n"),
        (b"0007", 200, "successfully set klog.logging.verbosity to 7\n"),
        (b"2147483647", 200, "successfully set klog.logging.verbosity to 2147483647\n"),
        (b"2147483648", 400, 'strconv.ParseUint: parsing "2147483648": value out of range\n'),
        (b"0" * 31, 200, "successfully set klog.logging.verbosity to 0\n"),
        (b"0" * 32, 400, f'strconv.ParseUint: parsing "{"0" * 32}": invalid syntax\n'),
        (b"-1", 400, 'strconv.ParseUint: parsing "-1": invalid syntax\n'),
        (b"", 400, 'strconv.ParseUint: parsing "": invalid syntax\n'),
    ],
)
async def test_the_verbosity_is_a_number_of_31_bits(body, status, words, monkeypatch):
    _, _, made = some_routes()
    put = []
    monkeypatch.setattr(routes, "set_verbosity", put.append)
    found = await ask(made, "/debug/flags/v", "PUT", body)
    assert (found.status, found.body.decode()) == (status, words)
    assert put == ([int(body)] if status == 200 else [])
    assert (await ask(made, "/debug/flags/v", "POST", body)).status == 406
