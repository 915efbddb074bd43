"""Objects of a new server: namespaces, classes, roles, its own service."""

from typing import Any, Final

from asched_lab.apiserver import bodies, crud
from asched_lab.apiserver.context import Context
from asched_lab.apiserver.resources import BY_KIND

JsonObject = dict[str, Any]

RBAC: Final = "rbac.authorization.k8s.io"
MADE_BY_SERVER: Final = {
    "labels": {"kubernetes.io/bootstrapping": "rbac-defaults"},
    "annotations": {"rbac.authorization.kubernetes.io/autoupdate": "true"},
}
SCHEDULER: Final = "system:kube-scheduler"
#: Rules as `verbs groups resources [names]`; lists are joined by commas, `core` is the empty group.
SCHEDULER_RULES: Final = """
create,patch,update core,events.k8s.io events
create coordination.k8s.io leases
get,list,update,watch coordination.k8s.io leases kube-scheduler
create,delete,deletecollection,get,list,patch,update,watch coordination.k8s.io leasecandidates
get,list,watch core nodes
delete,get,list,watch core pods
create core bindings,pods/binding
patch,update core pods/status
get,list,watch core replicationcontrollers,services
get,list,watch apps,extensions replicasets
get,list,watch apps statefulsets
get,list,watch policy poddisruptionbudgets
get,list,watch core persistentvolumeclaims,persistentvolumes
create authentication.k8s.io tokenreviews
create authorization.k8s.io subjectaccessreviews
get,list,watch storage.k8s.io csinodes
get,list,watch storage.k8s.io volumeattachments
get,list,watch core namespaces
get,list,watch storage.k8s.io csidrivers
get,list,watch storage.k8s.io csistoragecapacities
get,list,watch resource.k8s.io deviceclasses
get,list,patch,update,watch resource.k8s.io resourceclaims
get,list,patch,update,watch resource.k8s.io resourceclaims/status
update core pods/finalizers
get,list,watch resource.k8s.io resourceslices
create,delete resource.k8s.io resourceclaims
patch,update resource.k8s.io resourceclaims/binding
"""
VOLUME_RULES: Final = """
get,list,patch,update,watch core persistentvolumes
get,list,watch storage.k8s.io storageclasses
get,list,patch,update,watch core persistentvolumeclaims
"""
SELF_RULES: Final = """
create authorization.k8s.io selfsubjectaccessreviews,selfsubjectrulesreviews
create authentication.k8s.io selfsubjectreviews
"""
LEASE_RULES: Final = """
create,get,list,update,watch coordination.k8s.io leases
create,get,list,update,watch coordination.k8s.io leasecandidates
"""
READER_RULES: Final = "get,list,watch core configmaps extension-apiserver-authentication"
DISCOVERY_PATHS: Final = (
    "/api", "/api/*", "/apis", "/apis/*", "/healthz", "/livez", "/openapi", "/openapi/*", "/readyz",
    "/version", "/version/",
)  # fmt: skip
PUBLIC_PATHS: Final = ("/healthz", "/livez", "/readyz", "/version", "/version/")
#: Priority classes of every cluster: name and value.
CLASSES: Final = (
    ("system-node-critical", 2_000_001_000),
    ("system-cluster-critical", 2_000_000_000),
)
CLASS_TEXTS: Final = {
    "system-node-critical": (
        "Used for system critical pods that must not be moved from their current node."
    ),
    "system-cluster-critical": (
        "Used for system critical pods that must run in the cluster, but can be moved to another"
        " node if necessary."
    ),
}


def rules(text: str) -> list[JsonObject]:
    made = []
    for line in text.strip().splitlines():
        verbs, groups, resources, *names = line.split()
        rule: JsonObject = {
            "verbs": verbs.split(","),
            "apiGroups": ["" if group == "core" else group for group in groups.split(",")],
            "resources": resources.split(","),
        }
        if names:
            rule["resourceNames"] = names[0].split(",")
        made.append(rule)
    return made


def path_rules(paths: tuple[str, ...]) -> list[JsonObject]:
    return [{"verbs": ["get"], "nonResourceURLs": list(paths)}]


