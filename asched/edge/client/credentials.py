"""Where the server is and who we are to it. The only file that touches kubernetes-asyncio.

Source of the configuration, first that exists: the file named by the caller; KUBECONFIG or
~/.kube/config; the service account of the pod we run in; a bare `--master` address without
credentials. Tokens are looked at again every TOKEN_CHECK_S: a service account's token file and a
`tokenFile` are read again, an exec plugin runs again 5 minutes before its token expires. A 401
reloads everything from the start, at most once per RELOAD_INTERVAL_S. When a certificate file
changes on disk the TLS context is made anew; connections opened from then on use it.
"""

import asyncio
import logging
import os
import ssl
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from asched.edge.client.errors import ConnectError

if TYPE_CHECKING:
    from kubernetes_asyncio.client import Configuration

log = logging.getLogger(__name__)

#: How stale a token may be; in-cluster tokens are valid for an hour and replaced after 48 minutes.
TOKEN_CHECK_S: Final = 10.0
#: An exec plugin may open a browser; it is not started again at once when its token is refused.
RELOAD_INTERVAL_S: Final = 5.0
#: How often certificate files are compared with what was loaded, at most; only when connecting.
FILES_CHECK_S: Final = 10.0
DEFAULT_KUBECONFIG: Final = "~/.kube/config"
IN_CLUSTER_VARIABLE: Final = "KUBERNETES_SERVICE_HOST"
_SCHEMES: Final = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class Source:
    """Which configuration to load; empty strings are "not given"."""

    kubeconfig: str = ""
    context: str = ""
    master: str = ""


Loaded = tuple["Configuration", Callable[[], Awaitable[None]]]


class Credentials:
    """The server's address, the Authorization header of the moment, and the TLS context."""

    def __init__(self, load: Callable[[], Awaitable[Loaded]], loaded: Loaded) -> None:
        self._load = load
        self._lock = asyncio.Lock()
        self._reloaded_s = -RELOAD_INTERVAL_S
        self.authorization: str | None = None
        #: Grows whenever connections made before should not be used for new requests.
        self.generation = 0
        self._adopt(loaded)

    def _adopt(self, loaded: Loaded) -> None:
        configuration, self._refresh_token = loaded
        self._configuration = configuration
        address = urlsplit(configuration.host)
        if address.scheme not in _SCHEMES or not address.hostname:
            raise ConnectError(
                f"the server address {configuration.host!r} is not of the form https://host:port; "
                "correct `server` in the kubeconfig, or --master"
            )
        self.is_tls = address.scheme == "https"
        self.hostname = address.hostname
        try:
            self.port = address.port or _SCHEMES[address.scheme]
        except ValueError:
            raise ConnectError(
                f"the server address {configuration.host!r} has no usable port"
            ) from None
        self.base_path = address.path.rstrip("/")
        name = f"[{self.hostname}]" if ":" in self.hostname else self.hostname
        self.host = f"{name}:{self.port}"
        self.url = f"{address.scheme}://{self.host}"
        self.proxy: str | None = configuration.proxy or None
        self.server_name: str | None = configuration.tls_server_name or None
        self.authorization = self._header()
        self._due_s = monotonic() + TOKEN_CHECK_S
        self._files = self._file_versions()
        self._files_checked_s = monotonic()
        self._tls = self._make_tls()

    def _header(self) -> str | None:
        """Token files often end in a newline, which must not reach the wire."""
        token: str = self._configuration.api_key.get("BearerToken") or ""
        return token.strip() or None

    @property
    def is_due(self) -> bool:
        """The token should be looked at before the next request."""
        return monotonic() >= self._due_s

    async def refresh(self) -> None:
        """Let the token be renewed if it is about to expire; after a failure the old one stays."""
        self._due_s = monotonic() + TOKEN_CHECK_S
        try:
            await self._refresh_token()
        except Exception as error:  # noqa: BLE001 - plugins and readers raise anything
            log.warning("credentials could not be renewed, going on with the old ones: %s", error)
            return
        self.authorization = self._header()

    async def reload(self, used: str | None) -> bool:
        """Load everything anew after a 401; True if it is worth asking again.

        `used` is the header that was refused: whoever comes second finds the work done.
        """
        async with self._lock:
            if self.authorization != used:
                return True
            if monotonic() - self._reloaded_s < RELOAD_INTERVAL_S:
                return False
            self._reloaded_s = monotonic()
            try:
                self._adopt(await self._load())
            except ConnectError as error:
                log.warning("credentials were refused and could not be loaded again: %s", error)
                return False
            self.generation += 1
            return True

    def tls(self) -> ssl.SSLContext | None:
        """The context for a new connection, made anew if a certificate file has changed."""
        now_s = monotonic()
        if self._tls is not None and now_s - self._files_checked_s >= FILES_CHECK_S:
            self._files_checked_s = now_s
            versions = self._file_versions()
            if versions != self._files:
                try:
                    self._tls = self._make_tls()
                except ConnectError as error:
                    log.warning("changed certificate files are not usable yet: %s", error)
                else:
                    self._files = versions
                    self.generation += 1
                    log.info("certificate files have changed; new connections use them")
        return self._tls

    def _file_versions(self) -> tuple[tuple[str, int, int], ...]:
        versions = []
        for path in (
            self._configuration.ssl_ca_cert,
            self._configuration.cert_file,
            self._configuration.key_file,
        ):
            if path:
                try:
                    stat = os.stat(path)  # noqa: PTH116  # a path from the library, often a link
                except OSError:
                    continue
                versions.append((path, stat.st_mtime_ns, stat.st_size))
        return tuple(versions)

    def _make_tls(self) -> ssl.SSLContext | None:
        if not self.is_tls:
            return None
        configuration = self._configuration
        try:
            context = ssl.create_default_context(cafile=configuration.ssl_ca_cert or None)
            if not configuration.verify_ssl:
                context.check_hostname = False
                context.verify_mode = ssl.CERT_NONE
            if configuration.disable_strict_ssl_verification:
                context.verify_flags &= ~ssl.VERIFY_X509_STRICT
            if configuration.cert_file:
                context.load_cert_chain(configuration.cert_file, configuration.key_file or None)
        except (OSError, ssl.SSLError) as error:
            files = ", ".join(
                path for path in (configuration.ssl_ca_cert, configuration.cert_file) if path
            )
            raise ConnectError(f"certificate files {files} cannot be used: {error}") from error
        return context


