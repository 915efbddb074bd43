"""Checks of flag values beyond their types.

Source  runs recorded from kube-scheduler 1.36.2
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final
from urllib.parse import SplitResult, urlsplit

from asched.cli.arguments import PORT_MAX
from asched.core.config.problem import quoted

LOG_FORMATS: Final = ("text", "json")
#: Hidden metrics can be shown for the previous minor version.
HIDDEN_METRICS_VERSION: Final = "1.35"
TLS_VERSIONS: Final = ("VersionTLS10", "VersionTLS11", "VersionTLS12", "VersionTLS13")
#: A shorter period would hardly suffice for one audit.
AUDIT_PERIOD_S_MIN: Final = 10.0
#: The suites that Go knows, insecure ones included; those of TLS 1.3 are always on.
CIPHER_SUITES: Final = frozenset(
    {
        "TLS_AES_128_GCM_SHA256",
        "TLS_AES_256_GCM_SHA384",
        "TLS_CHACHA20_POLY1305_SHA256",
        "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA",
        "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA256",
        "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256",
        "TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA",
        "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384",
        "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305",
        "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256",
        "TLS_ECDHE_ECDSA_WITH_RC4_128_SHA",
        "TLS_ECDHE_RSA_WITH_3DES_EDE_CBC_SHA",
        "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA",
        "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA256",
        "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
        "TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA",
        "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384",
        "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305",
        "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256",
        "TLS_ECDHE_RSA_WITH_RC4_128_SHA",
        "TLS_RSA_WITH_3DES_EDE_CBC_SHA",
        "TLS_RSA_WITH_AES_128_CBC_SHA",
        "TLS_RSA_WITH_AES_128_CBC_SHA256",
        "TLS_RSA_WITH_AES_128_GCM_SHA256",
        "TLS_RSA_WITH_AES_256_CBC_SHA",
        "TLS_RSA_WITH_AES_256_GCM_SHA384",
        "TLS_RSA_WITH_RC4_128_SHA",
    }
)
ALPHA_LOG_OPTIONS: Final = (
    "log_text_split_stream",
    "log_text_info_buffer_size",
    "log_json_split_stream",
    "log_json_info_buffer_size",
)
#: Lists of headers and names that may contain no empty entry.
HEADER_LISTS: Final = (
    "requestheader_username_headers",
    "requestheader_group_headers",
    "requestheader_extra_headers_prefix",
    "requestheader_allowed_names",
    "requestheader_uid_headers",
)
METRIC_NAME: Final = re.compile("[a-zA-Z_:][a-zA-Z0-9_:]*")
LABEL_NAME: Final = re.compile("[a-zA-Z_][a-zA-Z0-9_]*")
METRIC_AND_LABEL: Final = re.compile(f"{METRIC_NAME.pattern},{LABEL_NAME.pattern}")


def check(values: Mapping[str, Any], gates: Mapping[str, bool]) -> str:
    """Every error between semicolons in one line, or an empty text."""
    checks = (_logs, _serving, _headers, _metrics, _tls, _reach, _election, _own)
    return "; ".join(fault for check in checks for fault in check(values, gates))


def _name(key: str) -> str:
    return f"--{key.replace('_', '-')}"


def _logs(values: Mapping[str, Any], gates: Mapping[str, bool]) -> Iterator[str]:
    log_format = values["logging_format"]
    if log_format not in LOG_FORMATS:
        yield f"--logging-format must be {' or '.join(LOG_FORMATS)}, not {quoted(log_format)}"
    if log_format == "json" and not gates["LoggingBetaOptions"]:
        yield "--logging-format=json needs the feature gate LoggingBetaOptions"
    if values["log_flush_frequency"] <= 0:
        yield "--log-flush-frequency must be greater than 0"
    if log_format != "text" and values["vmodule"]:
        yield "--vmodule needs --logging-format=text"
    for key in ALPHA_LOG_OPTIONS:
        if values[key] not in (False, "0", "") and not gates["LoggingAlphaOptions"]:
            yield f"{_name(key)} needs the feature gate LoggingAlphaOptions"


def _serving(values: Mapping[str, Any], _: Mapping[str, bool]) -> Iterator[str]:
    if not 0 <= values["secure_port"] <= PORT_MAX:
        yield f"--secure-port must be from 1 to {PORT_MAX}, or 0 to serve nothing"


def _headers(values: Mapping[str, Any], _: Mapping[str, bool]) -> Iterator[str]:
    for key in HEADER_LISTS:
        if not all(name.strip() for name in values[key]):
            yield f"{_name(key)} has an empty value"
    uids = values["requestheader_uid_headers"]
    if uids and "x-remote-uid" not in (name.lower() for name in uids):
        yield "--requestheader-uid-headers must have X-Remote-Uid, which aggregation of APIs needs"


def _tls(values: Mapping[str, Any], _: Mapping[str, bool]) -> Iterator[str]:
    if bool(values["tls_cert_file"]) is not bool(values["tls_private_key_file"]):
        yield "--tls-cert-file and --tls-private-key-file must be given together"
    version = values["tls_min_version"]
    if version and version not in TLS_VERSIONS:
        yield f"--tls-min-version must be one of {', '.join(TLS_VERSIONS)}, not {quoted(version)}"
    for suite in values["tls_cipher_suites"]:
        if suite not in CIPHER_SUITES:
            yield f"--tls-cipher-suites: {quoted(suite)} is not a cipher suite that Go knows"


def _metrics(values: Mapping[str, Any], _: Mapping[str, bool]) -> Iterator[str]:
    if values["show_hidden_metrics_for_version"] not in ("", HIDDEN_METRICS_VERSION):
        version = HIDDEN_METRICS_VERSION
        yield f"--show-hidden-metrics-for-version must be {version}, the previous minor version"
    for name in values["disabled_metrics"]:
        if not METRIC_NAME.fullmatch(name):
            yield f"--disabled-metrics: {quoted(name)} is not the name of a metric"
    for key in values["allow_metric_labels"]:
        if not METRIC_AND_LABEL.fullmatch(key):
            yield f"--allow-metric-labels: {quoted(key)} must have the form metric,label"


def _reach(values: Mapping[str, Any], _: Mapping[str, bool]) -> Iterator[str]:
    if not values["config"] and values["kube_api_burst"] <= 0 < values["kube_api_qps"]:
        yield "--kube-api-burst must be greater than 0 if --kube-api-qps is"
    master = values["master"]
    if master:
        try:
            address = urlsplit(master if "://" in master else f"http://{master}")
        except ValueError:
            address = SplitResult("", "", "", "", "")
        if not address.netloc or not address.scheme or " " in address.netloc:
            yield f"--master must be a URL or host:port, not {quoted(master)}"


def _election(values: Mapping[str, Any], _: Mapping[str, bool]) -> Iterator[str]:
    if values["leader_elect"] and values["leader_elect_resource_lock"] != "leases":
        yield "--leader-elect-resource-lock must be leases; other locks were removed"


def _own(values: Mapping[str, Any], _: Mapping[str, bool]) -> Iterator[str]:
    if values["bind_concurrency"] < 1:
        yield "--bind-concurrency must be at least 1"
    if values["audit_period"] and values["audit_period"] < AUDIT_PERIOD_S_MIN:
        shortest = f"{AUDIT_PERIOD_S_MIN:.0f}s"
        yield f"--audit-period must be at least {shortest}, or 0 to audit on demand only"
    for plugin in values["plugin"]:
        module, colon, name = plugin.partition(":")
        if not (module and colon and name) and not plugin.endswith(".py"):
            form = "module:Class, file.py:Class or file.py"
            yield f"--plugin {quoted(plugin)} must have the form {form}"
    if values["scheduler_name"] and values["config"]:
        yield "--scheduler-name and --config exclude each other: name the profiles in the file"


#: Flags without meaning for a shadow, with the reason.
_NOT_FOR_SHADOW: Final = {
    "record": "a shadow makes no decisions of its own to record",
    "explain_hint": "a shadow writes no events",
    "status_controllers": "a shadow writes nothing",
    "bind_concurrency": "a shadow binds nothing",
    "scheduler_name": "--shadow names the schedulers",
    "pod_max_in_unschedulable_pods_duration": "a shadow retries no pod",
}


def check_shadow(values: Mapping[str, Any], given: Mapping[str, Any]) -> str:
    """The first flag that conflicts with `--shadow`, as one line; empty if none does."""
    if not values["shadow"]:
        return "--shadow-report needs --shadow" if values["shadow_report"] else ""
    if not all(values["shadow"]):
        return "--shadow must name schedulers (spec.schedulerName of their pods)"
    for key, why in _NOT_FOR_SHADOW.items():
        if key in given:
            return f"--shadow and --{key.replace('_', '-')} exclude each other: {why}"
    if any(key.startswith("leader_elect") for key in given) and given.get("leader_elect", True):
        return "--shadow takes no part in leader election: remove the --leader-elect flags"
    return ""
