"""KubeSchedulerConfiguration v1 as records: a valid document with every default applied.

Rules   a record's own defaults are kube-scheduler 1.36's defaults, so that
        `SchedulerConfiguration()` with one default profile is a minimal file
        (`core.config.defaults.default_profile`); durations are whole nanoseconds (`_ns`), as in Go,
        so that no text is ever rounded; args of a plugin that is not in tree are the mapping that
        the user wrote.
Bounds  none: a document is read once, its size is the file's.
Source  kubernetes/kubernetes v1.36 staging/src/k8s.io/kube-scheduler/config/v1/types.go
"""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from asched import names
from asched.core.config.args import PluginArgs
from asched.core.config.gates import DEFAULT_GATES
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


class PluginEntry(msgspec.Struct, frozen=True):
    """One entry of an `enabled` or `disabled` list; weight 0 is "not set"."""

    name: str = ""
    weight: int = 0


class PluginSet(msgspec.Struct, frozen=True):
    """What one extension point (or multiPoint) enables and disables, in the order written."""

    enabled: tuple[PluginEntry, ...] = ()
    disabled: tuple[PluginEntry, ...] = ()


NO_PLUGINS: Final = PluginSet()


class PluginConfig(msgspec.Struct, frozen=True):
    """Args of one plugin: a record of `core.config.args`, a raw mapping, or None."""

    name: str = ""
    args: PluginArgs | Mapping[str, Any] | None = None


class KubeSchedulerProfile(msgspec.Struct, frozen=True):
    """A scheduler name and the plugins that schedule its pods.

    `plugins` maps each of POINTS and multiPoint to its set, with defaults merged; an absent point
    is empty. `plugin_configs` keeps the order of the file, followed by default args.
    """

    scheduler_name: str = names.DEFAULT_SCHEDULER_NAME
    #: 0..100; 0 is adaptive; None uses the configuration's own value.
    percentage_of_nodes_to_score: int | None = None
    plugins: Mapping[str, PluginSet] = msgspec.field(default_factory=dict)
    plugin_configs: tuple[PluginConfig, ...] = ()
    #: Legacy Policy's alwaysCheckAllPredicates: the remaining filters run on a rejected node, too.
    always_check_all_filters: bool = False

    @property
    def plugin_config(self) -> dict[str, PluginArgs | Mapping[str, Any] | None]:
        """Args by plugin name; a repeated name is an error that validation reports."""
        return {entry.name: entry.args for entry in self.plugin_configs}

    def plugin_set(self, point: str) -> PluginSet:
        return self.plugins.get(point, NO_PLUGINS)


class LeaderElection(msgspec.Struct, frozen=True):
    """Timing of leader election, and its Lease."""

    leader_elect: bool = True
    lease_duration_ns: int = 15 * NS_PER_SECOND
    renew_deadline_ns: int = 10 * NS_PER_SECOND
    retry_period_ns: int = 2 * NS_PER_SECOND
    resource_lock: str = "leases"
    resource_name: str = "kube-scheduler"
    resource_namespace: str = "kube-system"

    @property
    def lease_duration_s(self) -> float:
        return self.lease_duration_ns / NS_PER_SECOND

    @property
    def renew_deadline_s(self) -> float:
        return self.renew_deadline_ns / NS_PER_SECOND

    @property
    def retry_period_s(self) -> float:
        return self.retry_period_ns / NS_PER_SECOND


class ClientConnection(msgspec.Struct, frozen=True):
    """The connection to the API server."""

    kubeconfig: str = ""
    accept_content_types: str = ""
    content_type: str = "application/vnd.kubernetes.protobuf"
    #: Requests per second; negative is unlimited.
    qps: float = 50
    burst: int = 100


class ExtenderTLSConfig(msgspec.Struct, frozen=True):
    """TLS of one extender; `*_data` are the decoded bytes and take precedence over the files."""

    insecure: bool = False
    server_name: str = ""
    cert_file: str = ""
    key_file: str = ""
    ca_file: str = ""
    cert_data: bytes = b""
    key_data: bytes = b""
    ca_data: bytes = b""


class ExtenderManagedResource(msgspec.Struct, frozen=True):
    """An extended resource that an extender manages."""

    name: str = ""
    ignored_by_scheduler: bool = False


class Extender(msgspec.Struct, frozen=True):
    """An HTTP extender; an empty verb disables that capability."""

    url_prefix: str = ""
    filter_verb: str = ""
    preempt_verb: str = ""
    prioritize_verb: str = ""
    bind_verb: str = ""
    weight: int = 0
    enable_https: bool = False
    tls_config: ExtenderTLSConfig | None = None
    http_timeout_ns: int = 5 * NS_PER_SECOND
    node_cache_capable: bool = False
    managed_resources: tuple[ExtenderManagedResource, ...] = ()
    ignorable: bool = False

    @property
    def http_timeout_s(self) -> float:
        return self.http_timeout_ns / NS_PER_SECOND


class SchedulerConfiguration(msgspec.Struct, frozen=True):
    """The whole document; `core.config.validate` checks it."""

    #: Goroutines in upstream; in asched the maximum number of concurrent calls.
    parallelism: int = 16
    leader_election: LeaderElection = LeaderElection()
    client_connection: ClientConnection = ClientConnection()
    enable_profiling: bool = True
    enable_contention_profiling: bool = True
    #: 0..100; 0 is adaptive.
    percentage_of_nodes_to_score: int = 0
    pod_initial_backoff_s: int = 1
    pod_max_backoff_s: int = 10
    delay_cache_until_active: bool = False
    profiles: tuple[KubeSchedulerProfile, ...] = ()
    extenders: tuple[Extender, ...] = ()
    #: The feature gates that apply; not part of the document.
    gates: Mapping[str, bool] = msgspec.field(default_factory=lambda: DEFAULT_GATES)
