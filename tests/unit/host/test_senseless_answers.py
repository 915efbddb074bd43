"""A 200 that is no JSON, or another object than was asked for, ends no task: it is asked again."""

import asyncio

import pytest

from asched.core.leader.election import LeaseTimes
from asched.host.configuration.policy_map import fetch_policy
from asched.host.election import Campaign, Stand
from asched.kube.errors import ConnectError
from asched.kube.session import ConnectionOptions, connect
from asched.serve.telemetry.metrics import Metrics
from tests.unit.kube.scripted import reply, scripted

SENSELESS = [b"<html>", b"", b"[]", {"data": 7, "metadata": 7}, {"data": [], "spec": []}]


def senseless():
    """Answers in turn."""
    count = 0

    async def answer(_seen, _wire):
        nonlocal count
        count += 1
        return reply(200, SENSELESS[count % len(SENSELESS)])

    return answer


async def asked_again(server, task):
    """The task has outlived each of the answers."""
    seen = asyncio.ensure_future(server.has_seen(2 * len(SENSELESS)))
    await asyncio.wait({seen, task}, return_when=asyncio.FIRST_COMPLETED)
    assert not task.done(), task.exception()
    await seen


async def test_an_election_goes_on():
    async with scripted(senseless()) as server:
        session = await connect(ConnectionOptions(master=server.url), handshake=False)
        rules = LeaseTimes("me", lease_s=3.0, renew_s=2.0, retry_s=0.001)
        stand = Stand(rules, namespace="kube-system", name="asched", schedulers=("asched",))
        campaign = Campaign(stand, Metrics().leader, lambda: None)
        running = asyncio.create_task(campaign.run(stand.client(session)))
        await asked_again(server, running)
        assert not campaign.election.is_leader
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        await session.close()


@pytest.mark.parametrize("senseless_answer", SENSELESS[:3])
async def test_a_policy_that_cannot_be_read_is_one_line(senseless_answer):
    async def answer(_seen, _wire):
        return reply(200, senseless_answer)

    async with scripted(answer) as server:
        with pytest.raises(ConnectError, match="couldn't get policy config map") as caught:
            await fetch_policy(ConnectionOptions(master=server.url), "kube-system", "policy")
    assert "\n" not in str(caught.value)
