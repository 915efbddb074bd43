"""KubeSchedulerConfiguration v1 as records: a valid document with every default applied.

Rules   a record's own defaults are kube-scheduler 1.36's defaults, so that
        `SchedulerConfiguration()` with one default profile is a minimal file
        (`defaults.default_configuration`); what a field declares is said in `fields.py`;
        a line `field: meaning` of the record's docstring is printed on the reference page;
        durations are whole nanoseconds (`_ns`), as in Go, so that no text is ever rounded; args of
        a plugin that is not in tree are the mapping that the user wrote.
Source  kubernetes/kubernetes v1.36 staging/src/k8s.io/kube-scheduler/config/v1/types.go,
        k8s.io/component-base/config/v1alpha1
"""

import math
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Final, cast

import msgspec

from asched import names
from asched.core.config.args import ARGS_TYPES, PERCENT_MAX, PluginArgs, kind_of_args
from asched.core.config.fields import (
    POSITIVE,
    ConfigDocument,
    ConfigRecord,
    Duration,
    FieldMark,
    Float32,
    Int32,
    Int64,
    Scalar,
    ValueRange,
)
from asched.core.config.gates import DEFAULT_GATES
from asched.core.config.pools import NodePool
from asched.core.model.timestamp import NS_PER_SECOND

API_GROUP: Final = "kubescheduler.config.k8s.io"
API_VERSION: Final = "kubescheduler.config.k8s.io/v1"
KIND: Final = "KubeSchedulerConfiguration"

#: Valid in every disable list: disables all defaults.
ALL_PLUGINS: Final = "*"
MULTI_POINT: Final = "multiPoint"
PLACEMENT_GENERATE: Final = "placementGenerate"
PLACEMENT_SCORE: Final = "placementScore"
#: The points for pod groups only; they are not used while the gate is off.
PLACEMENT_POINTS: Final = (PLACEMENT_GENERATE, PLACEMENT_SCORE)
#: Every key of `profiles[].plugins` but multiPoint.
POINTS: Final = (*names.EXTENSION_POINTS, *PLACEMENT_POINTS)
POD_GROUP_POST_FILTER: Final = "podGroupPostFilter"
#: Those of newer minor versions: point -> the rule that brings it (`versions.py`).
LATER_POINTS: Final = {POD_GROUP_POST_FILTER: "pod-group-post-filter-is-configured"}

_Text = Annotated[str, FieldMark.OMIT_EMPTY]
_Bool = Annotated[bool, FieldMark.OMIT_EMPTY]
_Bytes = Annotated[bytes, Scalar.BYTES, FieldMark.OMIT_EMPTY]
_TextOrDefault = Annotated[str, FieldMark.ZERO_IS_ABSENT]
_PERCENT: Final = ValueRange(0, PERCENT_MAX, "not in valid range [0-100]")
_WORKERS: Final = ValueRange(1, math.inf, "should be an integer value greater than zero")
_BACKOFF: Final = ValueRange(1, math.inf, "must be greater than 0")
_BURST: Final = ValueRange(0, math.inf, "must be non-negative")


class PluginEntry(ConfigRecord, frozen=True):
    """One entry of an `enabled` or `disabled` list; weight 0 is "not set"."""

    name: str = ""
    weight: Int32 = 0


class PluginSet(ConfigRecord, frozen=True):
    """What one extension point (or multiPoint) enables and disables, in the order written.

    enabled: Plugins to add at an extension point or at `multiPoint`, with `name` and `weight`
    disabled: Plugins to remove; `*` removes all defaults
    """

    enabled: tuple[PluginEntry, ...] = ()
    disabled: tuple[PluginEntry, ...] = ()


NO_PLUGINS: Final = PluginSet()
#: The sets of a profile as a record: one field for each point.
Plugins: Final = cast(
    "type[ConfigRecord]",
    msgspec.defstruct(
        "Plugins",
        [(point, PluginSet, NO_PLUGINS) for point in (*POINTS, *LATER_POINTS, MULTI_POINT)],
        bases=(ConfigRecord,),
        frozen=True,
    ),
)


class PluginConfig(ConfigRecord, frozen=True):
    """Args of one plugin: a record of `core.config.args`, a raw mapping, or None.

    name: The plugin that the arguments belong to
    args: Its arguments, see below
    """

    name: str = ""
    args: Annotated[PluginArgs | Mapping[str, Any] | None, FieldMark.PRINTED] = None


