"""Checks of flag values beyond their types, with kube-scheduler's messages.

Source  runs recorded from kube-scheduler 1.36.2
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final
from urllib.parse import SplitResult, urlsplit

from asched.cli.arguments import PORT_MAX
from asched.core.config import duration
from asched.core.config.problem import go_json, message, quoted
from asched.core.model.timestamp import NS_PER_SECOND

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
#: Alpha log options: flag key -> the field in upstream's message.
ALPHA_LOG_OPTIONS: Final = {
    "log_text_split_stream": "options.text.splitStream",
    "log_text_info_buffer_size": "options.text.infoBufferSize",
    "log_json_split_stream": "options.json.splitStream",
    "log_json_info_buffer_size": "options.json.infoBufferSize",
}
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
#: Locks of earlier versions, with upstream's verb.
REMOVED_LOCKS: Final = {
    "endpoints": "migrate",
    "configmaps": "migrate",
    "endpointsleases": "migrate",
    "configmapsleases": "migrated",
}


def check(values: Mapping[str, Any], gates: Mapping[str, bool]) -> str:
    """The first error as one line, or an empty text; upstream reports errors of serving, request
    headers and metrics together.
    """
    fault = _logs(values, gates)
    if fault:
        return fault
    together = [*_serving(values), *_headers(values), *_metrics(values)]
    if together:
        return message(together)
    for look in (_tls, _reach, _election, _own):
        fault = look(values, gates)
        if fault:
            return fault
    return ""


def _logs(values: Mapping[str, Any], gates: Mapping[str, bool]) -> str:
    log_format = values["logging_format"]
    if log_format not in LOG_FORMATS:
        return f"format: Invalid value: {quoted(log_format)}: Unsupported log format"
    if log_format == "json" and not gates["LoggingBetaOptions"]:
        return "format: Forbidden: Log format json is disabled, see LoggingBetaOptions feature"
    flush_s = values["log_flush_frequency"]
    if flush_s <= 0:
        shown = quoted(duration.render(round(flush_s * NS_PER_SECOND)))
        return f"flushFrequency: Invalid value: {shown}: Must be greater than zero"
    if log_format != "text" and values["vmodule"]:
        return "vmodule: Forbidden: Only supported for text log format"
    for key, path in ALPHA_LOG_OPTIONS.items():
        if values[key] not in (False, "0", "") and not gates["LoggingAlphaOptions"]:
            return f"{path}: Forbidden: Feature LoggingAlphaOptions is disabled"
    return ""


def _serving(values: Mapping[str, Any]) -> Iterator[str]:
    port = values["secure_port"]
    if port > PORT_MAX:
        yield (
            f"--secure-port {port} must be between 1 and 65535, inclusive. "
            "It cannot be turned off with 0"
        )
    elif port < 0:
        yield (
            f"--secure-port {port} must be between 0 and 65535, inclusive. "
            "0 for turning off secure port"
        )


def _headers(values: Mapping[str, Any]) -> Iterator[str]:
    for key in HEADER_LISTS:
        if not all(name.strip() for name in values[key]):
            yield f"empty value in {quoted(key.replace('_', '-'))}"
    uids = values["requestheader_uid_headers"]
    if uids and "x-remote-uid" not in (name.lower() for name in uids):
        yield (
            "--requestheader-uid-headers is set without specifying the standard X-Remote-Uid header"
            " - API aggregation will not work"
        )


def _tls(values: Mapping[str, Any], _: Mapping[str, bool]) -> str:
    if bool(values["tls_cert_file"]) is not bool(values["tls_private_key_file"]):
        return "missing filename for serving cert: give --tls-cert-file and --tls-private-key-file"
    version = values["tls_min_version"]
    if version and version not in TLS_VERSIONS:
        return f"unknown tls version {quoted(version)}"
    for suite in values["tls_cipher_suites"]:
        if suite not in CIPHER_SUITES:
            return f"Cipher suite {suite} not supported or doesn't exist"
    return ""


def _metrics(values: Mapping[str, Any]) -> Iterator[str]:
    version = values["show_hidden_metrics_for_version"]
    if version and version != HIDDEN_METRICS_VERSION:
        rule = (
            f"must be omitted or have the value '{HIDDEN_METRICS_VERSION}'; "
            "only the previous minor version is allowed"
        )
        path = "metrics.showHiddenMetricsForVersion"
        yield f"{path}: Invalid value: {quoted(version)}: {rule}"
    disabled = values["disabled_metrics"]
    for name in disabled:
        if not METRIC_NAME.fullmatch(name):
            rule = f'must be fully qualified metric names matching "^{METRIC_NAME.pattern}$"'
            shown = go_json(list(disabled))
            yield f"metrics.disabledMetrics: Invalid value: {shown}: {rule}, got {quoted(name)}"
            break
    allowed = values["allow_metric_labels"]
    if not all(METRIC_AND_LABEL.fullmatch(key) for key in allowed):
        rule = (
            "must have keys with format `metricName,labelName` where metricName matches "
            f'"{METRIC_NAME.pattern}" and labelName matches "{LABEL_NAME.pattern}"'
        )
        shown = go_json(dict(sorted(allowed.items())))
        yield f"metrics.allowListMapping: Invalid value: {shown}: {rule}"


def _reach(values: Mapping[str, Any], _: Mapping[str, bool]) -> str:
    if not values["config"] and values["kube_api_burst"] <= 0 < values["kube_api_qps"]:
        return (
            "burst is required to be greater than 0 when RateLimiter is not set and QPS is set to"
            " greater than 0"
        )
    master = values["master"]
    if master:
        try:
            address = urlsplit(master if "://" in master else f"http://{master}")
        except ValueError:
            address = SplitResult("", "", "", "", "")
        if not address.netloc or not address.scheme or " " in address.netloc:
            return f"host must be a URL or a host:port pair: {quoted(master)}"
    return ""


def _election(values: Mapping[str, Any], _: Mapping[str, bool]) -> str:
    lock = values["leader_elect_resource_lock"]
    if not values["leader_elect"]:
        return ""
    if lock in REMOVED_LOCKS:
        removed = f"{lock} lock is removed, {REMOVED_LOCKS[lock]} to leases"
        return f"couldn't create resource lock: {removed}"
    if lock != "leases":
        return f"couldn't create resource lock: Invalid lock-type {lock}"
    return ""


def _own(values: Mapping[str, Any], _: Mapping[str, bool]) -> str:
    if values["bind_concurrency"] < 1:
        return "--bind-concurrency must be at least 1"
    if values["audit_period"] and values["audit_period"] < AUDIT_PERIOD_S_MIN:
        shortest = f"{AUDIT_PERIOD_S_MIN:.0f}s"
        return f"--audit-period must be at least {shortest}, or 0 to audit on demand only"
    for plugin in values["plugin"]:
        module, colon, name = plugin.partition(":")
        if not (module and colon and name) and not plugin.endswith(".py"):
            form = "module:Class, file.py:Class or file.py"
            return f"--plugin {quoted(plugin)} must have the form {form}"
    if values["scheduler_name"] and values["config"]:
        return "--scheduler-name and --config exclude each other: name the profiles in the file"
    return ""


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
