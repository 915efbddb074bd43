"""A solution as the API writes it: results, configuration, and the nodes on which an allocation is
usable.
"""

import hashlib
from collections.abc import Mapping

from msgspec.structs import replace

from asched.core.config.gates import DEFAULT_GATES
from asched.core.dra.allocator import ChosenDevice, Solution
from asched.core.dra.plan import ClaimPlan, PlannedRequest
from asched.core.model.claim import (
    AllocationResult,
    DeviceAllocationConfiguration,
    DeviceAllocationResult,
    DeviceRequestAllocationResult,
)
from asched.core.model.meta import LabelSelectorRequirement
from asched.core.model.selector import NodeSelector, NodeSelectorTerm

FROM_CLASS = "FromClass"
FROM_CLAIM = "FromClaim"


def allocation_results(
    plans: tuple[ClaimPlan, ...],
    solution: Solution,
    node: str,
    rules: Mapping[str, bool] = DEFAULT_GATES,
) -> tuple[AllocationResult, ...]:
    """One allocation per claim. Share ids are derived from claim and position, never drawn."""
    results = []
    for plan, chosen, selected in zip(plans, solution.devices, solution.selected, strict=True):
        requests = [plan.requests[r][index] for r, index in enumerate(selected)]
        devices = DeviceAllocationResult(
            results=tuple(_result(plan, index, device) for index, device in enumerate(chosen)),
            config=_config(plan, requests, once=rules["claim-config-once"]) or None,
        )
        results.append(AllocationResult(devices=devices, node_selector=_nodes(chosen, node)))
    return tuple(results)


def _result(plan: ClaimPlan, index: int, chosen: ChosenDevice) -> DeviceRequestAllocationResult:
    device, request = chosen.device, chosen.request
    return DeviceRequestAllocationResult(
        request=request.full_name,
        driver=device.id.driver,
        pool=device.id.pool,
        device=device.id.device,
        admin_access=True if request.admin else None,
        tolerations=request.tolerations or None,
        binding_conditions=device.record.binding_conditions,
        binding_failure_conditions=device.record.binding_failure_conditions,
        share_id=_share_id(plan, index, chosen) if device.allows_multiple else None,
        consumed_capacity=dict(chosen.consumed) if chosen.consumed else None,
    )


def _share_id(plan: ClaimPlan, index: int, chosen: ChosenDevice) -> str:
    """A UUID (version 8: custom scheme) that is unique among the shares of a device."""
    claim = plan.claim.metadata
    seed = f"{claim.uid}|{claim.key}|{index}|{chosen.device.id.text}".encode()
    digits = hashlib.sha256(seed).hexdigest()
    return f"{digits[:8]}-{digits[8:12]}-8{digits[13:16]}-8{digits[17:20]}-{digits[20:32]}"


def _config(
    plan: ClaimPlan, requests: list[PlannedRequest], *, once: bool
) -> tuple[DeviceAllocationConfiguration, ...]:
    """Configuration of classes, each class once with the requests it serves, then the
    claim's own.

    `once`: an entry of the claim appears once, and one that serves every request names none.
    """
    by_class: dict[str, list[PlannedRequest]] = {}
    for request in requests:
        by_class.setdefault(request.device_class.metadata.name, []).append(request)
    config = [
        DeviceAllocationConfiguration(
            source=FROM_CLASS,
            requests=tuple(r.full_name for r in served),
            opaque=entry.opaque,
        )
        for served in by_class.values()
        for entry in served[0].device_class.spec.config or ()
    ]
    for own in plan.claim.spec.devices.config or ():
        names = own.requests or ()
        # An entry without names applies to all requests; one with names appears for each of them.
        times = sum(r.full_name in names or r.parent in names for r in requests)
        config += [
            DeviceAllocationConfiguration(FROM_CLAIM, own.requests, own.opaque)
            for _ in range((min(times, 1) if once else times) if names else 1)
        ]
    if not once:
        return tuple(config)
    every = [{r.full_name, r.parent} for r in requests]

    def serves_all(entry: DeviceAllocationConfiguration) -> bool:
        return all(names & set(entry.requests or ()) for names in every)

    return tuple(replace(e, requests=None) if serves_all(e) else e for e in config)


def _nodes(chosen: tuple[ChosenDevice, ...], node: str) -> NodeSelector | None:
    """A device that is bound to a node binds all of them; otherwise the requirements of all devices
    apply.
    """
    fields: list[LabelSelectorRequirement] = []
    expressions: list[LabelSelectorRequirement] = []
    for selected in chosen:
        device, spec = selected.device, selected.device.slice.spec
        local = device.place.node_name if device.place is not None else spec.node_name
        if local or device.record.binds_to_node:
            is_node = LabelSelectorRequirement("metadata.name", "In", (node,))
            return NodeSelector((NodeSelectorTerm(match_fields=(is_node,)),))
        selector = device.place.selector if device.place is not None else spec.node_selector
        for term in (selector.node_selector_terms if selector is not None else None) or ():
            _merge(fields, term.match_fields)
            _merge(expressions, term.match_expressions)
    if not fields and not expressions:
        return None
    return NodeSelector((NodeSelectorTerm(tuple(expressions) or None, tuple(fields) or None),))


def _merge(
    into: list[LabelSelectorRequirement], new: tuple[LabelSelectorRequirement, ...] | None
) -> None:
    for wanted in new or ():
        same = (
            r.key == wanted.key
            and r.operator == wanted.operator
            and set(r.values or ()) == set(wanted.values or ())
            for r in into
        )
        if not any(same):
            into.append(wanted)
