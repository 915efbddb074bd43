"""Every flag of `asched run`: kube-scheduler 1.36's, then asched's own.

Rules   a flag is implemented, or accepted without effect (`idle` says why; using it warns), or
        refused (`refused` says why, in one line). Flags that kube-scheduler dropped are in REMOVED.
Source  help text of kube-scheduler 1.36.2; release notes of 1.18 to 1.26 for the dropped flags
"""

from collections.abc import Mapping
from typing import Final

import msgspec


class Flag(msgspec.Struct, frozen=True):
    """One flag; `kind` is a key of `go_values.READERS`, `default` a text in that form."""

    name: str
    kind: str
    default: str
    group: str
    help: str
    short: str = ""
    #: The configuration field that applies instead beside --config, as upstream.
    instead: str = ""
    idle: str = ""
    refused: str = ""

    @property
    def key(self) -> str:
        return self.name.replace("-", "_")


_NO_COMPATIBILITY: Final = "asched decides by one version; use --emulated-version"
_BUFFERS: Final = "asched writes each log line at once"

MISC: Final = (
    Flag("config", "string", "", "Misc", "configuration file (v1, v1beta1 to v1beta3, or Policy)"),
    Flag("master", "string", "", "Misc", "address of the API server; overrides the kubeconfig"),
    Flag(
        "write-config-to",
        "string",
        "",
        "Misc",
        "write the effective v1 configuration there and exit",
    ),
)
SERVING: Final = (
    Flag("bind-address", "ip", "0.0.0.0", "Secure serving", "address to serve on"),  # noqa: S104
    Flag("cert-dir", "string", "", "Secure serving", "directory of TLS certificates (asched.crt)"),
    Flag(
        "disable-http2-serving",
        "bool",
        "false",
        "Secure serving",
        "serve HTTP/1.1 only",
        idle="asched always serves HTTP/1.1 only",
    ),
    Flag(
        "http2-max-streams-per-connection",
        "int",
        "0",
        "Secure serving",
        "limit of HTTP/2 streams",
        idle="asched serves HTTP/1.1 only",
    ),
    Flag(
        "permit-address-sharing",
        "bool",
        "false",
        "Secure serving",
        "set SO_REUSEADDR",
        idle="it is always set, as Go's listeners do",
    ),
    Flag("permit-port-sharing", "bool", "false", "Secure serving", "set SO_REUSEPORT"),
    Flag("secure-port", "int", "10259", "Secure serving", "HTTPS port; 0 turns serving off"),
    Flag("tls-cert-file", "string", "", "Secure serving", "serving certificate"),
    Flag(
        "tls-cipher-suites", "strings", "", "Secure serving", "allowed cipher suites, by Go's names"
    ),
    Flag(
        "tls-curve-preferences",
        "int32Slice",
        "",
        "Secure serving",
        "key exchange curves by IANA number",
        refused="Python's TLS library cannot select curves; remove the flag, the defaults are safe",
    ),
    Flag("tls-min-version", "string", "", "Secure serving", "VersionTLS12 or VersionTLS13"),
    Flag("tls-private-key-file", "string", "", "Secure serving", "private key of the certificate"),
    Flag("tls-sni-cert-key", "namedCertKey", "", "Secure serving", "cert,key:names, repeatable"),
)
AUTHENTICATION: Final = (
    Flag(
        "authentication-kubeconfig", "string", "", "Authentication", "cluster that reviews tokens"
    ),
    Flag(
        "authentication-skip-lookup",
        "bool",
        "false",
        "Authentication",
        "do not read the client CA from the cluster",
    ),
    Flag(
        "authentication-token-webhook-cache-ttl",
        "duration",
        "10s",
        "Authentication",
        "time to cache a token review",
    ),
    Flag(
        "authentication-tolerate-lookup-failure",
        "bool",
        "true",
        "Authentication",
        "start even if the client CA cannot be read",
    ),
    Flag("client-ca-file", "string", "", "Authentication", "CA of client certificates"),
    Flag(
        "requestheader-allowed-names",
        "strings",
        "",
        "Authentication",
        "common names of front proxies",
    ),
    Flag("requestheader-client-ca-file", "string", "", "Authentication", "CA of front proxies"),
    Flag(
        "requestheader-extra-headers-prefix",
        "strings",
        "x-remote-extra-",
        "Authentication",
        "prefixes of headers with extra user attributes",
    ),
    Flag(
        "requestheader-group-headers",
        "strings",
        "x-remote-group",
        "Authentication",
        "headers with the user's groups",
    ),
    Flag(
        "requestheader-uid-headers", "strings", "", "Authentication", "headers with the user's uid"
    ),
    Flag(
        "requestheader-username-headers",
        "strings",
        "x-remote-user",
        "Authentication",
        "headers with the user's name",
    ),
)
AUTHORIZATION: Final = (
    Flag(
        "authorization-always-allow-paths",
        "strings",
        "/healthz,/readyz,/livez",
        "Authorization",
        "paths served without authorization",
    ),
    Flag("authorization-kubeconfig", "string", "", "Authorization", "cluster that reviews access"),
    Flag(
        "authorization-webhook-cache-authorized-ttl",
        "duration",
        "10s",
        "Authorization",
        "time to cache a granted access review",
    ),
    Flag(
        "authorization-webhook-cache-unauthorized-ttl",
        "duration",
        "10s",
        "Authorization",
        "time to cache a denied access review",
    ),
)
DEPRECATED: Final = (
    Flag(
        "contention-profiling",
        "bool",
        "true",
        "Deprecated",
        "profile lock contention",
        instead="enableContentionProfiling",
        idle="asched has no lock contention to profile",
    ),
    Flag(
        "kube-api-burst",
        "int32",
        "100",
        "Deprecated",
        "burst of requests to the API server",
        instead="clientConnection.burst",
    ),
    Flag(
        "kube-api-content-type",
        "string",
        "application/vnd.kubernetes.protobuf",
        "Deprecated",
        "content type of requests",
        instead="clientConnection.contentType",
        idle="asched speaks JSON to the API server",
    ),
    Flag(
        "kube-api-qps",
        "float32",
        "50",
        "Deprecated",
        "requests per second to the API server",
        instead="clientConnection.qps",
    ),
    Flag(
        "kubeconfig",
        "string",
        "",
        "Deprecated",
        "kubeconfig of the cluster",
        instead="clientConnection.kubeconfig",
    ),
    Flag(
        "pod-max-in-unschedulable-pods-duration",
        "duration",
        "5m0s",
        "Deprecated",
        "time after which an unschedulable pod is retried",
    ),
    Flag(
        "profiling", "bool", "true", "Deprecated", "serve /debug/pprof", instead="enableProfiling"
    ),
)
ELECTION: Final = (
    Flag(
        "leader-elect", "bool", "true", "Leader election", "schedule only while holding the lease"
    ),
    Flag(
        "leader-elect-lease-duration",
        "durationNs",
        "15s",
        "Leader election",
        "duration of the lease",
    ),
    Flag(
        "leader-elect-renew-deadline",
        "durationNs",
        "10s",
        "Leader election",
        "time limit for renewing the lease",
    ),
    Flag(
        "leader-elect-resource-lock", "string", "leases", "Leader election", "kind of lock: leases"
    ),
    Flag("leader-elect-resource-name", "string", "", "Leader election", "name of the lease"),
    Flag(
        "leader-elect-resource-namespace",
        "string",
        "kube-system",
        "Leader election",
        "namespace of the lease",
    ),
    Flag(
        "leader-elect-retry-period",
        "durationNs",
        "2s",
        "Leader election",
        "time between attempts to acquire or renew",
    ),
)
GATES: Final = (
    Flag(
        "emulated-version",
        "strings",
        "",
        "Feature gate",
        "decide as this version (1.34 to 1.38), not as the API server's",
    ),
    Flag("feature-gates", "gates", "", "Feature gate", "Gate=true,..., repeatable"),
    Flag(
        "min-compatibility-version",
        "strings",
        "",
        "Feature gate",
        "oldest compatible version",
        refused=_NO_COMPATIBILITY,
    ),
)
METRICS: Final = (
    Flag(
        "allow-metric-labels",
        "stringToString",
        "",
        "Metrics",
        "allowed values of labels: metric,label=values",
    ),
    Flag("allow-metric-labels-manifest", "string", "", "Metrics", "file of allowed label values"),
    Flag("disabled-metrics", "strings", "", "Metrics", "metrics that are not exposed"),
    Flag(
        "show-hidden-metrics-for-version",
        "string",
        "",
        "Metrics",
        "1.35 or empty",
        idle="kube-scheduler 1.36 hides no metric that 1.35 showed",
    ),
)
LOGS: Final = (
    Flag("log-flush-frequency", "duration", "5s", "Logs", "time between flushes", idle=_BUFFERS),
    Flag(
        "log-json-info-buffer-size",
        "quantity",
        "0",
        "Logs",
        "log buffer size (alpha)",
        idle=_BUFFERS,
    ),
    Flag("log-json-split-stream", "bool", "false", "Logs", "errors to stderr, the rest to stdout"),
    Flag(
        "log-text-info-buffer-size",
        "quantity",
        "0",
        "Logs",
        "log buffer size (alpha)",
        idle=_BUFFERS,
    ),
    Flag("log-text-split-stream", "bool", "false", "Logs", "errors to stderr, the rest to stdout"),
    Flag("logging-format", "string", "text", "Logs", "text or json"),
    Flag("v", "Level", "0", "Logs", "verbosity", short="v"),
    Flag("vmodule", "pattern=N,...", "", "Logs", "verbosity by module, text only"),
)
GLOBAL: Final = (
    Flag("help", "bool", "false", "Global", "print this text", short="h"),
    Flag("version", "version", "false", "Global", "print the version (true or raw)"),
)
OWN: Final = (
    Flag("scheduler-name", "string", "", "asched", "serve pods of this name with one profile"),
    Flag("policy-config-file", "string", "", "asched", "legacy Policy, JSON or YAML"),
    Flag("policy-configmap", "string", "", "asched", "ConfigMap with a legacy Policy"),
    Flag("policy-configmap-namespace", "string", "kube-system", "asched", "its namespace"),
    Flag("use-legacy-policy-config", "bool", "false", "asched", "prefer the Policy file"),
    Flag("plugin", "text", "", "asched", "module:Class or file.py of a plugin, repeatable"),
    Flag("plugin-dir", "string", "", "asched", "directory of plugin files"),
    Flag("bind-concurrency", "int", "64", "asched", "bindings in flight at most"),
    Flag("record", "string", "", "asched", "file to record all inputs to, for asched replay"),
    Flag("record-max-bytes", "int", "1073741824", "asched", "size at which a recording ends"),
    Flag("shadow", "strings", "", "asched", "shadow these schedulers: compare, schedule nothing"),
    Flag("shadow-report", "string", "", "asched", "JSON file for the report of a shadow"),
    Flag("audit-period", "duration", "10m0s", "asched", "time of one audit of all cached objects"),
    Flag("status-controllers", "bool", "false", "asched", "write PodGroup and ElasticQuota status"),
    Flag(
        "explain-hint", "bool", "false", "asched", "name asched explain in messages of pending pods"
    ),
)

