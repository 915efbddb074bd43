"""The seal of a start without an election, which follows whatever ran before it."""

import json

import pytest

from asched_lab.apiserver.faults import Fault
from tests.unit.host.elected import a_pod, a_scheduler, bound, until

#: Answers of a real server.
POLICY = (
    "pods \"web\" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: no"
)
OTHER = 'Pod "web" is invalid: metadata.uid: Invalid value: "1": field is immutable'


def answers(server, status, document):
    """The server answers patches of the pod's status with this."""
    text = json.dumps(document)
    path = "/pods/web/status$"
    fault = Fault("refuse", path, "PATCH", status=status, retry_after_s=None, text=text)
    server.faults.add(fault)


def refusal(message):
    return {"kind": "Status", "message": message, "reason": "Invalid", "code": 422}


@pytest.mark.parametrize("is_refused", [True, False])
async def test_a_pod_that_cannot_be_touched_delays_the_first_decision(
    server, tmp_path, caplog, is_refused
):
    """A policy forbids it, or a webhook undoes it: the old version would still be accepted."""
    pod = server.create("pods", a_pod("web"))
    answers(server, 422 if is_refused else 200, refusal(POLICY) if is_refused else pod)
    async with a_scheduler(tmp_path) as scheduler:
        await until(lambda: "Bindings begin after a pause" in caplog.text)

        assert not scheduler.begun.is_set()
    assert not bound(server)


async def test_another_pod_of_the_same_name_needs_no_touch(server, tmp_path, caplog):
    server.create("pods", a_pod("web"))
    answers(server, 422, refusal(OTHER))
    async with a_scheduler(tmp_path) as scheduler:
        await until(scheduler.begun.is_set)

    assert "Bindings begin after a pause" not in caplog.text
