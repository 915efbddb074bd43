"""The hypothetical pods of a ProvisioningRequest, made from its templates.

Only scheduling rules see these pods: no group counts them, and they do not exist in the API.
Templates with requirements that counting a pod on its node cannot hold are refused, with the name
of the template. So are templates that keep pods of other namespaces away, since a PodTemplate
does not pass the admission of pods.

Bounds  PODS_MAX pods a request.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple

import msgspec

from asched.batch.provisioning.book import PODS_MAX
from asched.core.cluster.cluster import Cluster
from asched.core.cluster.pod_groups import COSCHEDULING_LABEL
from asched.core.cluster.pods import PodInfo
from asched.core.config.args import CheckAndHoldArgs
from asched.core.model.kinds import POD_TEMPLATE
from asched.core.model.meta import ObjectMeta
from asched.core.model.pod import Pod, PodSpec
from asched.core.model.provisioning import PodTemplate, ProvisioningRequest

#: No admission has checked the priority of a template: hypothetical pods have the lowest priority,
#: and so respect every nomination.
LEAST: Final = -(1 << 31)
HOLD_SECONDS: Final = "holdSeconds"
NO_RETRY: Final = "noRetry"
VALID_UNTIL_SECONDS: Final = "ValidUntilSeconds"
PARAMETERS: Final = (HOLD_SECONDS, NO_RETRY, VALID_UNTIL_SECONDS)
AWAY: Final = "podAntiAffinity with namespaces or namespaceSelector"
#: The highest value of a parameter in seconds.
DIGITS_MAX: Final = 10
#: As long as cluster-autoscaler tries.
VALID_S: Final = 7 * 86_400


class UnusableRequestError(Exception):
    """A request cannot be served: never, or until the template `lacks` exists."""

    def __init__(self, message: str, *, lacks: str = "") -> None:
        super().__init__(message)
        #: the key of a template that does not exist
        self.lacks = lacks


class Terms(NamedTuple):
    """The parameters of a request: seconds, and whether it is tried again."""

    hold_s: float
    valid_s: float
    is_tried_again: bool


def terms_of(request: ProvisioningRequest, args: CheckAndHoldArgs) -> Terms:
    """Raises UnusableRequestError."""
    given = request.spec.parameters or {}
    unknown = sorted(given.keys() - set(PARAMETERS))
    if unknown:
        raise UnusableRequestError(
            f"unknown parameter {unknown[0]!r}: this class knows {', '.join(PARAMETERS)}"
        )
    hold_s = _seconds(given, HOLD_SECONDS, args.hold_s, args.hold_s)
    valid_s = _seconds(given, VALID_UNTIL_SECONDS, VALID_S, VALID_S)
    retry = given.get(NO_RETRY, "false")
    if retry not in ("true", "false"):
        raise UnusableRequestError(f'parameter {NO_RETRY!r} must be "true" or "false": {retry!r}')
    return Terms(hold_s, valid_s, retry == "false")


def _seconds(given: Mapping[str, str], name: str, default: int, most: int) -> float:
    text = given.get(name)
    if text is None:
        return default
    is_number = text.isascii() and text.isdigit() and len(text) <= DIGITS_MAX
    if not is_number or not 1 <= int(text) <= most:
        raise UnusableRequestError(f"parameter {name!r} must be seconds, 1 to {most}: {text!r}")
    return int(text)


def examples(cluster: Cluster, request: ProvisioningRequest) -> list[tuple[PodInfo, int]]:
    """A pod of each pod set, and the number of its pods. Raises UnusableRequestError."""
    namespace, counted = request.metadata.namespace, []
    total = sum(pod_set.count for pod_set in request.spec.pod_sets)
    if not request.spec.pod_sets or any(pods.count < 1 for pods in request.spec.pod_sets):
        raise UnusableRequestError("every pod set must count a pod at least")
    if total > PODS_MAX:
        raise UnusableRequestError(f"{total} pods: no more than {PODS_MAX} are held for a request")
    for index, pod_set in enumerate(request.spec.pod_sets):
        name = pod_set.pod_template_ref.name
        template: PodTemplate | None = cluster.stored(POD_TEMPLATE, f"{namespace}/{name}")
        if template is None:
            raise UnusableRequestError(
                f'podtemplates "{name}" not found', lacks=f"{namespace}/{name}"
            )
        info = cluster.classes.info_of(_pod(request, template, index))
        if info.cls.host_ports:
            raise UnusableRequestError(
                f'podtemplates "{name}" has host ports, which are not held: only the admission of'
                " a pod decides whether it may have them"
            )
        counted.append((info, pod_set.count))
    return counted


def numbered(like: PodInfo, request: ProvisioningRequest, pod_set: int, number: int) -> PodInfo:
    """A pod of a set, with a name and uid of its own."""
    name = f"{request.metadata.name}-{pod_set}-{number}"
    uid = f"{request.metadata.uid}/{pod_set}-{number}"
    metadata = msgspec.structs.replace(like.pod.metadata, name=name, uid=uid)
    return PodInfo(msgspec.structs.replace(like.pod, metadata=metadata), like.cls)


def _pod(request: ProvisioningRequest, template: PodTemplate, index: int) -> Pod:
    spec, metadata = template.template.spec, template.template.metadata
    _refuse(template.metadata.name, spec)
    labels = {k: v for k, v in (metadata.labels or {}).items() if k != COSCHEDULING_LABEL}
    return Pod(
        ObjectMeta(
            name=f"{request.metadata.name}-{index}",
            namespace=request.metadata.namespace,
            uid=f"{request.metadata.uid}/{index}",
            labels=labels or None,
            creation_timestamp=request.metadata.creation_timestamp,
        ),
        msgspec.structs.replace(
            spec,
            node_name="",
            priority=LEAST,
            scheduling_gates=None,
            scheduling_group=None,
            scheduler_name=spec.scheduler_name or "default-scheduler",
        ),
    )


def _refuse(name: str, spec: PodSpec) -> None:
    anti = spec.affinity.pod_anti_affinity if spec.affinity is not None else None
    terms = (anti.required if anti is not None else None) or ()
    held = "which cannot be held"
    for is_refused, why in (
        (spec.node_name, "names a node: there is no choice left"),
        (
            any(term.namespaces or term.namespace_selector is not None for term in terms),
            f"keeps pods of other namespaces away ({AWAY}), {held}",
        ),
        (spec.resource_claims, f"claims devices (resourceClaims), {held}"),
        (
            any(volume.ephemeral is not None for volume in spec.volumes or ()),
            f"has generic ephemeral volumes, {held}",
        ),
    ):
        if is_refused:
            raise UnusableRequestError(f'podtemplates "{name}" {why}')
