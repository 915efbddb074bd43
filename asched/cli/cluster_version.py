"""Whose rules a start decides by: those of `--emulated-version`, or of the API server's version.

The server is asked once, before the flags are checked: gates and defaults of the configuration
depend on its version.
"""

import asyncio
from collections.abc import Mapping
from typing import Any, Final

import yaml

from asched.core.config.versions import (
    BASE,
    UnknownVersionError,
    VersionChoice,
    emulated,
    for_server,
)
from asched.host.configuration.file import UnreadableFileError, read_text
from asched.host.configuration.source import item
from asched.kube.errors import ClientError
from asched.kube.session import ConnectionOptions, fetch_version

COMPONENT: Final = "kube"


def emulated_version(values: tuple[str, ...]) -> VersionChoice:
    """The version that `--emulated-version` names. Raises UnknownVersionError."""
    text = BASE
    for value in values:
        component, equals, own = value.partition("=")
        if equals and component != COMPONENT:
            raise UnknownVersionError(f"component not registered: {component}")
        text = own if equals else value
    return emulated(text)._replace(is_emulated=True)


def of_server(given: Mapping[str, Any]) -> VersionChoice:
    """The version of the API server that these flags name. One that cannot be read is no error
    here: the process waits for its server, and compares the version when it answers.
    """
    if given.get("write_config_to"):
        return VersionChoice(BASE)
    connection = ConnectionOptions(kubeconfig=_kubeconfig(given), master=given.get("master", ""))
    try:
        server = asyncio.run(fetch_version(connection))
        return for_server(server)._replace(server=server)
    except (ClientError, UnknownVersionError) as error:
        text = f"the version of the API server is not known ({error}); asched decides as {BASE}"
        return VersionChoice(BASE, text)


def _kubeconfig(given: Mapping[str, Any]) -> str:
    """The kubeconfig that is going to be used; faults of the file are reported by its reader."""
    if not given.get("config"):
        return str(given.get("kubeconfig", ""))
    try:
        document = yaml.safe_load(read_text(given["config"]))
    except (UnreadableFileError, yaml.YAMLError, ValueError, RecursionError):
        return ""
    found = item(item(document, "clientConnection"), "kubeconfig")
    return found if isinstance(found, str) else ""