class KubeSchedulerProfile(ConfigRecord, frozen=True):
    """A scheduler name and the plugins that schedule its pods.

    `plugins` maps each of POINTS and multiPoint to its set, with defaults merged; an absent point
    is empty. `plugin_configs` keeps the order of the file, followed by default args.

    scheduler_name: The `spec.schedulerName` that the profile serves
    percentage_of_nodes_to_score: As above, for this profile
    """

    scheduler_name: str = names.DEFAULT_SCHEDULER_NAME
    #: 0..100; 0 is adaptive; None uses the configuration's own value.
    percentage_of_nodes_to_score: Annotated[int | None, Scalar.INT32, _PERCENT] = None
    plugins: Annotated[Mapping[str, PluginSet], Plugins] = msgspec.field(default_factory=dict)
    plugin_configs: Annotated[tuple[PluginConfig, ...], "pluginConfig"] = ()
    #: Legacy Policy's alwaysCheckAllPredicates: the remaining filters run on a rejected node, too.
    always_check_all_filters: Annotated[bool, FieldMark.OWN] = False

    @property
    def plugin_config(self) -> dict[str, PluginArgs | Mapping[str, Any] | None]:
        """Args by plugin name; a repeated name is an error that validation reports."""
        return {entry.name: entry.args for entry in self.plugin_configs}

    def plugin_set(self, point: str) -> PluginSet:
        return self.plugins.get(point, NO_PLUGINS)


#: A renewal may be late by this factor, so that replicas do not renew in step (client-go).
JITTER_FACTOR: Final = 1.2


class LeaderElection(ConfigRecord, frozen=True):
    """Timing of leader election, and its Lease.

    leader_elect: Schedule only while holding the lease
    lease_duration_ns: Age at which a lease is free for another process
    renew_deadline_ns: Time to renew before the leader stops
    retry_period_ns: Time between two attempts to get or renew the lease
    resource_lock: Kind of lock; `leases` is the only one
    resource_name: Name of the lease. `asched run` takes `asched` where the file names none, unless
        a profile serves `default-scheduler`
    resource_namespace: Namespace of the lease
    """

    leader_elect: bool = True
    lease_duration_ns: Annotated[Duration, POSITIVE] = 15 * NS_PER_SECOND
    renew_deadline_ns: Annotated[Duration, POSITIVE] = 10 * NS_PER_SECOND
    retry_period_ns: Annotated[Duration, POSITIVE] = 2 * NS_PER_SECOND
    resource_lock: _TextOrDefault = "leases"
    resource_name: _TextOrDefault = "kube-scheduler"
    resource_namespace: _TextOrDefault = "kube-system"


class ClientConnection(ConfigRecord, frozen=True):
    """The connection to the API server.

    kubeconfig: Path of a kubeconfig; empty in a pod
    accept_content_types: No effect: asched speaks JSON
    content_type: No effect: asched speaks JSON
    qps: Requests a second; negative is unlimited (kube-scheduler: 50)
    burst: Requests above the rate for a moment
    """

    kubeconfig: str = ""
    accept_content_types: str = ""
    content_type: _TextOrDefault = "application/vnd.kubernetes.protobuf"
    qps: Annotated[Float32, FieldMark.ZERO_IS_ABSENT] = -1
    burst: Annotated[Int32, FieldMark.ZERO_IS_ABSENT, _BURST] = 100


class ExtenderTLSConfig(ConfigRecord, frozen=True):
    """TLS of one extender; `*_data` are the decoded bytes.

    insecure: Do not verify the certificate
    server_name: Name to verify in place of the host
    cert_file: Client certificate
    key_file: Key of the client certificate
    ca_file: Certificate authority
    cert_data: Client certificate, base64; takes precedence over the file
    key_data: Key, base64; takes precedence over the file
    ca_data: Authority, base64; takes precedence over the file
    """

    insecure: _Bool = False
    server_name: _Text = ""
    cert_file: _Text = ""
    key_file: _Text = ""
    ca_file: _Text = ""
    cert_data: _Bytes = b""
    key_data: _Bytes = b""
    ca_data: _Bytes = b""


