"""Fields of the kinds whose form the embedded API server does not check, and a strict reader.

A form is a dict of allowed fields; `[form]` is a list, `{str: form}` any keys; a type is a scalar.
Source  Kubernetes 1.36 API reference; monitoring.coreos.com/v1 of prometheus-operator
"""

from collections.abc import Iterator
from typing import Any

STRINGS = [str]
LABELS = {str: str}
META = {"name": str, "namespace": str, "labels": LABELS, "annotations": LABELS}
POLICY_RULE = {
    "apiGroups": STRINGS,
    "resources": STRINGS,
    "resourceNames": STRINGS,
    "verbs": STRINGS,
    "nonResourceURLs": STRINGS,
}
ROLE = {"rules": [POLICY_RULE]}
BINDING = {
    "roleRef": {"apiGroup": str, "kind": str, "name": str},
    "subjects": [{"apiGroup": str, "kind": str, "name": str, "namespace": str}],
}
FLOW_SCHEMA = {
    "spec": {
        "priorityLevelConfiguration": {"name": str},
        "matchingPrecedence": int,
        "distinguisherMethod": {"type": str},
        "rules": [
            {
                "subjects": [
                    {
                        "kind": str,
                        "user": {"name": str},
                        "group": {"name": str},
                        "serviceAccount": {"name": str, "namespace": str},
                    }
                ],
                "resourceRules": [
                    {
                        "verbs": STRINGS,
                        "apiGroups": STRINGS,
                        "resources": STRINGS,
                        "namespaces": STRINGS,
                        "clusterScope": bool,
                    }
                ],
                "nonResourceRules": [{"verbs": STRINGS, "nonResourceURLs": STRINGS}],
            }
        ],
    }
}
ENDPOINT = {
    "port": str,
    "scheme": str,
    "path": str,
    "interval": str,
    "bearerTokenFile": str,
    "tlsConfig": {"insecureSkipVerify": bool},
    "relabelings": [{"targetLabel": str, "replacement": str}],
}
SERVICE_MONITOR = {
    "spec": {
        "jobLabel": str,
        "namespaceSelector": {"matchNames": STRINGS},
        "selector": {"matchLabels": LABELS},
        "endpoints": [ENDPOINT],
    }
}
RULE = {"alert": str, "expr": str, "for": str, "labels": LABELS, "annotations": LABELS}
PROMETHEUS_RULE = {"spec": {"groups": [{"name": str, "rules": [RULE]}]}}

SHAPES: dict[str, Any] = {
    "Role": ROLE,
    "ClusterRole": ROLE,
    "RoleBinding": BINDING,
    "ClusterRoleBinding": BINDING,
    "FlowSchema": FLOW_SCHEMA,
    "ServiceMonitor": SERVICE_MONITOR,
    "PrometheusRule": PROMETHEUS_RULE,
}


def faults(manifest: dict[str, Any]) -> list[str]:
    """What a strict server would refuse, each with its path."""
    form = {"apiVersion": str, "kind": str, "metadata": META, **SHAPES[manifest["kind"]]}
    return list(_faults(manifest, form, manifest["kind"]))


def _faults(value: Any, form: Any, path: str) -> Iterator[str]:
    if isinstance(form, dict):
        if not isinstance(value, dict):
            yield f"{path}: not an object"
            return
        for key, inner in value.items():
            if key not in form and str not in form:
                yield f"{path}.{key}: unknown field"
            else:
                yield from _faults(inner, form.get(key, form.get(str)), f"{path}.{key}")
    elif isinstance(form, list):
        if not isinstance(value, list):
            yield f"{path}: not a list"
            return
        for position, inner in enumerate(value):
            yield from _faults(inner, form[0], f"{path}[{position}]")
    elif type(value) is not form:
        yield f"{path}: {value!r} is not of type {form.__name__}"
