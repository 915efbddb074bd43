"""ProvisioningRequests: room requested for future pods, and templates of these pods.

Source  kubernetes/autoscaler cluster-autoscaler/apis/provisioningrequest (v1, v1beta1)
"""

from enum import Enum
from typing import Final

from asched.core.model.meta import ApiObject, Record
from asched.core.model.pod import PodSpec
from asched.core.model.workload import Condition

#: Types of conditions of a ProvisioningRequest.
ACCEPTED: Final = "Accepted"
PROVISIONED: Final = "Provisioned"
FAILED: Final = "Failed"
BOOKING_EXPIRED: Final = "BookingExpired"
CAPACITY_REVOKED: Final = "CapacityRevoked"
#: Final conditions: no room is reserved for the request any more, whatever its other conditions.
ENDS: Final = (FAILED, BOOKING_EXPIRED, CAPACITY_REVOKED)


class RequestStage(Enum):
    """State of a request, derived from its conditions."""

    UNDECIDED = "undecided"
    HELD = "held"
    ENDED = "ended"


class PodTemplateSpec(ApiObject, frozen=True, gc=False):
    spec: PodSpec = PodSpec()


class PodTemplate(ApiObject, frozen=True, gc=False):
    template: PodTemplateSpec = PodTemplateSpec()


class PodTemplateReference(Record, frozen=True, gc=False):
    name: str = ""


class PodSet(Record, frozen=True, gc=False):
    """A number of pods of a template in the request's namespace."""

    pod_template_ref: PodTemplateReference = PodTemplateReference()
    count: int = 0


class ProvisioningRequestSpec(Record, frozen=True, gc=False):
    pod_sets: tuple[PodSet, ...] = ()
    provisioning_class_name: str = ""
    parameters: dict[str, str] | None = None


class ProvisioningRequestStatus(Record, frozen=True, gc=False):
    conditions: tuple[Condition, ...] | None = None
    provisioning_class_details: dict[str, str] | None = None


class ProvisioningRequest(ApiObject, frozen=True, gc=False):
    """Its spec is immutable."""

    spec: ProvisioningRequestSpec = ProvisioningRequestSpec()
    status: ProvisioningRequestStatus = ProvisioningRequestStatus()

    def condition(self, type_: str) -> Condition | None:
        for condition in self.status.conditions or ():
            if condition.type == type_:
                return condition
        return None

    @property
    def stage(self) -> RequestStage:
        true = {c.type for c in self.status.conditions or () if c.status == "True"}
        if not true.isdisjoint(ENDS):
            return RequestStage.ENDED
        return RequestStage.HELD if PROVISIONED in true else RequestStage.UNDECIDED
