"""Feature gates of kube-scheduler 1.36: their stage, default, lock and parents, and
`--feature-gates`.

Rules   a locked gate may be named with its own value only; an enabled gate needs its parents
        enabled, also when it is enabled by default; an unknown gate is a warning, not an error;
        AllAlpha and AllBeta move every gate of their stage that is not named itself.
                A gate that asched implements is in HONOURED. A gate that kube-scheduler implements
                and asched does not is in REFUSED, and rejected if it differs from its default. All
                others belong to other components: setting them gives a warning and has no effect.
Source  help text and start-up errors of kube-scheduler 1.36.2
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import msgspec

from asched.core.config.gate_table import GATES, LOCKED, PARENTS
from asched.core.config.problem import quoted

ALL_ALPHA: Final = "AllAlpha"
ALL_BETA: Final = "AllBeta"
#: Upstream groups gates by component; a scheduler has only one.
COMPONENT: Final = "kube"

#: Gates that asched implements.
HONOURED: Final = frozenset(
    {
        ALL_ALPHA,
        ALL_BETA,
        "ComponentFlagz",
        "ComponentStatusz",
        "DRADeviceTaintRules",
        "DRAPrioritizedList",
        "DRASchedulerFilterTimeout",
        "GangScheduling",
        "GenericWorkload",
        "LoggingAlphaOptions",
        "LoggingBetaOptions",
        "MatchLabelKeysInPodTopologySpread",
        "NodeDeclaredFeatures",
        "NominatedNodeNameForExpectation",
        "SchedulerAsyncAPICalls",
        "StorageCapacityScoring",
        "TaintTolerationComparisonOperators",
        "TopologyAwareWorkloadScheduling",
        "VolumeLimitScaling",
        "WorkloadAwarePreemption",
    }
)
_ALWAYS: Final = "asched cannot do without it"
_NEVER: Final = "asched does not implement it"
#: Gates of kube-scheduler that asched keeps at their default -> reason.
REFUSED: Final[Mapping[str, str]] = {
    **dict.fromkeys(
        (
            "DRAConsumableCapacity",
            "DRADeviceBindingConditions",
            "DRADeviceTaints",
            "DRAExtendedResource",
            "DRAPartitionableDevices",
            "DRAResourceClaimDeviceStatus",
            "PodLevelResources",
            "SchedulerAsyncPreemption",
            "SchedulerPopFromBackoffQ",
            "WatchListClient",
        ),
        _ALWAYS,
    ),
    **dict.fromkeys(
        (
            "CoordinatedLeaderElection",
            "DRAListTypeAttributes",
            "DRANodeAllocatableResources",
            "DRAWorkloadResourceClaims",
            "NativeHistograms",
        ),
        _NEVER,
    ),
}

_TRUE: Final = frozenset({"1", "t", "T", "TRUE", "true", "True"})
_FALSE: Final = frozenset({"0", "f", "F", "FALSE", "false", "False"})

DEFAULT_GATES: Final[Mapping[str, bool]] = {name: default for name, (_, default) in GATES.items()}


class GateError(Exception):
    """`--feature-gates` is invalid; with kube-scheduler's message where it rejects the
    value, too.
    """


class FeatureGates(msgspec.Struct, frozen=True):
    """The state of every gate, and the warnings for the user."""

    enabled: Mapping[str, bool]
    warnings: tuple[str, ...] = ()


def parse_bool(text: str) -> bool:
    """A Go boolean; raises ValueError with Go's message."""
    if text in _TRUE:
        return True
    if text in _FALSE:
        return False
    raise ValueError(f"strconv.ParseBool: parsing {quoted(text)}: invalid syntax")


def parse(values: Sequence[str]) -> FeatureGates:
    """The gates after every `--feature-gates` value, in the order given; raises GateError."""
    by_component: dict[str, list[str]] = {}
    for value in values:
        for pair in filter(None, (part.strip() for part in value.split(","))):
            component, _, own = pair.partition(":") if ":" in pair else ("", "", pair)
            by_component.setdefault(component.strip(), []).append(own)
    if {"", COMPONENT} <= by_component.keys():
        raise GateError(
            "set kube feature gates with default empty prefix or kube: prefix consistently, do not"
            " mix use"
        )
    for component in by_component:
        if component not in ("", COMPONENT):
            raise GateError(f"component not registered: {component}")
    asked: dict[str, bool] = {}
    for pair in (pair for pairs in by_component.values() for pair in pairs):
        name, equals, text = (part.strip() for part in pair.partition("="))
        if not equals:
            raise GateError(f"missing bool value for {pair}")
        try:
            asked[name] = parse_bool(text)
        except ValueError as error:
            raise GateError(f"invalid value of {name}={text}, err: {error}") from error
    gates = resolve(asked)
    _refuse(gates.enabled)
    idle = tuple(
        f"feature gate {name} has no effect on this scheduler"
        for name, value in asked.items()
        if name in GATES and name not in HONOURED and value is not DEFAULT_GATES[name]
    )
    return FeatureGates(gates.enabled, (*gates.warnings, *idle))


def _refuse(enabled: Mapping[str, bool]) -> None:
    """Raises GateError for gates that asched does not implement."""
    faults = [
        f"feature gate {name}={str(enabled[name]).lower()} is refused: {reason}"
        for name, reason in sorted(REFUSED.items())
        if enabled[name] is not DEFAULT_GATES[name]
    ]
    if faults:
        raise GateError("; ".join(faults))


def resolve(asked: Mapping[str, bool]) -> FeatureGates:
    """Defaults, then AllAlpha and AllBeta, then the listed gates; raises GateError."""
    state = dict(DEFAULT_GATES)
    for group, stage in ((ALL_ALPHA, "ALPHA"), (ALL_BETA, "BETA")):
        if asked.get(group):
            state.update({name: True for name, (own, _) in GATES.items() if own == stage})
    if asked.get(ALL_BETA) is False:
        state.update({name: False for name, (own, _) in GATES.items() if own == "BETA"})
    warnings = []
    for name, value in asked.items():
        if name not in GATES:
            warnings.append(f"unrecognized feature gate: {name}")
            continue
        if name in LOCKED and value is not DEFAULT_GATES[name]:
            state_text = "true" if DEFAULT_GATES[name] else "false"
            raise GateError(
                f"cannot set feature gate {name} to {str(value).lower()}, "
                f"feature is locked to {state_text}"
            )
        state[name] = value
    alpha = [name for name, on in state.items() if on and GATES[name][0] == "ALPHA"]
    if alpha:
        warnings.append(
            "component has alpha features enabled in emulated version, this is unsupported: "
            f"features=[{' '.join(alpha)}]"
        )
    faults = list(_orphans(state))
    if faults:
        raise GateError(faults[0] if len(faults) == 1 else f"[{', '.join(faults)}]")
    return FeatureGates(state, tuple(warnings))


def _orphans(state: Mapping[str, bool]) -> Iterable[str]:
    for name, parents in PARENTS.items():
        off = [parent for parent in parents if not state.get(parent, False)]
        if state.get(name, False) and off:
            yield f"{name} is enabled, but depends on features that are disabled: [{' '.join(off)}]"
