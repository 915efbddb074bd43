"""The real API server of the tests of manifests, for the doctor too."""

from tests.deploy.conftest import real_kubeconfig

__all__ = ["real_kubeconfig"]
