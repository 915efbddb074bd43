"""How patient a campaign is with one request, and what is told of those that fail."""

import logging
from contextlib import closing
from typing import Any

import pytest

from asched.core.leader.election import Rules
from asched.host.election import Stand
from asched.kube.errors import ServerFailed, TransportError
from tests.host.test_election_campaign import World


class Pool:
    """Tells what was asked, of which path and with how much patience."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str, float]] = []

    def pool(self, _: int, *, purpose: str) -> "Pool":
        return self

    async def request(self, method: str, path: str, _: bytes | None, *, timeout_s: float) -> Any:
        self.asked.append((method, path, timeout_s))
        raise TransportError("away")


@pytest.mark.parametrize(("renew_s", "patience_s"), [(10.0, 5.0), (3.0, 1.5), (1.0, 1.0)])
async def test_a_request_has_half_the_renew_deadline_and_a_second_at_least(
    renew_s: float, patience_s: float
) -> None:
    session: Any = Pool()
    stand = Stand(Rules("a", 15.0, renew_s, 0.5), "kube-system", "asched", "me")
    with pytest.raises(TransportError):
        await stand.client(session).get()
    ((method, path, waited_s),) = session.asked
    assert (method, waited_s) == ("GET", patience_s)
    lease = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/asched"
    assert path.partition("?")[0] == lease


def test_what_fails_again_after_it_had_succeeded_is_told_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, "asched.leader")
    with closing(World()) as world:
        world.held_by("b")
        world.start()
        for end_s, fails in ((5.0, True), (10.0, False), (20.0, True)):
            world.server.fails = ServerFailed(500, "etcd is away") if fails else None
            asked = len(world.server.asked)
            world.until(end_s)
            assert len(world.server.asked) > asked + 1, "it is asked on and on"
        told = [record for record in caplog.records if record.msg == "Failed to reach the lease"]
        assert [vars(record)["err"] for record in told] == ["etcd is away"] * 2
        assert not world.began