class ExtenderManagedResource(ConfigRecord, frozen=True):
    """An extended resource that an extender manages.

    name: Extended resource; only pods that request one of these are sent
    ignored_by_scheduler: NodeResourcesFit does not check the resource
    """

    name: str = ""
    ignored_by_scheduler: _Bool = False


class Extender(ConfigRecord, frozen=True):
    """An HTTP extender; an empty verb disables that capability.

    url_prefix: Address of the extender
    filter_verb: Path of the filter call; empty switches it off
    preempt_verb: Path of the preemption call
    prioritize_verb: Path of the score call
    weight: Factor of its scores
    bind_verb: Path of the bind call; the extender then binds the pods it manages
    enable_https: Use TLS although the address does not say so
    http_timeout_ns: Time for one call
    node_cache_capable: Send names of nodes instead of whole nodes
    ignorable: A failing call does not fail the attempt
    """

    url_prefix: str = ""
    filter_verb: _Text = ""
    preempt_verb: _Text = ""
    prioritize_verb: _Text = ""
    weight: Annotated[Int64, FieldMark.OMIT_EMPTY] = 0
    bind_verb: _Text = ""
    enable_https: Annotated[_Bool, "enableHTTPS"] = False
    tls_config: ExtenderTLSConfig | None = None
    http_timeout_ns: Duration = 5 * NS_PER_SECOND
    node_cache_capable: _Bool = False
    managed_resources: tuple[ExtenderManagedResource, ...] = ()
    ignorable: _Bool = False

    @property
    def http_timeout_s(self) -> float:
        return self.http_timeout_ns / NS_PER_SECOND


class SchedulerConfiguration(ConfigDocument, frozen=True):
    """The whole document; `core.config.validate` checks it.

    parallelism: No effect: one loop decides
    enable_profiling: Serve `/debug/pprof`
    enable_contention_profiling: No effect: there are no locks to profile
    percentage_of_nodes_to_score: Stop at this share of feasible nodes; 0 scores all feasible nodes
    pod_initial_backoff_s: Backoff after the first failed attempt
    pod_max_backoff_s: Longest backoff
    delay_cache_until_active: Fill the cache only after the lease is held
    pool_leases: A Lease for each pool: several replicas decide, each for the pools that it holds
    """

    kind: ClassVar[str] = KIND

    parallelism: Annotated[Int32, _WORKERS] = 16
    leader_election: Annotated[LeaderElection, FieldMark.START_ONLY] = LeaderElection()
    client_connection: Annotated[ClientConnection, FieldMark.START_ONLY] = ClientConnection()
    enable_profiling: Annotated[bool, FieldMark.START_ONLY] = True
    enable_contention_profiling: Annotated[bool, FieldMark.START_ONLY] = True
    percentage_of_nodes_to_score: Annotated[Int32, _PERCENT] = 0
    pod_initial_backoff_s: Annotated[Int64, _BACKOFF] = 1
    pod_max_backoff_s: Int64 = 10
    delay_cache_until_active: Annotated[_Bool, FieldMark.START_ONLY] = False
    profiles: Annotated[tuple[KubeSchedulerProfile, ...], FieldMark.PRINTED] = ()
    extenders: tuple[Extender, ...] = ()
    #: Our own: parts of the cluster with pods of their own.
    pools: tuple[NodePool, ...] = ()
    pool_leases: Annotated[_Bool, FieldMark.START_ONLY] = False
    #: The feature gates that apply.
    gates: Annotated[Mapping[str, bool], FieldMark.OWN] = msgspec.field(
        default_factory=lambda: DEFAULT_GATES
    )


#: Every kind of the group, version v1.
KINDS: Final[Mapping[str, type[ConfigDocument]]] = {
    KIND: SchedulerConfiguration,
    **{kind_of_args(plugin): record for plugin, record in ARGS_TYPES.items()},
}
#: Fields of other versions, and their replacement.
ABSENT_FIELDS: Final[Mapping[str, str]] = {
    "minResourcesHoldSeconds": "removed, delete the line: minResources is checked before a group"
    " starts, and no room is held afterwards",
    "defaultTimeout": "an argument of Koordinator's Coscheduling, delete the line:"
    " permitWaitingTimeSeconds has the same purpose",
    "controllerWorkers": "an argument of Koordinator's Coscheduling, delete the line: asched has no"
    " such workers",
    "placementFeasible": "delete the line: Kubernetes 1.38 and newer have the extension point"
    " PlacementFeasible, asched does not",
}
