"""The pods that a ProvisioningRequest is for: made of templates, or refused by name."""

import pytest

from asched.batch.provisioning.hypothetical_pods import UnusableRequestError, terms_of
from asched.core.config.args import CheckAndHoldArgs
from asched.core.model.decode import decode
from asched.core.model.provisioning import ProvisioningRequest

ARGS = CheckAndHoldArgs(hold_s=77)


def a_request(*sets: tuple[str, int], **parameters: str) -> ProvisioningRequest:
    pod_sets = [{"podTemplateRef": {"name": name}, "count": count} for name, count in sets]
    metadata = {"name": "job", "namespace": "team", "uid": "u1"}
    metadata["creationTimestamp"] = "2026-01-01T00:00:00Z"
    spec = {"podSets": pod_sets, "parameters": parameters}
    return decode(ProvisioningRequest, {"metadata": metadata, "spec": spec})


@pytest.mark.parametrize(
    "given",
    [
        {"holdSeconds": "0"},
        {"holdSeconds": "78"},
        {"holdSeconds": "-5"},
        {"holdSeconds": "1.5"},
        {"holdSeconds": "٣"},
        {"holdSeconds": "9" * 5_000},
        {"holdSeconds": "0" * 9 + "9" * 200},
        {"ValidUntilSeconds": "0" * 9 + "9" * 200},
        {"ValidUntilSeconds": "604801"},
        {"noRetry": "True"},
        {"other": "1"},
    ],
)
def test_parameters_out_of_bounds_are_refused_by_name(given: dict[str, str]) -> None:
    with pytest.raises(UnusableRequestError, match=next(iter(given))):
        terms_of(a_request(**given), ARGS)
