"""How far a ProvisioningRequest has come, by what it says itself."""

import pytest

from asched.core.model.provisioning import (
    ProvisioningRequest,
    ProvisioningRequestStatus,
    RequestStage,
)
from asched.core.model.workload import Condition


def saying(**statuses: str) -> ProvisioningRequest:
    conditions = tuple(Condition(type=type_, status=status) for type_, status in statuses.items())
    return ProvisioningRequest(status=ProvisioningRequestStatus(conditions=conditions))


@pytest.mark.parametrize(
    ("said", "stage"),
    [
        ({}, RequestStage.UNDECIDED),
        ({"Accepted": "True"}, RequestStage.UNDECIDED),
        ({"Provisioned": "False"}, RequestStage.UNDECIDED),
        ({"Provisioned": "True"}, RequestStage.HELD),
        ({"Provisioned": "True", "BookingExpired": "False"}, RequestStage.HELD),
        ({"Provisioned": "True", "BookingExpired": "True"}, RequestStage.ENDED),
        ({"Failed": "True"}, RequestStage.ENDED),
        ({"CapacityRevoked": "True", "Provisioned": "True"}, RequestStage.ENDED),
    ],
)
def test_its_conditions_say_how_far_it_has_come(said: dict[str, str], stage: RequestStage) -> None:
    assert saying(**said).stage is stage
