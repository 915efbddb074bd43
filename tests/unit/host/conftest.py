"""An API server with one node."""

import pytest

from asched_lab.apiserver.server import ApiServer
from tests.unit.host.elected import a_node


@pytest.fixture
async def server(tmp_path):
    server = ApiServer()
    await server.start()
    (tmp_path / "kubeconfig").write_text(server.kubeconfig())
    server.create("nodes", a_node("n1"))
    yield server
    await server.stop()
