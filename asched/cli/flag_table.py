"""Every flag of `asched run`: kube-scheduler 1.36's, then asched's own; and their values as text.

Rules   a flag is implemented, or accepted without effect (IDLE; using it warns), or refused
        (REFUSED). Flags that kube-scheduler dropped are in REMOVED. As text, for /flagz, lists are
        in brackets and times have units, as Go prints them.
Source  help text of kube-scheduler 1.36.2; release notes of 1.18 to 1.26 for the dropped flags;
        String() of the values of github.com/spf13/pflag and of staging/src/k8s.io/component-base
        cli/flag and logs/api/v1; encoding/csv of Go
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from asched.core.config.duration import render
from asched.core.model.timestamp import NS_PER_SECOND


class Flag(msgspec.Struct, frozen=True):
    """One flag; `kind` is a key of `go_values.READERS`, `default` a text in that form."""

    name: str
    help: str
    kind: str = "string"
    default: str = ""
    short: str = ""
    group: str = ""

    @property
    def key(self) -> str:
        return self.name.replace("-", "_")

    @property
    def instead(self) -> str:
        return INSTEAD.get(self.name, "")

    @property
    def idle(self) -> str:
        return IDLE.get(self.name, "")

    @property
    def refused(self) -> str:
        return REFUSED.get(self.name, "")


def _group(title: str, *flags: Flag) -> tuple[Flag, ...]:
    return tuple(replace(flag, group=title) for flag in flags)


_BUFFERS: Final = "asched writes each log line at once"

#: Flags that set a field of the configuration, which applies instead beside --config, as upstream.
INSTEAD: Final = {
    "contention-profiling": "enableContentionProfiling",
    "kube-api-burst": "clientConnection.burst",
    "kube-api-content-type": "clientConnection.contentType",
    "kube-api-qps": "clientConnection.qps",
    "kubeconfig": "clientConnection.kubeconfig",
    "profiling": "enableProfiling",
}
#: Accepted flags without effect -> why.
IDLE: Final = {
    "disable-http2-serving": "asched always serves HTTP/1.1 only",
    "http2-max-streams-per-connection": "asched serves HTTP/1.1 only",
    "permit-address-sharing": "it is always set, as Go's listeners do",
    "contention-profiling": "asched has no lock contention to profile",
    "kube-api-content-type": "asched speaks JSON to the API server",
    "show-hidden-metrics-for-version": "kube-scheduler 1.36 hides no metric that 1.35 showed",
    "log-flush-frequency": _BUFFERS,
    "log-json-info-buffer-size": _BUFFERS,
    "log-text-info-buffer-size": _BUFFERS,
}
#: Flags of kube-scheduler that are refused -> why.
REFUSED: Final = {
    "tls-curve-preferences": (
        "Python's TLS library cannot select curves; remove the flag, the defaults are safe"
    ),
    "min-compatibility-version": "asched decides by one version; use --emulated-version",
}

ALL: Final = (
    *_group(
        "Misc",
        Flag("config", "configuration file (v1, v1beta1 to v1beta3, or Policy)"),
        Flag("master", "address of the API server; overrides the kubeconfig"),
        Flag("write-config-to", "write the effective v1 configuration there and exit"),
    ),
    *_group(
        "Secure serving",
        Flag("bind-address", "address to serve on", "ip", "0.0.0.0"),  # noqa: S104
        Flag("cert-dir", "directory of TLS certificates (asched.crt)"),
        Flag("disable-http2-serving", "serve HTTP/1.1 only", "bool", "false"),
        Flag("http2-max-streams-per-connection", "limit of HTTP/2 streams", "int", "0"),
        Flag("permit-address-sharing", "set SO_REUSEADDR", "bool", "false"),
        Flag("permit-port-sharing", "set SO_REUSEPORT", "bool", "false"),
        Flag("secure-port", "HTTPS port; 0 turns serving off", "int", "10259"),
        Flag("tls-cert-file", "serving certificate"),
        Flag("tls-cipher-suites", "allowed cipher suites, by Go's names", "strings"),
        Flag("tls-curve-preferences", "key exchange curves by IANA number", "int32Slice"),
        Flag("tls-min-version", "VersionTLS12 or VersionTLS13"),
        Flag("tls-private-key-file", "private key of the certificate"),
        Flag("tls-sni-cert-key", "cert,key:names, repeatable", "namedCertKey"),
    ),
    *_group(
        "Authentication",
        Flag("authentication-kubeconfig", "cluster that reviews tokens"),
        Flag(
            "authentication-skip-lookup",
            "do not read the client CA from the cluster",
            "bool",
            "false",
        ),
        Flag(
            "authentication-token-webhook-cache-ttl",
            "time to cache a token review",
            "duration",
            "10s",
        ),
        Flag(
            "authentication-tolerate-lookup-failure",
            "start even if the client CA cannot be read",
            "bool",
            "true",
        ),
        Flag("client-ca-file", "CA of client certificates"),
        Flag("requestheader-allowed-names", "common names of front proxies", "strings"),
        Flag("requestheader-client-ca-file", "CA of front proxies"),
        Flag(
            "requestheader-extra-headers-prefix",
            "prefixes of headers with extra user attributes",
            "strings",
            "x-remote-extra-",
        ),
        Flag(
            "requestheader-group-headers",
            "headers with the user's groups",
            "strings",
            "x-remote-group",
        ),
        Flag("requestheader-uid-headers", "headers with the user's uid", "strings"),
        Flag(
            "requestheader-username-headers",
            "headers with the user's name",
            "strings",
            "x-remote-user",
        ),
    ),
    *_group(
        "Authorization",
        Flag(
            "authorization-always-allow-paths",
            "paths served without authorization",
            "strings",
            "/healthz,/readyz,/livez",
        ),
        Flag("authorization-kubeconfig", "cluster that reviews access"),
        Flag(
            "authorization-webhook-cache-authorized-ttl",
            "time to cache a granted access review",
            "duration",
            "10s",
        ),
        Flag(
            "authorization-webhook-cache-unauthorized-ttl",
            "time to cache a denied access review",
            "duration",
            "10s",
        ),
    ),
    *_group(
        "Deprecated",
        Flag("contention-profiling", "profile lock contention", "bool", "true"),
        Flag("kube-api-burst", "burst of requests to the API server", "int32", "100"),
        Flag(
            "kube-api-content-type",
            "content type of requests",
            "string",
            "application/vnd.kubernetes.protobuf",
        ),
        Flag(
            "kube-api-qps",
            "requests per second to the API server; negative is unlimited",
            "float32",
            "-1",
        ),
        Flag("kubeconfig", "kubeconfig of the cluster"),
        Flag(
            "pod-max-in-unschedulable-pods-duration",
            "time after which an unschedulable pod is retried",
            "duration",
            "5m0s",
        ),
        Flag("profiling", "serve /debug/pprof", "bool", "true"),
    ),
    *_group(
        "Leader election",
        Flag("leader-elect", "schedule only while holding the lease", "bool", "true"),
        Flag("leader-elect-lease-duration", "duration of the lease", "durationNs", "15s"),
        Flag(
            "leader-elect-renew-deadline", "time limit for renewing the lease", "durationNs", "10s"
        ),
        Flag("leader-elect-resource-lock", "kind of lock: leases", "string", "leases"),
        Flag("leader-elect-resource-name", "name of the lease"),
        Flag("leader-elect-resource-namespace", "namespace of the lease", "string", "kube-system"),
        Flag(
            "leader-elect-retry-period",
            "time between attempts to acquire or renew",
            "durationNs",
            "2s",
        ),
    ),
    *_group(
        "Feature gate",
        Flag(
            "emulated-version",
            "decide as this version (1.34 to 1.38), not as the API server's",
            "strings",
        ),
        Flag("feature-gates", "Gate=true,..., repeatable", "gates"),
        Flag("min-compatibility-version", "oldest compatible version", "strings"),
    ),
    *_group(
        "Metrics",
        Flag(
            "allow-metric-labels", "allowed values of labels: metric,label=values", "stringToString"
        ),
        Flag("allow-metric-labels-manifest", "file of allowed label values"),
        Flag("disabled-metrics", "metrics that are not exposed", "strings"),
        Flag("show-hidden-metrics-for-version", "1.35 or empty"),
    ),
    *_group(
        "Logs",
        Flag("log-flush-frequency", "time between flushes", "duration", "5s"),
        Flag("log-json-info-buffer-size", "log buffer size (alpha)", "quantity", "0"),
        Flag("log-json-split-stream", "errors to stderr, the rest to stdout", "bool", "false"),
        Flag("log-text-info-buffer-size", "log buffer size (alpha)", "quantity", "0"),
        Flag("log-text-split-stream", "errors to stderr, the rest to stdout", "bool", "false"),
        Flag("logging-format", "text or json", "string", "text"),
        Flag("v", "verbosity", "Level", "0", short="v"),
        Flag("vmodule", "verbosity by module, text only", "pattern=N,..."),
    ),
    *_group(
        "Global",
        Flag("help", "print this text", "bool", "false", short="h"),
        Flag("version", "print the version (true or raw)", "version", "false"),
    ),
    *_group(
        "asched",
        Flag("scheduler-name", "serve pods of this name with one profile"),
        Flag("policy-config-file", "legacy Policy, JSON or YAML"),
        Flag("policy-configmap", "ConfigMap with a legacy Policy"),
        Flag("policy-configmap-namespace", "its namespace", default="kube-system"),
        Flag("use-legacy-policy-config", "prefer the Policy file", "bool", "false"),
        Flag("plugin", "module:Class or file.py of a plugin, repeatable", "text"),
        Flag("plugin-dir", "directory of plugin files"),
        Flag("bind-concurrency", "bindings in flight at most", "int", "64"),
        Flag("record", "file to record all inputs to, for asched replay"),
        Flag("record-max-bytes", "size at which a recording ends", "int", "1073741824"),
        Flag("shadow", "shadow these schedulers: compare, schedule nothing", "strings"),
        Flag("shadow-report", "JSON file for the report of a shadow"),
        Flag("audit-period", "time of one audit of all cached objects", "duration", "10m0s"),
        Flag("status-controllers", "write PodGroup and ElasticQuota status", "bool", "false"),
        Flag("explain-hint", "name asched explain in messages of pending pods", "bool", "false"),
    ),
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


def flag_texts(given: Mapping[str, Any]) -> dict[str, str]:
    """Name -> text, without refused flags."""
    return {
        flag.name: _text(flag, given[flag.key]) if flag.key in given else _default(flag)
        for flag in ALL
        if not flag.refused
    }


def _default(flag: Flag) -> str:
    if flag.kind in ("strings", "int32Slice", "namedCertKey", "stringToString"):
        return f"[{flag.default}]"
    return flag.default


def _text(flag: Flag, value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if flag.kind == "duration":
        return render(round(value * NS_PER_SECOND))
    if flag.kind == "durationNs":
        return render(value)
    if flag.kind == "gates":
        return _gates(value)
    if flag.kind == "pattern=N,...":
        return ",".join(f"{pattern}={level}" for pattern, level in value)
    if flag.kind == "namedCertKey":
        return f"[{';'.join(_cert_key(*entry) for entry in value)}]"
    if isinstance(value, Mapping):
        return f"[{_csv(f'{key}={text}' for key, text in sorted(value.items()))}]"
    if isinstance(value, tuple):
        return f"[{_csv(map(str, value))}]"
    return str(value)


def _gates(texts: Iterable[str]) -> str:
    """`component:gate=value`; all gates name one component (`parse_gates`) or an empty one."""
    pairs = []
    for pair in filter(None, ",".join(texts).split(",")):
        component, setting = pair.split(":", 1) if ":" in pair else ("", pair)
        pairs.append(f"{component.strip()}:{setting.strip()}")
    return ",".join(pairs)


def _cert_key(cert_file: str, key_file: str, names: Iterable[str]) -> str:
    shown = ",".join(names)
    return f"{cert_file},{key_file}:{shown}" if shown else f"{cert_file},{key_file}"


def _csv(values: Iterable[str]) -> str:
    """CSV: values with special characters are quoted."""
    return ",".join(
        '"' + value.replace('"', '""') + '"'
        if value[:1].isspace() or value == r"\." or set(value) & set(',"\r\n')
        else value
        for value in values
    )
