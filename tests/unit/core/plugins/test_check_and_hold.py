"""CheckAndHold at the gate: pods wait for the answer to their request, if that is ours."""

from typing import Any

import pytest

from asched.batch.provisioning.plugin import CheckAndHold
from asched.core.cluster.changes import Action, Trigger
from asched.core.cluster.cluster import Cluster
from asched.core.cluster.consumers import CONSUMES
from asched.core.cluster.facts import Seen
from asched.core.config.args import CheckAndHoldArgs
from asched.core.framework.registrations import Hint
from asched.core.model.decode import decode
from asched.core.model.kinds import PROVISIONING_REQUEST
from asched.core.model.provisioning import ProvisioningRequest
from tests.builders import a_pod

OURS = "check-and-hold.asched.dev"


def a_request(name: str = "job", cls: str = OURS, **said: str) -> ProvisioningRequest:
    conditions = [{"type": type_, "status": status} for type_, status in said.items()]
    metadata = {"name": name, "namespace": "default", "uid": name}
    spec = {"provisioningClassName": cls}
    return decode(
        ProvisioningRequest,
        {"metadata": metadata, "spec": spec, "status": {"conditions": conditions}},
    )


def gate(*requests: ProvisioningRequest, args: CheckAndHoldArgs | None = None) -> CheckAndHold:
    cluster = Cluster()
    for request in requests:
        cluster.apply(Seen(PROVISIONING_REQUEST, request))
    return CheckAndHold(args, cluster)


CONSUMER = a_pod().metadata(annotations={CONSUMES: "job"}).build()


@pytest.mark.parametrize(
    ("request_", "may_enter"),
    [
        (a_request(), False),
        (a_request(Accepted="True"), False),
        (a_request(Provisioned="False"), False),
        (a_request(Provisioned="True"), True),
        (a_request(Failed="True"), True),
        (a_request(cls="another"), True),
        (a_request("other"), True),
    ],
)
def test_a_pod_enters_once_its_request_has_an_answer(
    request_: ProvisioningRequest, may_enter: bool
) -> None:
    status = gate(request_).pre_enqueue(CONSUMER)
    assert status.is_success == may_enter
    if not may_enter:
        assert status.message == 'waiting for an answer to its ProvisioningRequest "job"'


def test_others_are_not_held_up() -> None:
    assert gate(a_request()).pre_enqueue(a_pod().build()).is_success
    assert gate().pre_enqueue(CONSUMER).is_success


def test_it_serves_the_class_that_it_is_told_to() -> None:
    args = CheckAndHoldArgs(provisioning_class_name="another")
    assert not gate(a_request(cls="another"), args=args).pre_enqueue(CONSUMER).is_success
    assert gate(a_request(), args=args).pre_enqueue(CONSUMER).is_success


def test_its_answer_or_its_end_lets_the_pod_in() -> None:
    plugin = gate(a_request(Provisioned="True"))
    (registration,) = plugin.registrations()
    hint: Any = registration.hint
    answered, other = a_request(Provisioned="True"), a_request("other")
    assert hint(CONSUMER, a_request(), answered) is Hint.QUEUE
    assert hint(CONSUMER, answered, None) is Hint.QUEUE
    assert hint(CONSUMER, None, other) is Hint.SKIP
    assert hint(a_pod().build(), None, answered) is Hint.SKIP
    undecided = gate(a_request())
    (registration,) = undecided.registrations()
    hint = registration.hint
    assert hint(CONSUMER, None, a_request()) is Hint.SKIP
    assert registration.trigger == Trigger(
        PROVISIONING_REQUEST.resource, Action.UPDATE | Action.DELETE
    )
