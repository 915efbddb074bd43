"""DeviceTaintRules: taints that administrators put on devices, merged with those of the driver.

Source  kubernetes/kubernetes v1.36 staging/src/k8s.io/dynamic-resource-allocation/resourceslice
        (tracker), gate DRADeviceTaintRules
"""

from collections.abc import Sequence

from msgspec.structs import replace

from asched.core.model.claim import Device, DeviceTaintRule, ResourceSlice


def tainted(record: ResourceSlice, rules: Sequence[DeviceTaintRule]) -> ResourceSlice:
    """The slice with the taints of all rules added; the same object if no rule applies."""
    spec = record.spec
    about = [rule for rule in rules if _is_about(rule, spec.driver, spec.pool.name)]
    if not about or not spec.devices:
        return record
    devices = tuple(_with_taints(device, about) for device in spec.devices)
    if devices == spec.devices:
        return record
    return replace(record, spec=replace(spec, devices=devices))


def _is_about(rule: DeviceTaintRule, driver: str, pool: str) -> bool:
    """Whether the rule may apply to a device of the pool."""
    selector = rule.spec.device_selector
    return (
        selector is not None and selector.driver in {None, driver} and selector.pool in {None, pool}
    )


def _with_taints(device: Device, rules: Sequence[DeviceTaintRule]) -> Device:
    more = tuple(
        rule.spec.taint
        for rule in rules
        if rule.spec.device_selector is not None
        and rule.spec.device_selector.device in {None, device.name}
    )
    return replace(device, taints=(*(device.taints or ()), *more)) if more else device
