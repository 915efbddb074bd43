"""Every recorded page of kube-scheduler 1.36.2, asked of us by the same people."""

import json
import re

import pytest
import yaml

from asched.serve.options import ALWAYS_ALLOWED
from tests.conformance.outside_config import differences_of
from tests.support import recorded_lines
from tests.unit.serve.world import TOKENS, a_port

ELECTS = "leader election on, delegated authentication and authorization"
ALONE = "no leader election, no delegated authentication or authorization, profiling off"
OPEN = "always-allow paths /healthz,/metrics,/readyz/*"
FOLLOWER = "follower: another process holds the lease"
DELAYED = "follower with delayCacheUntilActive"
DEAF = "the API server cannot be reached"
PROFILE = "/debug/pprof/profile"
KEPT_HEADERS = ("cache-control", "x-content-type-options", "warning")

#: Recorded as given, and not given here: Prometheus' protobuf (text is what we have), and a body
#: of CBOR for a refusal.
PROTOBUF = "application/vnd.google.protobuf"
CBOR = "application/cbor"


def recorded(*cases):
    rows = recorded_lines("outside/serving/pages.jsonl.gz")
    return [row for row in rows if row["case"] in cases]


def differences(row, answer, body):
    """What is different, in words; nothing if we answer alike."""
    found = []
    if answer.status != row["code"]:
        return [f"{row['code']} became {answer.status}"]
    if answer.headers.get("Content-Type", "") != row["content_type"]:
        found.append(f"type {row['content_type']} became {answer.headers.get('Content-Type')}")
    for name, value in row.get("headers", {}).items():
        if name in KEPT_HEADERS and answer.headers.get(name) != value:
            found.append(f"{name} {value} became {answer.headers.get(name)}")
    is_guessable = "x-content-type-options" not in row.get("headers", KEPT_HEADERS)
    if is_guessable and "X-Content-Type-Options" in answer.headers:
        found.append("nosniff was added")
    wanted = row.get("body")
    if wanted is not None:
        found.extend(_body_differences(row["path"], wanted, body.decode()))
    return found


def _body_differences(path, wanted, body):
    if wanted in ("$metrics", "$binary"):
        return []
    if isinstance(wanted, dict) and "componentconfig" in wanted:
        ours = json.loads(body)
        ours["componentconfig"]["clientConnection"]["kubeconfig"] = wanted["componentconfig"][
            "clientConnection"
        ]["kubeconfig"]
        return differences_of(wanted, ours, "configuration")
    if path == "/flagz":
        return _named_alike(wanted, body)
    if isinstance(wanted, dict):
        ours = json.loads(body)
        return [] if _blurred(ours) == _blurred(wanted) else [f"{wanted} became {ours}"]
    if path == "/statusz":
        if "apiVersion" in wanted:
            ours, theirs = yaml.safe_load(body), yaml.safe_load(wanted)
            return [] if ours.keys() == theirs.keys() else [body]
        ours, theirs = _line_names(body), _line_names(wanted)
        return [] if ours == theirs else [f"{theirs} became {ours}"]
    return [] if body == wanted else [f"{wanted!r} became {body!r}"]


def _blurred(status):
    # the pages are of another patch release than the one that is followed
    moving = ("startTime", "uptimeSeconds", "goVersion", "binaryVersion")
    return {key: value for key, value in status.items() if key not in moving}


def _named_alike(wanted, body):
    """Flags differ in number; head lines and form do not."""
    if isinstance(wanted, dict):
        ours = json.loads(body)
        return [] if {**ours, "flags": 0} == {**wanted, "flags": 0} else [body[:200]]
    if "apiVersion" in wanted:
        ours, theirs = yaml.safe_load(body), yaml.safe_load(wanted)
        return [] if {**ours, "flags": 0} == {**theirs, "flags": 0} else [body[:200]]
    return [] if body.splitlines()[:3] == wanted.splitlines()[:3] else [body[:200]]


def _line_names(text):
    return [re.split(r"[:= ] ", line)[0].strip() for line in text.splitlines()]


async def replay(port, rows):
    found = {}
    for row in rows:
        if row.get("accept", "").startswith((PROTOBUF, CBOR)):
            continue
        answer, body = await port.ask(
            row["path"],
            TOKENS[row["as"]],
            method=row.get("method", "GET"),
            accept=row.get("accept", ""),
        )
        told = differences(row, answer, body)
        if told:
            found[f"{row.get('method', 'GET')} {row['path']} as {row['as']}"] = told
    return found


