"""A lease that may not be used: what an operator reads, and how often."""

import asyncio
import contextlib
import logging

import pytest

from asched.core.leader.election import LeaseTimes
from asched.host.election import Campaign, Stand
from asched.kube.errors import ApiError, Forbidden, ServerFailed
from asched.serve.telemetry.metrics import Metrics
from tests.support import HANG_S

TRIES = 16
RULES = LeaseTimes("a", lease_s=0.03, renew_s=0.02, retry_s=0.01)


class Refusing:
    """The lease's client; refuses for one reason after the other, for the last one for ever."""

    def __init__(self, *answers: ApiError, reads: bool = False) -> None:
        self.answers = list(answers)
        self.reads = reads
        self.asked = 0
        self.enough = asyncio.Event()

    async def get(self) -> None:
        if not self.reads:
            await self.create()

    async def create(self, *_: object) -> None:
        self.asked += 1
        if self.asked >= TRIES:
            self.enough.set()
        raise self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


async def said(client: Refusing, caplog: pytest.LogCaptureFixture) -> list[logging.LogRecord]:
    caplog.set_level(logging.INFO, "asched.leader")
    stand = Stand(RULES, "kube-system", "asched", ("asched",))
    campaign = Campaign(stand, Metrics().leader, lambda: None)
    running = asyncio.create_task(campaign.run(client))  # type: ignore[arg-type]
    async with asyncio.timeout(HANG_S):
        await client.enough.wait()
    running.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await running
    return [record for record in caplog.records if "lease" in record.msg][1:]  # after the attempt


@pytest.mark.parametrize("reads", [False, True])
async def test_a_forbidden_lease_is_one_error_with_its_cure(
    caplog: pytest.LogCaptureFixture, *, reads: bool
) -> None:
    """Also where it may be read, and not be made."""
    forbidden = Forbidden(403, "leases are forbidden", "Forbidden")
    (line,) = await said(Refusing(forbidden, reads=reads), caplog)
    assert line.levelno == logging.ERROR
    values = vars(line)
    assert values["err"] == "leases are forbidden"
    assert "deploy/base/rbac.yaml" in values["cure"]


async def test_another_trouble_is_told_too(caplog: pytest.LogCaptureFixture) -> None:
    failed = ServerFailed(500, "etcd is away")
    lines = await said(Refusing(failed, failed, Forbidden(403, "no"), failed), caplog)
    assert [vars(line)["err"] for line in lines] == ["etcd is away", "no", "etcd is away"]
