"""The kinds of this server: their paths, verbs and behaviour.

The table below is what `/apis` of a kube-apiserver 1.36 lists; a line reads

    plural Kind scope short-names categories verbs subresources...

with `N` for namespaced and `C` for cluster scope, `*` for the eight usual verbs, and for a
subresource its own verbs and kind where they are not get+patch+update of the same kind; an indented
line continues the one before. Behind the scope is how a kind is written, as clients see it:

    c   `metadata.generation` counts changes of the spec
    v   a PUT must have a version
    p   a PUT to a missing name creates the object
    r   its removal returns the object; that of other kinds returns a Status
    s   its status is stored when it comes with the object that is created
"""

import base64
import hashlib
from dataclasses import dataclass
from typing import Final

TABLE: Final = """
[v1]
bindings Binding N - - create
componentstatuses ComponentStatus C cs - get+list
configmaps ConfigMap N cm - *
endpoints Endpoints N ep - *
events Event N ev - *
limitranges LimitRange N limits - *
namespaces Namespace Cr ns - create+delete+get+list+patch+update+watch finalize:update status
nodes Node Cs no - * proxy:create+delete+get+patch+update=NodeProxyOptions status
persistentvolumeclaims PersistentVolumeClaim Nr pvc - * status
persistentvolumes PersistentVolume Cr pv - * status
pods Pod Ncr po all * attach:create+get=PodAttachOptions binding:create=Binding
  ephemeralcontainers eviction:create=policy/v1/Eviction exec:create+get=PodExecOptions log:get
  portforward:create+get=PodPortForwardOptions
  proxy:create+delete+get+patch+update=PodProxyOptions resize status
podtemplates PodTemplate Ncr - - *
replicationcontrollers ReplicationController Ncr rc all * scale=autoscaling/v1/Scale status
resourcequotas ResourceQuota Nr quota - * status
secrets Secret N - - *
serviceaccounts ServiceAccount Nr sa - * token:create=authentication.k8s.io/v1/TokenRequest
services Service Nr svc all * proxy:create+delete+get+patch+update=ServiceProxyOptions status
[apiregistration.k8s.io/v1]
apiservices APIService C - api-extensions * status
[apps/v1]
controllerrevisions ControllerRevision N - - *
daemonsets DaemonSet Nc ds all * status
deployments Deployment Nc deploy all * scale=autoscaling/v1/Scale status
replicasets ReplicaSet Nc rs all * scale=autoscaling/v1/Scale status
statefulsets StatefulSet Nc sts all * scale=autoscaling/v1/Scale status
[events.k8s.io/v1]
events Event N ev - *
[authentication.k8s.io/v1]
selfsubjectreviews SelfSubjectReview C - - create
tokenreviews TokenReview C - - create
[authorization.k8s.io/v1]
localsubjectaccessreviews LocalSubjectAccessReview N - - create
selfsubjectaccessreviews SelfSubjectAccessReview C - - create
selfsubjectrulesreviews SelfSubjectRulesReview C - - create
subjectaccessreviews SubjectAccessReview C - - create
[autoscaling/v2]
horizontalpodautoscalers HorizontalPodAutoscaler N hpa all * status
[autoscaling/v1]
horizontalpodautoscalers HorizontalPodAutoscaler N hpa all * status
[batch/v1]
cronjobs CronJob Nc cj all * status
jobs Job Nc - all * status
[certificates.k8s.io/v1]
certificatesigningrequests CertificateSigningRequest C csr - * approval status
[networking.k8s.io/v1]
ingressclasses IngressClass C - - *
ingresses Ingress Nc ing - * status
ipaddresses IPAddress C ip - *
networkpolicies NetworkPolicy Nc netpol - *
servicecidrs ServiceCIDR C - - * status
[policy/v1]
poddisruptionbudgets PodDisruptionBudget Ncv pdb - * status
[rbac.authorization.k8s.io/v1]
clusterrolebindings ClusterRoleBinding C - - *
clusterroles ClusterRole C - - *
rolebindings RoleBinding N - - *
roles Role N - - *
[storage.k8s.io/v1]
csidrivers CSIDriver Cvr - - *
csinodes CSINode Cvr - - *
csistoragecapacities CSIStorageCapacity Nv - - *
storageclasses StorageClass Cr sc - *
volumeattachments VolumeAttachment Cvr - - * status
volumeattributesclasses VolumeAttributesClass C vac - *
[admissionregistration.k8s.io/v1]
mutatingadmissionpolicies MutatingAdmissionPolicy C - api-extensions *
mutatingadmissionpolicybindings MutatingAdmissionPolicyBinding C - api-extensions *
mutatingwebhookconfigurations MutatingWebhookConfiguration C - api-extensions *
validatingadmissionpolicies ValidatingAdmissionPolicy C - api-extensions * status
validatingadmissionpolicybindings ValidatingAdmissionPolicyBinding C - api-extensions *
validatingwebhookconfigurations ValidatingWebhookConfiguration C - api-extensions *
[apiextensions.k8s.io/v1]
customresourcedefinitions CustomResourceDefinition C crd,crds api-extensions * status
[scheduling.k8s.io/v1]
priorityclasses PriorityClass Cc pc - *
[coordination.k8s.io/v1]
leases Lease Nvp - - *
[node.k8s.io/v1]
runtimeclasses RuntimeClass C - - *
[discovery.k8s.io/v1]
endpointslices EndpointSlice Nc - - *
[resource.k8s.io/v1]
deviceclasses DeviceClass Ccr - - *
resourceclaims ResourceClaim Nr - - * status
resourceclaimtemplates ResourceClaimTemplate Nr - - *
resourceslices ResourceSlice Ccr - - *
[resource.k8s.io/v1alpha3]
devicetaintrules DeviceTaintRule C - - * status
[flowcontrol.apiserver.k8s.io/v1]
flowschemas FlowSchema Cc - - * status
prioritylevelconfigurations PriorityLevelConfiguration Cc - - * status
"""

