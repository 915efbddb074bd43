"""What can be set, by environment variables, and the addresses of the cluster."""

import os
from dataclasses import dataclass
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
#: Network namespaces have this prefix, and cgroups this name.
PREFIX = "realcluster"
NODES = (1, 2, 3)
API_ADDRESS = "10.66.0.1"
SERVICES = "10.96.0.0/16"
#: The API server's address in the network of the services.
KUBERNETES_SERVICE = "10.96.0.1"
#: Requests of the cluster's own programs, and of nothing else.
CONTROL_PLANE_NETWORK = PREFIX


def node_address(number: int) -> str:
    return f"10.66.0.{10 + number}"


def pod_network(number: int) -> str:
    return f"10.67.{number}.0/24"


def node_network(number: int) -> str:
    """The name of the network namespace of a node."""
    return f"{PREFIX}-node{number}"


@dataclass(frozen=True)
class Settings:
    """Where the programs are, and where files of the cluster may be written."""

    folder: Path
    assets: Path
    node_assets: Path
    images: Path
    network_plugins: Path
    image: str
    kube_scheduler_image: str
    next_tag: str

    @property
    def certificates(self) -> Path:
        return self.folder / "certificates"

    @property
    def state(self) -> Path:
        return self.folder / "state"

    @property
    def logs(self) -> Path:
        return self.folder / "logs"

    @property
    def kubeconfig(self) -> Path:
        return self.certificates / "admin.kubeconfig"

    def node_folder(self, number: int) -> Path:
        return self.folder / "nodes" / f"node{number}"


def read_settings() -> Settings:
    variables = os.environ
    folder = Path(variables.get("REALCLUSTER", "/var/tmp/realcluster"))
    assets = Path(variables.get("KUBEBUILDER_ASSETS", "/usr/local/kubebuilder/bin"))
    return Settings(
        folder=folder,
        assets=assets,
        node_assets=Path(variables.get("NODE_ASSETS", str(assets))),
        images=Path(variables.get("IMAGES", str(folder / "images"))),
        network_plugins=Path(variables.get("NETWORK_PLUGINS", "/usr/lib/cni")),
        image=variables.get("IMAGE", "localhost/asched:0.1.0"),
        kube_scheduler_image=variables.get("KUBE_SCHEDULER_IMAGE", ""),
        next_tag=variables.get("NEXT_TAG", "next"),
    )
