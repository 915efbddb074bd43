"""Requests and limits of a pod: containers, init containers, sidecars, overhead, pod-level
resources, resizes.

Sums are exact, in billionths of a unit (the finest quantity), and rounded up once at the end: cpu
to thousandths of a core, everything else to whole units.

Source  kubernetes/kubernetes v1.36 staging/src/k8s.io/component-helpers/resource/helpers.go,
        pkg/scheduler/framework/types.go (calculateResource)
"""

import re
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import Final

from asched.core.model.pod import Container, Pod, PodSpec, ResourceRequirements
from asched.core.model.quantity import CACHE_SIZE, Quantity, QuantityError, parse, within_int64
from asched.names import QUALIFIED_NAME_PATTERN, SUBDOMAIN_PATTERN

CPU: Final = "cpu"
MEMORY: Final = "memory"
EPHEMERAL_STORAGE: Final = "ephemeral-storage"
PODS: Final = "pods"

#: Assumed requests of a container without requests when nodes are scored (upstream's
#: util.Default…Request).
DEFAULT_CPU: Final = "100m"
DEFAULT_MEMORY: Final = str(200 * 1024 * 1024)

_NANO: Final = 10**9
_UNITS: Final = (("Gi", 1 << 30), ("Mi", 1 << 20), ("Ki", 1 << 10))
_NATIVE_PREFIX: Final = "kubernetes.io/"
#: A DNS subdomain and a name behind it.
_QUALIFIED: Final = re.compile(f"{SUBDOMAIN_PATTERN}/{QUALIFIED_NAME_PATTERN}")
_DOMAIN_LENGTH_MAX: Final = 253
_NAME_LENGTH_MAX: Final = 63

#: Resource name to billionths.
Exact = dict[str, int]