#: Kinds behind feature gates that are off, and custom ones: their group versions are served if
#: `Options.alpha` names them. Only discovery by group version shows them.
ALPHA_TABLE: Final = """
[scheduling.k8s.io/v1alpha2]
podgroups PodGroup N - - * status
[scheduling.k8s.io/v1alpha3]
podgroups PodGroup N - - * status
compositepodgroups CompositePodGroup N - - * status
workloads Workload N - - *
[scheduling.k8s.io/v1beta1]
podgroups PodGroup N - - * status
workloads Workload N - - *
[scheduling.x-k8s.io/v1alpha1]
podgroups PodGroup N pg,pgs - * status
elasticquotas ElasticQuota N eq,eqs - * status
[resource.k8s.io/v1beta2]
devicetaintrules DeviceTaintRule C - - * status
[kueue.x-k8s.io/v1beta2]
localqueues LocalQueue N queue,queues,lq - * status
[kueue.x-k8s.io/v1beta1]
localqueues LocalQueue N queue,queues,lq - * status
[autoscaling.x-k8s.io/v1]
provisioningrequests ProvisioningRequest N provreq,provreqs - * status
[autoscaling.x-k8s.io/v1beta1]
provisioningrequests ProvisioningRequest N provreq,provreqs - * status
"""
#: Kinds that a newer minor version serves besides; no scheduler reads its other new ones.
LATER_TABLE: Final = {
    "1.37": """
[resource.k8s.io/v1]
devicetaintrules DeviceTaintRule C - - * status
""",
    "1.38": """
[scheduling.k8s.io/v1]
podgroups PodGroup N - - * status
workloads Workload N - - *
""",
}
#: Minor versions that this server may be, and the release that it then says it is; 1.38 is known
#: in part.
RELEASES: Final = {"1.36": "v1.36.2", "1.37": "v1.37.1", "1.38": "v1.38.0-alpha.1"}
#: The only minor versions with a group version of ALPHA_TABLE.
ONLY_IN: Final = {
    "scheduling.k8s.io/v1alpha2": ("1.36",),
    "scheduling.k8s.io/v1alpha3": ("1.37", "1.38"),
    "scheduling.k8s.io/v1beta1": ("1.37", "1.38"),
}
#: Groups of custom resources: stored as they were sent, without strategic merge patch.
CUSTOM: Final = frozenset({"scheduling.x-k8s.io", "autoscaling.x-k8s.io", "kueue.x-k8s.io"})

USUAL_VERBS: Final = (
    "create",
    "delete",
    "deletecollection",
    "get",
    "list",
    "patch",
    "update",
    "watch",
)
STATUS_VERBS: Final = ("get", "patch", "update")

#: Versions that are served, but in discovery only if `Options.alpha` names them: a real server has
#: them only with --runtime-config, and workloads of scheduler_perf use them.
UNLISTED: Final = frozenset({("resource.k8s.io", "v1alpha3")})
#: Kinds read through several groups, (group, plural) -> (group, version) that owns the storage.
SHARED: Final = {
    ("events.k8s.io", "events"): ("", "v1"),
    ("autoscaling", "horizontalpodautoscalers"): ("autoscaling", "v2"),
}


