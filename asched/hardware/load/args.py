"""The source of measured use, in the args of the load plugins.

Rules   `metricProvider.type` KubernetesMetricsServer, through the API server, is the only one: it
        is read with asched's own credentials and needs no address or token. Others are rejected
        by name.
"""

from dataclasses import dataclass, field
from typing import Final

from asched.hardware.rows import (
    UpstreamArgs,
)

METRICS_SERVER: Final = "KubernetesMetricsServer"


@dataclass(frozen=True, slots=True)
class MetricProvider:
    """Raises ValueError for anything but the metrics server.

    type: where use is read; only this one, through the API server
    address: refused, as the API server is asked
    token: refused, as asched's own credentials are used
    insecure_skip_verify: false is refused, as the kubeconfig says how the API server is verified
    """

    type: str = METRICS_SERVER
    address: str = ""
    token: str = ""
    insecure_skip_verify: bool = True

    def __post_init__(self) -> None:
        if self.type != METRICS_SERVER:
            raise ValueError(
                f'metricProvider.type "{self.type}" is not implemented: there is {METRICS_SERVER},'
                " which every provider of metrics.k8s.io serves (prometheus-adapter is one)"
            )
        if self.address or self.token:
            raise ValueError(
                f"metricProvider.address and .token have no meaning with {METRICS_SERVER}:"
                " it is read through the API server"
            )
        if not self.insecure_skip_verify:
            raise ValueError(
                "metricProvider.insecureSkipVerify: false has no meaning with"
                f" {METRICS_SERVER}: it is read through the API server, whose certificate is"
                " verified as the kubeconfig says"
            )


@dataclass(frozen=True, slots=True)
class LoadArgs(UpstreamArgs):
    """Common part of the args of all load plugins. Raises ValueError for fields that have no
    effect; apiVersion and kind are optional.

    watcher_address: refused: Trimaran's load watcher is not asked
    """

    metric_provider: MetricProvider = field(default_factory=MetricProvider)
    watcher_address: str = ""

    def __post_init__(self) -> None:
        UpstreamArgs.__post_init__(self)
        if self.watcher_address:
            raise ValueError(
                "watcherAddress is not implemented: the metrics server is asked through the API"
                " server"
            )
