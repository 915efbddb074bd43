"""The args of GpuSharing: its strategies, names of resources and labels, and the expected pods."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from asched.hardware.gpu.shares import WHOLE, GpuDemand
from asched.hardware.rows import UpstreamArgs
from asched.plugin import qualified_name_faults

FRAGMENTATION_GRADIENT_DESCENT: Final = "FragmentationGradientDescent"
CUTTING_STOCK: Final = "CuttingStock"
BEST_FIT: Final = "BestFit"
DOT_PRODUCT: Final = "DotProduct"
PACKING: Final = "Packing"
CLUSTERING: Final = "Clustering"
#: Strategies that use expected pods.
EXPECTING: Final = (FRAGMENTATION_GRADIENT_DESCENT, CUTTING_STOCK)
STRATEGIES: Final = (*EXPECTING, BEST_FIT, DOT_PRODUCT, PACKING, CLUSTERING)
#: Nodes with more devices count as having this many.
DEVICES_MAX: Final = 64


@dataclass(frozen=True, slots=True)
class ExpectedPod:
    """A shape of pods, and how many are expected; `milli_device` thousandths of each device, whole
    devices by default. Raises ValueError.
    """

    milli_cpu: int = field(default=0, metadata={"name": "milliCPU"})
    devices: int = 0
    milli_device: int | None = None
    weight: int = 1
    models: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        faults = []
        if self.weight < 1:
            faults.append(f"weight {self.weight} must be at least 1")
        if self.milli_cpu < 0:
            faults.append(f"milliCPU {self.milli_cpu} must not be negative")
        if not 0 <= self.devices <= DEVICES_MAX:
            faults.append(f"devices {self.devices} not in valid range [0, {DEVICES_MAX}]")
        lowest = {0: 0, 1: 1}.get(self.devices, WHOLE)
        highest = WHOLE if self.devices else 0
        if not lowest <= self._milli <= highest:
            faults.append(
                f"milliDevice {self._milli} not in valid range [{lowest}, {highest}] for"
                f" {self.devices} devices"
            )
        if faults:
            raise ValueError("; ".join(faults))

    @property
    def _milli(self) -> int:
        if self.milli_device is not None:
            return self.milli_device
        return WHOLE if self.devices else 0

    @property
    def demand(self) -> GpuDemand:
        return GpuDemand(self.milli_cpu, self._milli, self.devices, tuple(sorted(self.models)))


@dataclass(frozen=True, slots=True)
class GpuSharingArgs(UpstreamArgs):
    """Names and the strategy. Raises ValueError.

    strategy: FragmentationGradientDescent, CuttingStock, BestFit, DotProduct, Packing or Clustering
    resource: the resource that counts devices
    share_resource: the resource that is the percentage a pod takes of its one device, 1 to 100
    devices_label: label of a node with the number of its devices; the allocatable number without
    model_label: label of a node with the model of its devices
    workload: expected pods, in fields `milliCPU`, `devices` (0 to 64), `milliDevice` (thousandths
        of each), `weight` (from 1) and `models`; learnt from the pods on the nodes without. Only
        for the first two strategies
    """

    strategy: str = FRAGMENTATION_GRADIENT_DESCENT
    resource: str = "nvidia.com/gpu"
    share_resource: str = "nvidia.com/gpucores"
    devices_label: str = "nvidia.com/gpu.count"
    model_label: str = "nvidia.com/gpu.product"
    workload: tuple[ExpectedPod, ...] = ()

    def __post_init__(self) -> None:
        UpstreamArgs.__post_init__(self)
        faults = list(self._faults())
        if faults:
            raise ValueError("; ".join(faults))

    def _faults(self) -> Iterator[str]:
        if self.strategy not in STRATEGIES:
            yield f'strategy "{self.strategy}" is none of {", ".join(STRATEGIES)}'
        elif self.workload and self.strategy not in EXPECTING:
            yield f"strategy {self.strategy} expects no pods: workload must be left out"
        names = {"resource": self.resource, "shareResource": self.share_resource}
        names |= {"devicesLabel": self.devices_label, "modelLabel": self.model_label}
        for name, value in names.items():
            if wrong := qualified_name_faults(value):
                yield f'{name} "{value}": {"; ".join(wrong)}'
