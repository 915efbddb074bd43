"""Defaults of pods and pod templates, applied before all other rules.

They work in place on an object built by `schema.decode`, on every write, also on the result of a
patch, where a patched container gets its defaults back.
"""

from collections.abc import Iterator
from typing import Any, Final

from asched_lab.apiserver import quantities

JsonObject = dict[str, Any]

FILE_MODE: Final = 0o644
#: Volume sources with a default `defaultMode`.
SOURCES_WITH_MODE: Final = ("secret", "configMap", "downwardAPI", "projected")
POD_SPEC: Final = (
    ("restartPolicy", "Always"),
    ("terminationGracePeriodSeconds", 30),
    ("dnsPolicy", "ClusterFirst"),
    ("schedulerName", "default-scheduler"),
)
PROBE: Final = (
    ("timeoutSeconds", 1),
    ("periodSeconds", 10),
    ("successThreshold", 1),
    ("failureThreshold", 3),
)


def containers_of(spec: JsonObject) -> Iterator[tuple[str, JsonObject]]:
    """Every container with its path in the spec, in the order of error messages."""
    for member in ("containers", "initContainers", "ephemeralContainers"):
        for index, container in enumerate(spec.get(member) or ()):
            yield f"{member}[{index}]", container


def default_pod(pod: JsonObject) -> None:
    """All defaults of a pod: those of its spec, and requests that follow limits."""
    spec = pod["spec"]
    default_pod_spec(spec)
    spec.setdefault("enableServiceLinks", True)
    for _, container in containers_of(spec):
        requests_follow_limits(container["resources"])
    if "resources" in spec:
        pod_requests_follow(spec)


def pod_requests_follow(spec: JsonObject) -> None:
    """Requests of a whole pod: the sum of its containers, else the pod's own limit."""
    resources = spec["resources"]
    for name, limit in resources.get("limits", {}).items():
        requested = [
            container["resources"].get("requests", {}).get(name)
            for container in spec.get("containers") or ()
        ]
        amounts = [quantities.value(amount) for amount in requested if amount is not None]
        wanted = quantities.canonical(str(sum(amounts))) if amounts else limit
        resources.setdefault("requests", {}).setdefault(name, wanted)


def requests_follow_limits(resources: JsonObject) -> None:
    limits = resources.get("limits")
    if limits:
        requests = resources.setdefault("requests", {})
        for name, amount in limits.items():
            requests.setdefault(name, amount)


def default_pod_spec(spec: JsonObject) -> None:
    """All defaults of a pod spec, also in templates."""
    for name, value in POD_SPEC:
        spec.setdefault(name, value)
    spec.setdefault("securityContext", {})
    account = spec.get("serviceAccountName") or spec.get("serviceAccount")
    if account:
        spec["serviceAccountName"] = spec["serviceAccount"] = account
    host_network = spec.get("hostNetwork", False)
    for _, container in containers_of(spec):
        default_container(container, host_network=host_network)
    for volume in spec.get("volumes") or ():
        default_volume(volume)


def default_container(container: JsonObject, *, host_network: bool) -> None:
    container.setdefault("terminationMessagePath", "/dev/termination-log")
    container.setdefault("terminationMessagePolicy", "File")
    container.setdefault("imagePullPolicy", pull_policy(container.get("image", "")))
    for port in container.get("ports") or ():
        port.setdefault("protocol", "TCP")
        if host_network and port["containerPort"]:
            port.setdefault("hostPort", port["containerPort"])
    for env in container.get("env") or ():
        field_ref = (env.get("valueFrom") or {}).get("fieldRef")
        if field_ref is not None:
            field_ref.setdefault("apiVersion", "v1")
    for name in ("livenessProbe", "readinessProbe", "startupProbe"):
        if name in container:
            default_probe(container[name])


def pull_policy(image: str) -> str:
    """Always for the tag latest, written or implied; a digest counts as a tag."""
    if "@" in image:
        return "IfNotPresent"
    _, colon, tag = image.rpartition("/")[2].partition(":")
    return "Always" if not colon or tag == "latest" else "IfNotPresent"


def default_probe(probe: JsonObject) -> None:
    for name, value in PROBE:
        probe.setdefault(name, value)
    get = probe.get("httpGet")
    if get is not None:
        get.setdefault("path", "/")
        get.setdefault("scheme", "HTTP")
    grpc = probe.get("grpc")
    if grpc is not None:
        grpc.setdefault("service", "")


def default_volume(volume: JsonObject) -> None:
    for name in SOURCES_WITH_MODE:
        if name in volume:
            volume[name].setdefault("defaultMode", FILE_MODE)
    if "projected" in volume:
        for source in volume["projected"]["sources"] or ():
            default_projection(source)
    if "downwardAPI" in volume:
        default_projection(volume)
    if "hostPath" in volume:
        volume["hostPath"].setdefault("type", "")
    if "iscsi" in volume:
        volume["iscsi"].setdefault("iscsiInterface", "default")
    if "rbd" in volume:
        for name, value in (("pool", "rbd"), ("user", "admin"), ("keyring", "/etc/ceph/keyring")):
            volume["rbd"].setdefault(name, value)
    template = (volume.get("ephemeral") or {}).get("volumeClaimTemplate")
    if template is not None:
        template["spec"].setdefault("volumeMode", "Filesystem")
    # A volume without any source is an empty directory.
    if len(volume) == 1:
        volume["emptyDir"] = {}


def default_projection(source: JsonObject) -> None:
    token = source.get("serviceAccountToken")
    if token is not None:
        token.setdefault("expirationSeconds", 3600)
    for item in (source.get("downwardAPI") or {}).get("items") or ():
        if "fieldRef" in item:
            item["fieldRef"].setdefault("apiVersion", "v1")