ALL: Final = (
    *MISC,
    *SERVING,
    *AUTHENTICATION,
    *AUTHORIZATION,
    *DEPRECATED,
    *ELECTION,
    *GATES,
    *METRICS,
    *LOGS,
    *GLOBAL,
    *OWN,
)
BY_NAME: Final[Mapping[str, Flag]] = {flag.name: flag for flag in ALL}
BY_SHORT: Final[Mapping[str, Flag]] = {flag.short: flag for flag in ALL if flag.short}

_PLAIN_SERVING: Final = "serving without TLS was removed; use --bind-address and --secure-port"
_LOG_FILES: Final = "removed in Kubernetes 1.26; redirect standard error instead"
#: Flags of older kube-schedulers -> why they are refused, and the replacement.
REMOVED: Final[Mapping[str, str]] = {
    "address": _PLAIN_SERVING,
    "port": _PLAIN_SERVING,
    "algorithm-provider": "removed in Kubernetes 1.23; use profiles in --config",
    "hard-pod-affinity-symmetric-weight": "use InterPodAffinityArgs.hardPodAffinityWeight",
    "failure-domains": "removed in Kubernetes 1.11; use topology spread constraints",
    "lock-object-name": "use --leader-elect-resource-name",
    "lock-object-namespace": "use --leader-elect-resource-namespace",
    "experimental-logging-sanitization": "removed in Kubernetes 1.24",
    **dict.fromkeys(
        (
            "add-dir-header",
            "alsologtostderr",
            "log-backtrace-at",
            "log-dir",
            "log-file",
            "log-file-max-size",
            "logtostderr",
            "one-output",
            "skip-headers",
            "skip-log-headers",
            "stderrthreshold",
        ),
        _LOG_FILES,
    ),
}