@lru_cache(maxsize=CACHE_SIZE)
def nano(text: Quantity) -> int:
    """The quantity in billionths, rounded up."""
    value = parse(text) * _NANO
    return -(-value.numerator // value.denominator)


def to_units(exact: Mapping[str, int]) -> dict[str, int]:
    """Milli-CPU for cpu, whole units for the rest, rounded up and kept within int64."""
    return {
        name: within_int64(-(-amount // (_NANO // 1000 if name == CPU else _NANO)))
        for name, amount in exact.items()
    }


def written(resource: str, amount: int) -> str:
    """An exact amount (milli-CPU, else whole units) in the API's notation."""
    if resource == CPU:
        return f"{amount}m" if amount % 1000 else str(amount // 1000)
    for suffix, size in _UNITS:
        if amount and amount % size == 0:
            return f"{amount // size}{suffix}"
    return str(amount)


def is_extended(name: str) -> bool:
    """Whether the resource has a domain other than Kubernetes' own, such as a device.

    Its name must be valid for a quota, which prefixes it with `requests.`.
    """
    if _NATIVE_PREFIX in name or name.startswith("requests."):
        return False
    prefix, _, rest = f"requests.{name}".partition("/")
    is_short = len(prefix) <= _DOMAIN_LENGTH_MAX and len(rest) <= _NAME_LENGTH_MAX
    return is_short and _QUALIFIED.fullmatch(name) is not None


@lru_cache(maxsize=4096)
def is_scalar(name: str) -> bool:
    """Whether the resource is counted, in addition to cpu, memory and ephemeral storage."""
    return (
        is_extended(name)
        or name.startswith(("hugepages-", "attachable-volumes-"))
        or _NATIVE_PREFIX in name
    )


def pod_requests(pod: Pod) -> dict[str, int]:
    """Requests of the pod's spec: the Fit filter's view of a pending pod."""
    return to_units(_aggregate(pod, resized=False))


def exact_requests(pod: Pod) -> dict[str, int]:
    """Like `pod_requests`, in billionths of a unit."""
    return _aggregate(pod, resized=False)


def container_requests(pod: Pod) -> dict[str, int]:
    """Like `pod_requests`, without requests on pod level: the resource scorers' view of a pending
    pod (the same quirk as in `scoring_requests`).
    """
    return to_units(_aggregate(pod, resized=False, pod_level=False))


def accounted_requests(pod: Pod, *, by_sum: bool = False) -> dict[str, int]:
    """Amounts that a running pod holds, including a resize in place: the node's view.

    `by_sum`: what is requested, allocated and in force is added up over the containers before the
    largest counts, since a resize is carried out as a whole.
    """
    return to_units(_aggregate(pod, resized=True, by_sum=by_sum))


def exact_limits(pod: Pod) -> Exact:
    """Limits in billionths of a unit: the sum of the containers' limits, or more while the pod
    starts.

    Like requests, with one exception: overhead is added only to limited resources, because an
    unlimited resource stays unlimited. A limit of zero is no limit.
    """
    total = _sum(pod.spec, {}, None, _limits)
    total.update(_limits(pod.spec.resources))
    for name, amount in (pod.spec.overhead or {}).items():
        if total.get(name):
            total[name] += nano(amount)
    return total


def scoring_requests(
    pod: Pod, *, pod_level: bool, resized: bool, by_sum: bool = False
) -> tuple[int, int]:
    """(milli-CPU, bytes) with the defaults for containers without requests.

    A running pod is counted with `pod_level` and `resized`; the resource scorers count the pending
    pod without either (an upstream quirk that recordings confirm).
    """
    defaults: Mapping[str, int] = _DEFAULTS
    if pod_level and pod.spec.resources and pod.spec.resources.requests:
        plain = _aggregate(pod, resized=resized, by_sum=by_sum)
        defaults = {name: amount for name, amount in _DEFAULTS.items() if name not in plain}
    exact = _aggregate(pod, resized=resized, by_sum=by_sum, pod_level=pod_level, defaults=defaults)
    units = to_units(exact)
    return units.get(CPU, 0), units.get(MEMORY, 0)


def is_simple(pod: Pod) -> bool:
    """Whether containers alone determine what the pod holds, now and when it runs."""
    spec, status = pod.spec, pod.status
    return not (
        spec.init_containers
        or spec.overhead
        or spec.resources
        or status.container_statuses
        or status.init_container_statuses
    )


def is_scaled_down(old: Pod, new: Pod) -> bool:
    """Whether any request decreased or was removed between two versions of a pod.

    An unreadable amount counts as decreased. Either way to add up several containers decides.
    """
    before_spec, after_spec = old.spec, new.spec
    if old.status is new.status and before_spec is after_spec:
        return False
    if is_simple(old) and is_simple(new) and before_spec.containers == after_spec.containers:
        return False
    try:
        for by_sum in (False, True)[: len(old.spec.containers or ())]:
            before = _aggregate(old, resized=True, by_sum=by_sum)
            after = _aggregate(new, resized=True, by_sum=by_sum)
            if any(name not in after or after[name] < amount for name, amount in before.items()):
                return True
    except QuantityError:
        return True
    return False


_DEFAULTS: Final[Mapping[str, int]] = {CPU: nano(DEFAULT_CPU), MEMORY: nano(DEFAULT_MEMORY)}


def _aggregate(
    pod: Pod,
    *,
    resized: bool,
    by_sum: bool = False,
    pod_level: bool = True,
    defaults: Mapping[str, int] | None = None,
) -> Exact:
    """Steps 1 to 5 of the rule: containers, sidecars, init containers, pod level, overhead."""
    if resized and by_sum:
        total = _largest_sum(pod, defaults)
    else:
        total = _sum(pod.spec, _resized_requests(pod) if resized else {}, defaults)
    if pod_level and pod.spec.resources is not None:
        total.update(_pod_level(pod, resized=resized, may_add=by_sum))
    if pod.spec.overhead:
        _add(total, {name: nano(amount) for name, amount in pod.spec.overhead.items()})
    return total


def _largest_sum(pod: Pod, defaults: Mapping[str, int] | None) -> Exact:
    """The largest of what is requested, allocated and in force, each for all containers."""
    spec, status, infeasible = pod.spec, pod.status, pending_resize(pod) == "Infeasible"
    total = {} if infeasible else _sum(spec, {}, defaults)
    of_pod = status.resources
    if (
        status.allocated_resources is not None
        and of_pod is not None
        and of_pod.requests is not None
    ):
        _raise(total, {name: nano(amount) for name, amount in status.allocated_resources.items()})
        _raise(total, _exact(of_pod))
        return total
    containers = (*(spec.containers or ()), *(spec.init_containers or ()))
    allocated: dict[str, Exact] = {c.name: {} for c in containers} if infeasible else {}
    known = (*(status.container_statuses or ()), *(status.init_container_statuses or ()))
    for container in known:
        if container.allocated_resources is not None:
            amounts = container.allocated_resources.items()
            allocated[container.name] = {name: nano(amount) for name, amount in amounts}
    in_force = {
        container.name: _exact(container.resources)
        for container in known
        if container.resources is not None and container.resources.requests is not None
    }
    _raise(total, _sum(spec, allocated, defaults))
    _raise(total, _sum(spec, allocated | in_force, defaults))
    return total


def _sum(
    spec: PodSpec,
    statuses: Mapping[str, Exact],
    defaults: Mapping[str, int] | None,
    amounts_of: Callable[[ResourceRequirements | None], Exact] | None = None,
) -> Exact:
    """Containers, sidecars and init containers. `statuses` replace the requests of containers."""
    amounts_of = amounts_of or _exact
    total: Exact = {}
    for container in spec.containers or ():
        _add(total, _container(container, statuses, defaults, amounts_of))
    sidecars: Exact = {}
    peaks: Exact = {}
    for container in spec.init_containers or ():
        wanted = _container(container, statuses, defaults, amounts_of)
        if container.restart_policy == "Always":
            _add(total, wanted)
            _add(sidecars, wanted)
            wanted = sidecars
        else:
            wanted = dict(wanted)
            _add(wanted, sidecars)
        _raise(peaks, wanted)
    if peaks:
        _raise(total, peaks)
    return total


def _container(
    container: Container,
    statuses: Mapping[str, Exact],
    defaults: Mapping[str, int] | None,
    amounts_of: Callable[[ResourceRequirements | None], Exact],
) -> Exact:
    effective = statuses.get(container.name)
    wanted = effective if effective is not None else amounts_of(container.resources)
    if not defaults:
        return wanted
    return {**defaults, **wanted}


def _exact(resources: ResourceRequirements | None) -> Exact:
    if resources is None or not resources.requests:
        return {}
    return {name: nano(amount) for name, amount in resources.requests.items()}


def _limits(resources: ResourceRequirements | None) -> Exact:
    if resources is None or not resources.limits:
        return {}
    return {name: nano(amount) for name, amount in resources.limits.items()}


def _resized_requests(pod: Pod) -> dict[str, Exact]:
    """Container name -> effective request, for containers whose status has resources."""
    spec, status = pod.spec, pod.status
    if not status.container_statuses and not status.init_container_statuses:
        return {}
    status_resources = {
        s.name: s
        for s in (*(status.container_statuses or ()), *(status.init_container_statuses or ()))
    }
    infeasible = pending_resize(pod) == "Infeasible"
    effective: dict[str, Exact] = {}
    for container in _resizable(spec.containers, spec.init_containers):
        known = status_resources.get(container.name)
        if known is None or known.resources is None:
            continue
        wanted: Exact = {} if infeasible else dict(_exact(container.resources))
        _raise(wanted, _exact(known.resources))
        _raise(wanted, {n: nano(a) for n, a in (known.allocated_resources or {}).items()})
        effective[container.name] = wanted
    return effective


def _resizable(
    containers: tuple[Container, ...] | None, init_containers: tuple[Container, ...] | None
) -> Iterator[Container]:
    yield from containers or ()
    yield from (c for c in init_containers or () if c.restart_policy == "Always")


def pending_resize(pod: Pod) -> str:
    """Why a resize in place is pending: Deferred or Infeasible; "" if none is."""
    pending = pod.condition("PodResizePending")
    return "" if pending is None else pending.reason


def _pod_level(pod: Pod, *, resized: bool, may_add: bool) -> Exact:
    """Requests on pod level; only cpu, memory and huge pages are allowed there.

    The status raises or replaces amounts of resources that the specification names. `may_add`: it
    adds others, too, if the specification names any.
    """
    wanted = {n: a for n, a in _exact(pod.spec.resources).items() if _is_pod_level(n)}
    if resized and pod.status.resources is not None and (wanted or not may_add):
        effective = {} if pending_resize(pod) == "Infeasible" else dict(wanted)
        _raise(effective, _exact(pod.status.resources))
        _raise(effective, {n: nano(a) for n, a in (pod.status.allocated_resources or {}).items()})
        if may_add:
            return {name: amount for name, amount in effective.items() if _is_pod_level(name)}
        wanted = {name: effective.get(name, 0) for name in wanted}
    return wanted


def _is_pod_level(name: str) -> bool:
    return name in (CPU, MEMORY) or name.startswith("hugepages-")


def _add(total: Exact, more: Mapping[str, int]) -> None:
    for name, amount in more.items():
        total[name] = total.get(name, 0) + amount


def _raise(total: Exact, other: Mapping[str, int]) -> None:
    for name, amount in other.items():
        if amount > total.get(name, -1):
            total[name] = amount
