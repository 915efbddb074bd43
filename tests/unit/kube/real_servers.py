"""An API server that is reached over TLS with a token."""

from contextlib import asynccontextmanager

from asched_lab.apiserver.server import ApiServer


@asynccontextmanager
async def running(folder):
    server = ApiServer()
    await server.start(tls=True, token="secret")
    server.path = folder / "kubeconfig"
    server.path.write_text(server.kubeconfig())
    try:
        yield server
    finally:
        await server.stop()
