"""The recorded answers of a kube-apiserver, replayed: no difference but those listed with a reason.

The transcripts of kubectl record only which requests it made; they are repeated with kubectl itself
in `test_kubectl.py`, not line by line.
"""

import json

import pytest

from asched.kube.certificates import client_context
from asched_lab.measure.real import RealServer, assets
from asched_lab.record.transcripts.replay import Replay, server_of
from tests.lab.apiserver.differences import ALLOWED, unexplained
from tests.support import recorded_lines, recorded_text

RECORDED = json.loads(recorded_text("apiserver/index.json"))["scenarios"]
SCENARIOS = sorted(name for name in RECORDED if not name.startswith("kubectl_"))
#: What a scheduler depends on most. Each needs a server without objects: some seconds.
REPEATED = (
    "binding_basic",
    "deletion",
    "eviction",
    "leader_election",
    "pod_status",
    "scheduler_session",
)


@pytest.mark.parametrize("scenario", SCENARIOS)
async def test_answers_as_recorded(scenario: str) -> None:
    lines = recorded_lines(f"apiserver/transcripts/{scenario}.jsonl")
    group = RECORDED[scenario]["group"]

    async with server_of(group, scenario) as server:
        replay = Replay(scenario, lines, server, group)
        found = await replay.run()
    replay.check_order(RECORDED[scenario]["rv_ascending"])

    assert not unexplained(found), "\n".join(map(str, unexplained(found)))


@pytest.mark.real
@pytest.mark.parametrize("scenario", REPEATED)
async def test_a_real_server_answers_as_recorded(scenario: str) -> None:
    folder = assets()
    if folder is None:
        pytest.skip("KUBEBUILDER_ASSETS names no folder with etcd and kube-apiserver")
    lines = recorded_lines(f"apiserver/transcripts/{scenario}.jsonl")
    async with RealServer(folder) as server:
        certificate = (server.folder / "serving.crt").read_bytes()
        context = client_context(authorities=certificate)
        replay = Replay(scenario, lines, server, RECORDED[scenario]["group"], context)
        found = await replay.run()
    replay.check_order(RECORDED[scenario]["rv_ascending"])

    assert not found, "\n".join(map(str, found))


async def test_only_what_requests_write_has_an_order() -> None:
    """The server creates its own service when it likes."""
    scenario, own, pods = "scheduler_session", "$rv5", ("$rv12", "$rv13")
    ascending = RECORDED[scenario]["rv_ascending"]
    lines = recorded_lines(f"apiserver/transcripts/{scenario}.jsonl")
    async with server_of("main", scenario) as server:
        replay = Replay(scenario, lines, server, "main")
        found = await replay.run()
    replay.bound[own] = "1000"
    replay.check_order(ascending)
    assert found == []
    replay.bound |= dict(zip(pods, [replay.bound[name] for name in reversed(pods)], strict=True))
    replay.check_order(ascending)
    assert "$rv12 < $rv13" in [one.recorded for one in found]


def test_every_allowed_difference_says_why() -> None:
    assert all(len(allowed.reason) > 30 and allowed.path for allowed in ALLOWED)
