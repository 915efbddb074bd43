"""What the args of plugins have in common that upstream's users know from scheduler-plugins."""

from dataclasses import dataclass
from typing import Final

API_VERSION: Final = "kubescheduler.config.k8s.io/v1"


@dataclass(frozen=True, slots=True)
class UpstreamArgs:
    """They may say of what kind they are. Raises ValueError if it is another."""

    api_version: str = ""
    kind: str = ""

    def __post_init__(self) -> None:
        mine = type(self).__name__
        if self.kind not in {"", mine} or self.api_version not in {"", API_VERSION}:
            given = f"{self.api_version or API_VERSION} {self.kind or mine}"
            raise ValueError(f"these are args of {given}, not of {API_VERSION} {mine}")
