"""Run exec plugins: programs named by a kubeconfig, which print credentials.

A plugin runs in a session of its own without a terminal. It is ended with its child processes when
it has not answered within EXEC_S_MAX; interactive plugins are not supported.

Bounds  EXEC_S_MAX; OUTPUT_BYTES_MAX of its output.
Source  k8s.io/client-go v0.36 plugin/pkg/client/auth/exec; client.authentication.k8s.io v1 and
        v1beta1
"""

import asyncio
import os
import signal
from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime
from typing import Annotated, Any, Final

import msgspec
import orjson

from asched.core.model.decode import MalformedError, parse
from asched.kube.errors import ConnectError
from asched.kube.tasks import ended

EXEC_S_MAX: Final = 60.0
#: Time to read the rest of an ended plugin's pipes.
DRAIN_S_MAX: Final = 0.1
#: A token, or a certificate with its chain. A guess.
OUTPUT_BYTES_MAX: Final = 1 << 20
#: Error output is shown up to this length.
_SHOWN: Final = 300
GROUP: Final = "client.authentication.k8s.io/"
VERSIONS: Final = (f"{GROUP}v1", f"{GROUP}v1beta1")


class Variable(msgspec.Struct):
    name: str
    value: str = ""


class ExecPlugin(msgspec.Struct, rename="camel"):
    """The `exec` field of a kubeconfig's user."""

    command: str
    api_version: str
    args: list[str] | None = None
    env: list[Variable] | None = None
    install_hint: str = ""
    provide_cluster_info: bool = False
    interactive_mode: str = ""


class _Status(msgspec.Struct, rename="camel"):
    token: str = ""
    client_certificate_data: str = ""
    client_key_data: str = ""
    expiration_timestamp: Annotated[datetime, msgspec.Meta(tz=True)] | None = None


class _ExecCredential(msgspec.Struct, rename="camel"):
    api_version: str
    kind: str
    status: _Status | None = None


_credentials: Final = msgspec.json.Decoder(_ExecCredential)


class Printed(msgspec.Struct, frozen=True):
    """A plugin's credentials: a token, a certificate with its key (PEM), or both; expiry."""

    token: str = ""
    certificate: bytes = b""
    key: bytes = b""
    expires: datetime | None = None


def check(plugin: ExecPlugin) -> None:
    """Raises ConnectError for a plugin that is not supported."""
    name = f"exec plugin {plugin.command}"
    if plugin.api_version not in VERSIONS:
        raise ConnectError(
            f"{name}: apiVersion {plugin.api_version!r} is not supported;"
            f" use {' or '.join(VERSIONS)}"
        )
    if plugin.interactive_mode == "Always":
        raise ConnectError(
            f"{name}: interactiveMode Always needs a terminal; use a plugin or a user"
            " that works without"
        )


async def run_plugin(plugin: ExecPlugin, cluster: Mapping[str, Any]) -> Printed:
    """Run the plugin once. `cluster` is passed if the plugin wants it. Raises ConnectError."""
    name = f"exec plugin {plugin.command}"
    spec: dict[str, Any] = {"interactive": False}
    if plugin.provide_cluster_info:
        spec["cluster"] = cluster
    info = {"apiVersion": plugin.api_version, "kind": "ExecCredential", "spec": spec}
    more = {variable.name: variable.value for variable in plugin.env or ()}
    starting = asyncio.ensure_future(
        asyncio.create_subprocess_exec(
            plugin.command,
            *(plugin.args or ()),
            env={**os.environ, **more, "KUBERNETES_EXEC_INFO": orjson.dumps(info).decode()},
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,
        )
    )
    try:
        # A cancellation during the start would leave an unsupervised process.
        process = await asyncio.shield(starting)
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        hint = " ".join(plugin.install_hint.split()) or "is it installed?"
        raise ConnectError(f"{name} cannot be started: {why}; {hint}") from error
    except asyncio.CancelledError:
        with suppress(OSError, ValueError):
            await _end(await starting)
        raise
    reading = [
        asyncio.ensure_future(_bounded(stream, name)) for stream in (process.stdout, process.stderr)
    ]
    try:
        async with asyncio.timeout(EXEC_S_MAX):
            out, complaint = await asyncio.gather(*reading)
            await process.wait()
    except BaseException as error:
        await ended(reading)
        await _end(process)
        if isinstance(error, TimeoutError):
            raise ConnectError(
                f"{name} has not answered within {EXEC_S_MAX:g} s; run it by hand to see what it"
                " waits for"
            ) from None
        raise
    if process.returncode:
        said = " ".join(complaint.decode("utf-8", "replace").split())[:_SHOWN]
        raise ConnectError(f"{name} ended with {process.returncode}: {said or 'no error output'}")
    return _read(out, plugin.api_version, name)


async def _bounded(stream: asyncio.StreamReader | None, name: str) -> bytes:
    """The whole output. Raises ConnectError if it is too long."""
    said = bytearray()
    while stream is not None and (part := await stream.read(1 << 16)):
        said += part
        if len(said) > OUTPUT_BYTES_MAX:
            raise ConnectError(
                f"{name} prints more than {OUTPUT_BYTES_MAX} bytes; run it by hand to see what"
            )
    return bytes(said)


async def _end(process: asyncio.subprocess.Process) -> None:
    with suppress(ProcessLookupError):  # its children may still run
        os.killpg(process.pid, signal.SIGKILL)
    await process.wait()
    for stream in filter(None, (process.stdout, process.stderr)):
        with suppress(TimeoutError):  # a child in another session may keep the pipe open
            async with asyncio.timeout(DRAIN_S_MAX):
                while await stream.read(1 << 16):
                    pass  # unread output keeps the pipe open


def _read(out: bytes, version: str, name: str) -> Printed:
    try:
        printed = parse(_credentials.decode, out)
    except MalformedError as error:
        raise ConnectError(f"{name} printed no ExecCredential: {error}") from error
    status = printed.status
    if printed.kind != "ExecCredential" or printed.api_version != version:
        raise ConnectError(
            f"{name} printed {printed.kind} {printed.api_version}, not ExecCredential {version}"
        )
    if status is None or not (status.token or status.client_certificate_data):
        raise ConnectError(f"{name} printed neither a token nor a certificate")
    if bool(status.client_certificate_data) != bool(status.client_key_data):
        raise ConnectError(f"{name} printed a certificate without its key, or a key alone")
    return Printed(
        status.token.strip(),
        status.client_certificate_data.encode(),
        status.client_key_data.encode(),
        status.expiration_timestamp,
    )