async def load_credentials(source: Source) -> Credentials:
    """Find and read the configuration. Raises ConnectError with one line for the user."""

    async def load() -> Loaded:
        return await _load(source)

    return Credentials(load, await load())


async def _load(source: Source) -> Loaded:
    from kubernetes_asyncio.client import Configuration  # 340 ms and 64 MiB
    from kubernetes_asyncio.config import ConfigException

    configuration = Configuration()
    try:
        refresh = await _load_into(configuration, source)
    except ConnectError:
        raise
    except (ConfigException, OSError) as error:
        # uvloop does not say which file it could not start.
        is_plugin = isinstance(error, FileNotFoundError) and error.filename is None
        hint = "; is the exec plugin of this user installed?" if is_plugin else ""
        raise ConnectError(f"{_name(source)} cannot be used: {_one_line(error)}{hint}") from error
    except Exception as error:  # the library lets YAML, JSON and plugin errors through as they are
        raise ConnectError(f"{_name(source)} cannot be read: {_one_line(error)}") from error
    if source.master:
        configuration.host = source.master
    if not configuration.proxy:
        configuration.proxy = _environment_proxy(configuration.host or "")
    return configuration, refresh


async def _load_into(
    configuration: "Configuration", source: Source
) -> Callable[[], Awaitable[None]]:
    from kubernetes_asyncio import config

    path = _kubeconfig_path(source.kubeconfig)
    if path is not None:
        loader = await config.load_kube_config(
            config_file=path, context=source.context or None, client_configuration=configuration
        )
        if not getattr(loader, "host", ""):
            raise ConnectError(f"kubeconfig {path}: the cluster of this context names no `server`")
        return _kubeconfig_refresher(loader, configuration)
    if os.environ.get(IN_CLUSTER_VARIABLE):
        load_in_cluster: Any = config.load_incluster_config  # carries no types
        load_in_cluster(client_configuration=configuration)

        async def read_token_file() -> None:
            await configuration.get_api_key_with_prefix("BearerToken")

        return read_token_file
    if source.master:

        async def nothing() -> None:
            return None

        return nothing
    raise ConnectError(
        f"no configuration has been provided: there is no --kubeconfig, KUBECONFIG is not set, "
        f"{DEFAULT_KUBECONFIG} does not exist, and this is no pod; name a kubeconfig file"
    )


def _kubeconfig_path(explicit: str) -> str | None:
    """The file, or the list of files, to read; None if there is none."""
    if explicit:
        path = Path(explicit).expanduser()
        if not path.is_file():
            what = "is a folder" if path.is_dir() else "no such file"
            raise ConnectError(f"kubeconfig {explicit}: {what}; check --kubeconfig")
        return str(path)
    named = os.environ.get("KUBECONFIG", "")
    if named:
        if not any(Path(part).expanduser().is_file() for part in named.split(os.pathsep) if part):
            raise ConnectError(
                f"KUBECONFIG names {named}, which does not exist; correct or unset it"
            )
        return named
    default = Path(DEFAULT_KUBECONFIG).expanduser()
    return str(default) if default.is_file() else None


def _kubeconfig_refresher(
    loader: Any, configuration: "Configuration"
) -> Callable[[], Awaitable[None]]:
    """What to do every TOKEN_CHECK_S for the user of a kubeconfig."""
    user = getattr(loader, "_user", None) or ()
    if "exec" in user:

        async def refresh() -> None:
            # Without an expiry a token is good until it is refused; the loader would run the plugin
            # anew.
            if hasattr(loader, "exec_plugin_expiry"):
                await loader.load_from_exec_plugin()
                configuration.api_key["BearerToken"] = loader.token

    elif "tokenFile" in user or "auth-provider" in user:

        async def refresh() -> None:
            # The library's own refresh_token() covers neither token files nor OIDC, and one failure
            # ends it for good; loading the authentication again covers all of them.
            await loader._load_authentication()  # noqa: SLF001
            if hasattr(loader, "token"):
                configuration.api_key["BearerToken"] = loader.token

    else:

        async def refresh() -> None:
            return None

    return refresh


def _environment_proxy(url: str) -> str | None:
    """What HTTPS_PROXY, HTTP_PROXY and NO_PROXY say; as in Go, this machine is never proxied."""
    address = urlsplit(url)
    name = address.hostname or ""
    if name == "localhost" or name.startswith("127.") or name == "::1":
        return None
    if proxy_bypass(name):
        return None
    return getproxies().get(address.scheme)


def _name(source: Source) -> str:
    """What was being read, for a message."""
    named = source.kubeconfig or os.environ.get("KUBECONFIG", "")
    if named or Path(DEFAULT_KUBECONFIG).expanduser().is_file():
        return f"kubeconfig {named or DEFAULT_KUBECONFIG}"
    return "the service account of this pod"


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split()) or type(error).__name__
