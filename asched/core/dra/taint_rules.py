"""DeviceTaintRules: taints that administrators put on devices, merged with those of the driver.

Source  kubernetes/kubernetes v1.36 staging/src/k8s.io/dynamic-resource-allocation/resourceslice
        (tracker), gate DRADeviceTaintRules
"""

from collections.abc import Sequence

from msgspec.structs import replace

from asched.core.model.claim import DeviceTaintRule, ResourceSlice


def tainted(record: ResourceSlice, rules: Sequence[DeviceTaintRule]) -> ResourceSlice:
    """The slice with the taints of all rules added; the same object if no rule applies."""
    spec = record.spec
    about = [
        (selector.device, rule.spec.taint)
        for rule in rules
        if (selector := rule.spec.device_selector) is not None
        and selector.driver in {None, spec.driver}
        and selector.pool in {None, spec.pool.name}
    ]
    if not about or not spec.devices:
        return record
    devices = []
    for device in spec.devices:
        more = tuple(taint for name, taint in about if name in {None, device.name})
        taints = (*(device.taints or ()), *more)
        devices.append(replace(device, taints=taints) if more else device)
    if tuple(devices) == spec.devices:
        return record
    return replace(record, spec=replace(spec, devices=tuple(devices)))
