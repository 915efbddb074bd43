"""Flags of `asched run` for a test's control plane."""

from tests.e2e.control_plane import Plane
from tests.e2e.inside import SCHEDULER


def flags(plane: Plane) -> tuple[str, ...]:
    return (
        f"--kubeconfig={plane.kubeconfig}",
        "--leader-elect=false",
        "--secure-port=0",
        f"--scheduler-name={SCHEDULER}",
    )
