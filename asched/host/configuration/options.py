"""Settings of a process outside of its configuration, grouped as kube-scheduler's flags are."""

from collections.abc import Mapping

import msgspec


class LogOptions(msgspec.Struct, frozen=True):
    """Log format, verbosity and streams; `vmodule` is (pattern, verbosity)."""

    logging_format: str
    v: int
    vmodule: tuple[tuple[str, int], ...]
    log_json_split_stream: bool
    log_text_split_stream: bool

    @property
    def splits(self) -> bool:
        """Whether errors and other messages go to different streams in the chosen format."""
        as_json = self.logging_format == "json"
        return self.log_json_split_stream if as_json else self.log_text_split_stream


class MetricsOptions(msgspec.Struct, frozen=True):
    """Which metrics and labels are exposed."""

    allow_metric_labels: Mapping[str, str]
    allow_metric_labels_manifest: str
    disabled_metrics: tuple[str, ...]


class PolicyOptions(msgspec.Struct, frozen=True):
    """The source of a legacy Policy."""

    policy_config_file: str
    policy_configmap: str
    policy_configmap_namespace: str
    use_legacy_policy_config: bool
