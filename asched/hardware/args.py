"""Common part of the args of plugins that scheduler-plugins has, too."""

from dataclasses import dataclass
from typing import Final

API_VERSION: Final = "kubescheduler.config.k8s.io/v1"


@dataclass(frozen=True, slots=True)
class UpstreamArgs:
    """Optional apiVersion and kind, as in upstream's files. Raises ValueError if they are wrong."""

    api_version: str = ""
    kind: str = ""

    def __post_init__(self) -> None:
        own_kind = type(self).__name__
        if self.kind not in {"", own_kind} or self.api_version not in {"", API_VERSION}:
            given = f"{self.api_version or API_VERSION} {self.kind or own_kind}"
            raise ValueError(f"these are args of {given}, not of {API_VERSION} {own_kind}")