@dataclass(frozen=True, slots=True)
class Subresource:
    """A subresource: its name, verbs, and the kind of its bodies."""

    name: str
    verbs: tuple[str, ...]
    kind: str
    group: str = ""
    version: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class Resource:
    """One line of the table, with what follows from it."""

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool
    short_names: tuple[str, ...]
    categories: tuple[str, ...]
    verbs: tuple[str, ...]
    subresources: tuple[Subresource, ...] = ()
    traits: str = ""

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def qualified(self) -> str:
        """The name in messages: `leases.coordination.k8s.io`, but plain `pods`."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def counted(self) -> bool:
        return "c" in self.traits

    @property
    def stored(self) -> bool:
        return "list" in self.verbs and "create" in self.verbs

    @property
    def storage(self) -> tuple[str, str]:
        """The key of the table that holds its objects: group and plural of the owner."""
        owner = SHARED.get((self.group, self.plural))
        return (owner[0] if owner else self.group, self.plural)

    @property
    def storage_hash(self) -> str:
        """The hash of the stored version in discovery: a short digest of group, version, kind."""
        group, version = SHARED.get((self.group, self.plural), (self.group, self.version))
        digest = hashlib.sha256(f"{group}/{version}/{self.kind}".encode()).digest()
        return base64.b64encode(digest[:8]).decode()

    def sub(self, name: str) -> Subresource | None:
        return next((sub for sub in self.subresources if sub.name == name), None)


def _subresource(text: str, kind: str) -> Subresource:
    text, _, target = text.partition("=")
    name, _, verbs = text.partition(":")
    group_version, _, sub_kind = target.rpartition("/")
    group, _, version = group_version.rpartition("/")
    allowed = tuple(verbs.split("+")) if verbs else STATUS_VERBS
    return Subresource(name, allowed, sub_kind or kind, group, version)


def _names(text: str) -> tuple[str, ...]:
    return () if text == "-" else tuple(text.split(","))


def parse(table: str) -> tuple[Resource, ...]:
    """Read the table; the order of its lines is the order of discovery."""
    resources = []
    group = version = ""
    for line in table.replace("\n  ", " ").strip().split("\n"):
        if line.startswith("["):
            group, _, version = line.strip("[]").rpartition("/")
            continue
        plural, kind, scope, short, categories, verbs, *subs = line.split()
        resources.append(
            Resource(
                group=group,
                version=version,
                plural=plural,
                kind=kind,
                namespaced=scope[0] == "N",
                traits=scope[1:],
                short_names=_names(short),
                categories=_names(categories),
                verbs=USUAL_VERBS if verbs == "*" else tuple(verbs.split("+")),
                subresources=tuple(_subresource(sub, kind) for sub in subs),
            )
        )
    return tuple(resources)


RESOURCES: Final = parse(TABLE)
ALPHA: Final = parse(ALPHA_TABLE)
#: Kinds of newer minor versions -> the first of them.
LATER: Final = {res: minor for minor, table in LATER_TABLE.items() for res in parse(table)}
#: Versions of the kinds of the first releases with pod groups.
POD_GROUPS: Final = frozenset({"scheduling.k8s.io/v1alpha2", "scheduling.x-k8s.io/v1alpha1"})
#: Versions of ProvisioningRequests.
REQUESTS: Final = frozenset({"autoscaling.x-k8s.io/v1"})
_ALL: Final = (*RESOURCES, *ALPHA, *LATER)
#: (group, version, plural) -> resource, for paths.
BY_PATH: Final = {(res.group, res.version, res.plural): res for res in _ALL}
#: (apiVersion, kind) -> resource, for manifests.
BY_KIND: Final = {(res.api_version, res.kind): res for res in _ALL}
#: Group -> its versions, in the order of discovery.
GROUPS: Final[dict[str, list[str]]] = {}
for _res in RESOURCES:
    if (_res.group, _res.version) in UNLISTED:
        continue
    if _res.version not in GROUPS.setdefault(_res.group, []):
        GROUPS[_res.group].append(_res.version)


def resources_of(minor: str) -> tuple[Resource, ...]:
    """What a server of this minor version serves by default."""
    have = list(RELEASES)[: list(RELEASES).index(minor) + 1]
    return (*RESOURCES, *(res for res, since in LATER.items() if since in have))


#: Plural names, plain and qualified -> resource.
_BY_NAME: Final[dict[str, Resource]] = {}
for _res in _ALL:
    if _res.stored:
        _BY_NAME.setdefault(_res.plural, _res)
        _BY_NAME.setdefault(_res.qualified, _res)


def find(plural: str) -> Resource:
    """The resource of a plural name, for callers in the same process; the first group wins, unless
    the name is qualified (`podgroups.scheduling.x-k8s.io`).
    """
    if (res := _BY_NAME.get(plural)) is None:
        raise KeyError(f"no resource is called {plural!r}")
    return res


PODS: Final = find("pods")
NODES: Final = find("nodes")
NAMESPACES: Final = find("namespaces")
EVENTS: Final = find("events")
PRIORITY_CLASSES: Final = find("priorityclasses")
BUDGETS: Final = find("poddisruptionbudgets")
SERVICE_ACCOUNTS: Final = find("serviceaccounts")
REPLICA_SETS: Final = find("replicasets")
#: What the Job controller of 1.38 makes for a Job.
WORKLOADS: Final = BY_KIND["scheduling.k8s.io/v1", "Workload"]
JOB_GROUPS: Final = BY_KIND["scheduling.k8s.io/v1", "PodGroup"]
