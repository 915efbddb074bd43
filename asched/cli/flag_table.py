"""Every flag of `asched run`: kube-scheduler 1.36's, then our own.

Rules   a flag is honoured, or accepted without effect (`idle` says why; using it warns), or refused
        (`refused` says why, in one line). Flags that kube-scheduler itself dropped are in REMOVED.
Source  help text of kube-scheduler 1.36.2; release notes of 1.18 to 1.26 for the dropped ones
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
    #: The field of the configuration that counts instead beside --config, as upstream does it.
    instead: str = ""
    idle: str = ""
    refused: str = ""

    @property
    def key(self) -> str:
        return self.name.replace("-", "_")


_ONE_MINOR: Final = "asched follows kube-scheduler 1.36 only and cannot imitate another version"
_BUFFERS: Final = "asched writes each line as it comes"

MISC: Final = (
    Flag("config", "string", "", "Misc", "configuration file (v1, v1beta1 to v1beta3, or Policy)"),
    Flag("master", "string", "", "Misc", "address of the API server, instead of the kubeconfig's"),
    Flag("write-config-to", "string", "", "Misc", "write the effective v1 file there and exit"),
)
SERVING: Final = (
    Flag("bind-address", "ip", "0.0.0.0", "Secure serving", "address to serve on"),  # noqa: S104
    Flag("cert-dir", "string", "", "Secure serving", "folder of tls certificates (asched.crt)"),
    Flag(
        "disable-http2-serving",
        "bool",
        "false",
        "Secure serving",
        "serve HTTP/1.1 only",
        idle="asched serves HTTP/1.1 only in any case",
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
    Flag("secure-port", "int", "10259", "Secure serving", "HTTPS port, 0 serves nothing"),
    Flag("tls-cert-file", "string", "", "Secure serving", "serving certificate"),
    Flag("tls-cipher-suites", "strings", "", "Secure serving", "allowed suites, Go's names"),
    Flag(
        "tls-curve-preferences",
        "int32Slice",
        "",
        "Secure serving",
        "curves by IANA number",
        refused="Python's TLS library takes no list of curves; leave it out, the defaults are safe",
    ),
    Flag("tls-min-version", "string", "", "Secure serving", "VersionTLS12 or VersionTLS13"),
    Flag("tls-private-key-file", "string", "", "Secure serving", "key of the certificate"),
    Flag("tls-sni-cert-key", "namedCertKey", "", "Secure serving", "cert,key:names, repeatable"),
)
AUTHENTICATION: Final = (
    Flag("authentication-kubeconfig", "string", "", "Authentication", "where tokens are reviewed"),
    Flag("authentication-skip-lookup", "bool", "false", "Authentication", "do not read the CA"),
    Flag(
        "authentication-token-webhook-cache-ttl",
        "duration",
        "10s",
        "Authentication",
        "how long a reviewed token is remembered",
    ),
    Flag(
        "authentication-tolerate-lookup-failure",
        "bool",
        "true",
        "Authentication",
        "start although the CA cannot be read",
    ),
    Flag("client-ca-file", "string", "", "Authentication", "CA of client certificates"),
    Flag("requestheader-allowed-names", "strings", "", "Authentication", "names of proxies"),
    Flag("requestheader-client-ca-file", "string", "", "Authentication", "CA of proxies"),
    Flag(
        "requestheader-extra-headers-prefix",
        "strings",
        "x-remote-extra-",
        "Authentication",
        "prefixes of headers with further facts of a user",
    ),
    Flag(
        "requestheader-group-headers",
        "strings",
        "x-remote-group",
        "Authentication",
        "headers with groups",
    ),
    Flag("requestheader-uid-headers", "strings", "", "Authentication", "headers with user ids"),
    Flag(
        "requestheader-username-headers",
        "strings",
        "x-remote-user",
        "Authentication",
        "headers with user names",
    ),
)
AUTHORIZATION: Final = (
    Flag(
        "authorization-always-allow-paths",
        "strings",
        "/healthz,/readyz,/livez",
        "Authorization",
        "paths that need no rights",
    ),
    Flag("authorization-kubeconfig", "string", "", "Authorization", "where access is reviewed"),
    Flag(
        "authorization-webhook-cache-authorized-ttl",
        "duration",
        "10s",
        "Authorization",
        "how long a yes is remembered",
    ),
    Flag(
        "authorization-webhook-cache-unauthorized-ttl",
        "duration",
        "10s",
        "Authorization",
        "how long a no is remembered",
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
        idle="there are no locks to contend for",
    ),
    Flag(
        "kube-api-burst",
        "int32",
        "100",
        "Deprecated",
        "burst of requests",
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
        "requests a second",
        instead="clientConnection.qps",
    ),
    Flag(
        "kubeconfig",
        "string",
        "",
        "Deprecated",
        "how to reach the server",
        instead="clientConnection.kubeconfig",
    ),
    Flag(
        "pod-max-in-unschedulable-pods-duration",
        "duration",
        "5m0s",
        "Deprecated",
        "after this time an unschedulable pod is tried again",
    ),
    Flag(
        "profiling", "bool", "true", "Deprecated", "serve /debug/pprof", instead="enableProfiling"
    ),
)
ELECTION: Final = (
    Flag("leader-elect", "bool", "true", "Leader election", "work only while leading"),
    Flag("leader-elect-lease-duration", "durationNs", "15s", "Leader election", "age of a lease"),
    Flag("leader-elect-renew-deadline", "durationNs", "10s", "Leader election", "time to renew"),
    Flag("leader-elect-resource-lock", "string", "leases", "Leader election", "leases"),
    Flag("leader-elect-resource-name", "string", "", "Leader election", "name of the lease"),
    Flag(
        "leader-elect-resource-namespace", "string", "kube-system", "Leader election", "its place"
    ),
    Flag("leader-elect-retry-period", "durationNs", "2s", "Leader election", "time between tries"),
)
GATES: Final = (
    Flag(
        "emulated-version",
        "strings",
        "",
        "Feature gate",
        "version to imitate",
        refused=_ONE_MINOR,
    ),
    Flag("feature-gates", "gates", "", "Feature gate", "Gate=true,..., repeatable"),
    Flag(
        "min-compatibility-version",
        "strings",
        "",
        "Feature gate",
        "oldest version to agree with",
        refused=_ONE_MINOR,
    ),
)
METRICS: Final = (
    Flag("allow-metric-labels", "stringToString", "", "Metrics", "metric,label=values"),
    Flag("allow-metric-labels-manifest", "string", "", "Metrics", "file of such settings"),
    Flag("disabled-metrics", "strings", "", "Metrics", "metrics that are left out"),
    Flag(
        "show-hidden-metrics-for-version",
        "string",
        "",
        "Metrics",
        "1.35, or nothing",
        idle="kube-scheduler 1.36 hides no metric that 1.35 showed",
    ),
)
LOGS: Final = (
    Flag("log-flush-frequency", "duration", "5s", "Logs", "time between flushes", idle=_BUFFERS),
    Flag("log-json-info-buffer-size", "quantity", "0", "Logs", "(alpha)", idle=_BUFFERS),
    Flag("log-json-split-stream", "bool", "false", "Logs", "errors to stderr, the rest to stdout"),
    Flag("log-text-info-buffer-size", "quantity", "0", "Logs", "(alpha)", idle=_BUFFERS),
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
    Flag("plugin-dir", "string", "", "asched", "folder of plugin files"),
    Flag("bind-concurrency", "int", "64", "asched", "bindings in flight at most"),
    Flag("record", "string", "", "asched", "file for everything that decides (asched replay)"),
    Flag("record-max-bytes", "int", "1073741824", "asched", "recording ends at this size"),
    Flag("shadow", "strings", "", "asched", "only look on while these schedulers decide"),
    Flag("shadow-report", "string", "", "asched", "file (JSON) for what a shadow found"),
    Flag("audit-period", "duration", "10m0s", "asched", "time of one look at all that is known"),
    Flag("status-controllers", "bool", "false", "asched", "write PodGroup and ElasticQuota status"),
    Flag("explain-hint", "bool", "false", "asched", "end what refused pods hear with how to ask"),
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

_PLAIN_SERVING: Final = "serving without TLS is gone; use --bind-address and --secure-port"
_LOG_FILES: Final = "gone since Kubernetes 1.26; redirect standard error instead"
#: Flags of older kube-schedulers -> why they are refused, and what to use.
REMOVED: Final[Mapping[str, str]] = {
    "address": _PLAIN_SERVING,
    "port": _PLAIN_SERVING,
    "algorithm-provider": "gone since Kubernetes 1.23; use profiles in --config",
    "hard-pod-affinity-symmetric-weight": "use InterPodAffinityArgs.hardPodAffinityWeight",
    "failure-domains": "gone since Kubernetes 1.11; use topology spread constraints",
    "lock-object-name": "use --leader-elect-resource-name",
    "lock-object-namespace": "use --leader-elect-resource-namespace",
    "experimental-logging-sanitization": "gone since Kubernetes 1.24",
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
