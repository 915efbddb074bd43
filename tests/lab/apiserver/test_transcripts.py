"""The recorded answers of a kube-apiserver, replayed: no difference but those listed with a reason.

The transcripts of kubectl record only which requests it made; they are repeated with kubectl itself
in `test_kubectl.py`, not line by line.
"""

import json

import pytest

from tests.lab.apiserver.differences import ALLOWED, unexplained
from tests.lab.apiserver.replay import Replay, server_of
from tests.support import recorded_lines, recorded_text

RECORDED = json.loads(recorded_text("apiserver/index.json"))["scenarios"]
SCENARIOS = sorted(name for name in RECORDED if not name.startswith("kubectl_"))


@pytest.mark.parametrize("scenario", SCENARIOS)
async def test_answers_as_recorded(scenario: str) -> None:
    lines = recorded_lines(f"apiserver/transcripts/{scenario}.jsonl")
    group = RECORDED[scenario]["group"]

    async with server_of(group, scenario) as server:
        replay = Replay(scenario, lines, server, group)
        found = await replay.run()
    replay.check_order(RECORDED[scenario]["rv_ascending"])

    assert not unexplained(found), "\n".join(map(str, unexplained(found)))


def test_every_allowed_difference_says_why() -> None:
    assert all(len(allowed.reason) > 30 and allowed.path for allowed in ALLOWED)
