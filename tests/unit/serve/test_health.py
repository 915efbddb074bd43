"""Health checks: lists, pages of single checks, and their history; words of kube-scheduler 1.36."""

import logging

from asched.serve.health import PING, ROOTS, Check, Health
from asched.serve.pages import NOT_FOUND, TEXT, PageRequest


def a_health(**troubles: str) -> Health:
    checks = [
        PING,
        *(Check(name, lambda trouble=trouble: trouble) for name, trouble in troubles.items()),
    ]
    return Health({"healthz": [PING], "livez": [PING], "readyz": checks})


def page(health: Health, path: str, **query: tuple[str, ...]) -> tuple[int, str]:
    found = health.page(PageRequest("GET", path, query))
    assert found is not None
    return found.status, found.body.decode()


def test_all_is_well() -> None:
    health = a_health(shutdown="", sync="")
    assert page(health, "/readyz") == (200, "ok")
    assert page(health, "/readyz", verbose=("",)) == (
        200,
        "[+]ping ok\n[+]shutdown ok\n[+]sync ok\nreadyz check passed\n",
    )
    assert page(health, "/readyz/sync") == (200, "ok")
    assert page(health, "/livez") == (200, "ok")


def test_what_fails_says_why_in_the_log_and_on_its_own_page(caplog) -> None:
    caplog.set_level(logging.INFO, "asched.serve")
    health = a_health(shutdown="it is late", sync="", other="ill")
    listed = (
        "[+]ping ok\n[-]shutdown failed: reason withheld\n[+]sync ok\n"
        "[-]other failed: reason withheld\nreadyz check failed\n"
    )
    assert page(health, "/readyz") == page(health, "/readyz", verbose=("",)) == (500, listed)
    assert caplog.records[0].getMessage() == "readyz check failed: shutdown: it is late; other: ill"
    assert page(health, "/readyz/shutdown") == (500, "internal server error: it is late\n")


def test_checks_may_be_left_out_and_those_that_are_none_are_told() -> None:
    health = a_health(shutdown="late", sync="")
    assert page(health, "/readyz", exclude=("shutdown", "")) == (200, "ok")
    listed = (
        "[+]ping ok\n[+]shutdown excluded: ok\n[+]sync ok\n"
        'warn: some health checks cannot be excluded: no matches for "b", "x"\n'
        "readyz check passed\n"
    )
    excluded = ("shutdown", "x", "b")
    assert page(health, "/readyz", exclude=excluded, verbose=("",)) == (200, listed)
    assert ("shutdown", "readyz") not in health.states, "it was not asked"


def test_paths_are_those_of_roots_and_their_checks() -> None:
    health = a_health(**{"a/b": ""})
    listed = ["/healthz", "/healthz/ping", "/livez", "/livez/ping", "/readyz", "/readyz/ping"]
    assert list(health.paths()) == [*listed, "/readyz/a/b"]
    assert page(health, "/readyz/a/b") == (200, "ok")
    for path in ("/readyz/x", "/livez/a/b", "/livez/"):
        assert health.page(PageRequest("GET", path)) is NOT_FOUND
    assert health.page(PageRequest("GET", "/other/ping")) is None
    assert {path.split("/")[1] for path in health.paths()} == {*ROOTS}


def test_what_checks_said_is_counted() -> None:
    health = a_health(sync="")
    health_ill = a_health(sync="ill")
    for _ in range(3):
        page(health, "/readyz")
    page(health_ill, "/readyz/sync")
    assert health.states == {("ping", "readyz"): 1, ("sync", "readyz"): 1}
    assert health.counts == {("ping", "success", "readyz"): 3, ("sync", "success", "readyz"): 3}
    assert health_ill.states == {("sync", "readyz"): 0}
    assert health_ill.counts == {("sync", "error", "readyz"): 1}


def test_pages_of_lists_are_text_whose_type_is_not_guessed() -> None:
    found = a_health().page(PageRequest("GET", "/readyz"))
    assert found is not None
    assert (found.content_type, found.headers) == (TEXT, {"X-Content-Type-Options": "nosniff"})