FLAGS = {"allow-metric-labels": "[]", "secure-port": "10259"}


async def test_everybody_sees_what_they_see_of_kube_scheduler():
    async with a_port(flags=FLAGS) as port:
        assert await replay(port, recorded(ELECTS)) == {}


async def test_alone_it_shows_what_kube_scheduler_shows_alone():
    async with a_port(elects=False, delegates=False, profiles=False) as port:
        assert await replay(port, recorded(ALONE)) == {}


async def test_content_is_negotiated_alike():
    async with a_port(flags=FLAGS) as port:
        assert await replay(port, recorded("content negotiation")) == {}


async def test_paths_that_are_open_to_all():
    async with a_port(allowed=("/healthz", "/metrics", "/readyz/*")) as port:
        assert await replay(port, recorded(OPEN)) == {}


async def test_a_follower_is_ready_and_shows_no_resources():
    async with a_port() as port:
        port.inspector.leads = False
        assert await replay(port, recorded(FOLLOWER)) == {}


@pytest.mark.parametrize("case", [DELAYED, DEAF])
async def test_it_is_not_ready_before_it_has_seen_the_cluster(case):
    async with a_port() as port:
        port.troubles["sched-handler-sync"] = "handlers are not fully synchronized"
        assert await replay(port, recorded(case)) == {}


async def test_methods_are_taken_as_kube_scheduler_takes_them():
    async with a_port(flags=FLAGS) as port:
        rows = [row for row in recorded("methods") if row["path"] != "/debug/flags/v"]
        assert await replay(port, rows) == {}


async def test_the_verbosity_can_be_put():
    async with a_port() as port:
        for data, code, text in (
            (b"5", 200, "successfully set klog.logging.verbosity to 5\n"),
            (b"abc", 400, 'strconv.ParseUint: parsing "abc": invalid syntax\n'),
            (b"0", 200, "successfully set klog.logging.verbosity to 0\n"),
        ):
            answer, body = await port.ask("/debug/flags/v", "admin", method="PUT", data=data)
            assert (answer.status, body.decode()) == (code, text)


async def test_our_own_pages_need_rights_like_all_others():
    async with a_port() as port:
        port.inspector.told["default/web"] = {"pod": "default/web"}
        for path in ("/debug/asched/queue", "/debug/asched/pods/default/web"):
            answer, _ = await port.ask(path)
            assert answer.status == 403
            answer, _ = await port.ask(path, "admin")
            assert answer.status == 200
        answer, _ = await port.ask("/debug/asched/pods/default/nobody", "admin")
        assert answer.status == 404


async def test_an_audit_is_told_with_get_and_begun_with_post():
    async with a_port() as port:
        for method, found in (("GET", 0), ("POST", 1)):
            answer, _ = await port.ask("/debug/asched/audit", method=method)
            assert answer.status == 403
            answer, body = await port.ask("/debug/asched/audit", "admin", method=method)
            assert (answer.status, json.loads(body)) == (200, {"found": found})


async def test_nobody_without_rights_gets_in_at_any_path():
    """All paths there are, so that a page made tomorrow is asked too."""
    async with a_port() as port:
        for name in ("NAMESPACE/NAME", "NAME"):  # one object for all
            port.inspector.told[name] = {}
        paths = list(port.routes.paths())
        assert {"/metrics", "/debug/asched/cache", "/debug/pprof/heap", "/livez/ping"} <= {*paths}
        for path in paths:
            is_open = path in ALWAYS_ALLOWED
            # a profile of 0 s is one of 30 s, as in Go
            url = f"{path}?seconds={int(path == PROFILE)}"
            answer, body = await port.ask(url)
            assert answer.status == (200 if is_open else 403), path
            assert is_open or b"forbidden" in body
            answer, _ = await port.ask(url, TOKENS["unknown token"])
            assert answer.status == 401, path
            answer, _ = await port.ask(url, TOKENS["user without rights"])
            assert answer.status == (200 if is_open else 403), path
            answer, _ = await port.ask(url, TOKENS["admin"])
            assert answer.status == (406 if path == "/debug/flags/v" else 200), path


async def test_a_body_without_end_is_refused():
    async with a_port() as port:
        answer, _ = await port.ask("/debug/flags/v", "admin", method="PUT", data=b"1" * 200_000)
        assert answer.status == 413