def role(kind: str, name: str, allowed: list[JsonObject], namespace: str = "") -> JsonObject:
    metadata: JsonObject = {"name": name, **MADE_BY_SERVER}
    if namespace:
        metadata["namespace"] = namespace
    return {"apiVersion": f"{RBAC}/v1", "kind": kind, "metadata": metadata, "rules": allowed}


def bind(
    name: str, role_name: str, subjects: tuple[tuple[str, str], ...], namespace: str = ""
) -> JsonObject:
    kind = "Role" if namespace else "ClusterRole"
    binding = role(f"{kind}Binding", name, [], namespace)
    del binding["rules"]
    binding["subjects"] = [
        {"kind": subject, "apiGroup": RBAC, "name": who} for subject, who in subjects
    ]
    binding["roleRef"] = {"apiGroup": RBAC, "kind": kind, "name": role_name}
    return binding


def namespaces() -> list[JsonObject]:
    return [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
        for name in ("kube-system", "kube-public", "default")
    ]


def config_map(name: str, data: dict[str, str]) -> JsonObject:
    metadata = {"name": name, "namespace": "kube-system"}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


def authentication(authority: str) -> JsonObject:
    """The ConfigMap that components read to trust a front proxy; `authority` is a PEM text."""
    return config_map(
        "extension-apiserver-authentication",
        {
            "client-ca-file": authority,
            "requestheader-allowed-names": '["front-proxy-client"]',
            "requestheader-client-ca-file": authority,
            "requestheader-extra-headers-prefix": '["X-Remote-Extra-"]',
            "requestheader-group-headers": '["X-Remote-Group"]',
            "requestheader-username-headers": '["X-Remote-User"]',
        },
    )


def priority_classes() -> list[JsonObject]:
    return [
        {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": name},
            "value": value,
            "description": CLASS_TEXTS[name],
        }
        for name, value in CLASSES
    ]


def roles() -> list[JsonObject]:
    user = (("User", SCHEDULER),)
    known = (("Group", "system:authenticated"),)
    everyone = (*known, ("Group", "system:unauthenticated"))
    reader, locker = "extension-apiserver-authentication-reader", "leader-locking-kube-scheduler"
    return [
        role("ClusterRole", "system:discovery", path_rules(DISCOVERY_PATHS)),
        role("ClusterRole", "system:public-info-viewer", path_rules(PUBLIC_PATHS)),
        role("ClusterRole", "system:basic-user", rules(SELF_RULES)),
        role("ClusterRole", "system:volume-scheduler", rules(VOLUME_RULES)),
        role("ClusterRole", SCHEDULER, rules(SCHEDULER_RULES)),
        bind("system:discovery", "system:discovery", known),
        bind("system:public-info-viewer", "system:public-info-viewer", everyone),
        bind("system:basic-user", "system:basic-user", known),
        bind("system:volume-scheduler", "system:volume-scheduler", user),
        bind(SCHEDULER, SCHEDULER, user),
        role("Role", reader, rules(READER_RULES), "kube-system"),
        role("Role", f"system::{locker}", rules(LEASE_RULES), "kube-system"),
        bind(f"system::{reader}", reader, user, "kube-system"),
        bind(f"system::{locker}", f"system::{locker}", user, "kube-system"),
    ]


def own_service(port: int) -> JsonObject:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {
            "name": "kubernetes",
            "namespace": "default",
            "labels": {"component": "apiserver", "provider": "kubernetes"},
        },
        "spec": {
            "ports": [{"name": "https", "protocol": "TCP", "port": 443, "targetPort": port}],
            "type": "ClusterIP",
        },
    }


def fill(ctx: Context, *, port: int, authority: str) -> None:
    """Create all objects of a new server, in an order that a real one may have."""
    since = config_map(
        "kube-apiserver-legacy-service-account-token-tracking", {"since": ctx.now()[:10]}
    )
    node_lease = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kube-node-lease"}}
    for manifest in (
        *namespaces(),
        authentication(authority),
        node_lease,
        since,
        *priority_classes(),
        *roles(),
        own_service(port),
    ):
        create_manifest(ctx, manifest)


def create_manifest(ctx: Context, manifest: JsonObject) -> None:
    """Create one object from its manifest, as a client's POST would."""
    res = BY_KIND[manifest["apiVersion"], manifest["kind"]]
    obj, _ = bodies.to_stored(res, manifest)
    crud.create(ctx, res, obj["metadata"].get("namespace", ""), obj)
