"""The server's address and the credentials of requests.

Source of the configuration, first that exists: the file named by the caller; KUBECONFIG or
~/.kube/config; the service account of this pod; a bare `--master` address without credentials.
Token files are read again every TOKEN_CHECK_S, and an exec plugin runs again EXPIRY_MARGIN before
its credentials expire. A 401 reloads everything, at most once per RELOAD_INTERVAL_S. An exec plugin
runs in a task of its own: requests continue with the old token meanwhile, and a refused request
waits for the new token only within its own time limit.
"""

import asyncio
import logging
import os
import ssl
from base64 import b64encode
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from time import monotonic
from typing import Any, Final
from urllib.parse import SplitResult, urlsplit

from msgspec.structs import replace

from asched.kube.certificates import Rotating, rotating
from asched.kube.errors import ConnectError
from asched.kube.exec_plugins import Printed, run_plugin
from asched.kube.files import file_text, named_content
from asched.kube.kubeconfig import HOST_VARIABLE, Login, read_kubeconfigs, service_account
from asched.kube.proxies import PORTS, environment_proxy

log = logging.getLogger(__name__)

#: Maximum age of a token read from a file; in-cluster tokens live an hour and are replaced after 48
#: minutes.
TOKEN_CHECK_S: Final = 10.0
EXPIRY_MARGIN: Final = timedelta(minutes=1)
#: An exec plugin may call a server; it is not run again at once when its token is refused.
RELOAD_INTERVAL_S: Final = 5.0
DEFAULT_KUBECONFIG: Final = "~/.kube/config"


class Credentials:
    """The server's address, the current authentication headers, and the TLS context.

    `renew` must have been awaited once. Close it once.
    """

    def __init__(self, find: Callable[[], Login]) -> None:
        self._find = find
        self._printed = Printed()
        self._renewal: asyncio.Task[bool] | None = None
        self._reloaded_s = -RELOAD_INTERVAL_S
        #: Incremented whenever existing connections must not serve new requests.
        self.generation = 0
        self.authorization: str | None = None

    async def renew(self) -> None:
        """Read the configuration and run its plugin. Raises ConnectError without any change."""
        login = self._find()
        printed = Printed()
        if login.plugin is not None:
            printed = await run_plugin(login.plugin, _cluster_of(login))
        self._adopt(login, printed)

    def _adopt(self, login: Login, printed: Printed) -> None:
        try:
            address = urlsplit(login.server)
            # A name that DNS cannot encode would fail in every request.
            hostname = (address.hostname or "").encode("idna").decode()
        except ValueError:
            address, hostname = SplitResult("", "", "", "", ""), ""
        if address.scheme not in PORTS or not hostname:
            raise ConnectError(
                f"the server address {login.server!r} is not of the form https://host:port; "
                "correct `server` in the kubeconfig, or --master"
            )
        try:
            port = address.port or PORTS[address.scheme]
        except ValueError:
            raise ConnectError(f"the server address {login.server!r} has no usable port") from None
        proxy = login.proxy or environment_proxy(login.server)
        authorization = _authorization(login, printed)
        tls = _rotating(login, printed) if address.scheme == "https" else None
        self._login, self._printed, self._tls = login, printed, tls
        self._context = tls.context() if tls is not None else None
        self.is_tls = tls is not None
        self.hostname, self.port = hostname, port
        self.base_path = address.path.rstrip("/")
        name = f"[{self.hostname}]" if ":" in self.hostname else self.hostname
        self.host = f"{name}:{self.port}"
        self.url = f"{address.scheme}://{self.host}"
        self.proxy: str | None = proxy
        self.server_name: str | None = login.tls_server_name or None
        self.authorization = authorization
        self.generation += 1
        self._due_s = monotonic() + TOKEN_CHECK_S

    @property
    def headers(self) -> list[tuple[str, str]]:
        """The authentication headers of each request; names may repeat."""
        own = [("Authorization", self.authorization)] if self.authorization else []
        return [*own, *self._login.impersonation]

    @property
    def namespace(self) -> str:
        return self._login.namespace or "default"

    @property
    def pages(self) -> str:
        """Where a scheduler serves its pages, if the kubeconfig says so."""
        return self._login.pages

    def keep_fresh(self) -> None:
        """Check the token before a request if that is due. Slow renewals run in a task."""
        if monotonic() < self._due_s:
            return
        self._due_s = monotonic() + TOKEN_CHECK_S
        if self._login.token_file:
            try:
                self.authorization = _authorization(self._login, self._printed)
            except ConnectError as error:
                log.warning(
                    "credentials could not be renewed, going on with the old ones: %s", error
                )
        expires = self._printed.expires
        if expires is not None and expires - EXPIRY_MARGIN <= datetime.now(UTC):
            self._begin()

    async def reload(self, used: str | None, timeout_s: float) -> bool:
        """Load everything again after a 401; True if a retry makes sense.

        `used` is the refused header: if another request has already renewed it, or a renewal is
        running, no second one starts. A renewal continues after `timeout_s` for later requests.
        """
        if self.authorization != used:
            return True
        if self._renewal is None and monotonic() - self._reloaded_s < RELOAD_INTERVAL_S:
            return False
        renewal = self._begin()
        await asyncio.wait({renewal}, timeout=timeout_s)
        return renewal.done() and not renewal.cancelled() and renewal.result()

    def _begin(self) -> "asyncio.Task[bool]":
        """The renewal in progress."""
        if self._renewal is None:
            self._reloaded_s = monotonic()
            self._renewal = asyncio.ensure_future(self._try_to_renew())
        return self._renewal

    async def _try_to_renew(self) -> bool:
        try:
            await self.renew()
        except ConnectError as error:
            log.warning("credentials could not be renewed, going on with the old ones: %s", error)
            return False
        finally:
            self._renewal = None
        return True

    def tls(self) -> ssl.SSLContext | None:
        """The context for a new connection, made again if a certificate file has changed."""
        if self._tls is not None:
            context = self._tls.context()
            if context is not self._context:
                self._context = context
                self.generation += 1
        return self._context

    async def close(self) -> None:
        """End a running plugin."""
        if self._renewal is not None:
            self._renewal.cancel()
            await asyncio.wait({self._renewal})


async def load_credentials(
    kubeconfig: str = "", context: str = "", master: str = ""
) -> Credentials:
    """Find and read the configuration; empty strings mean "not given". Raises ConnectError with one
    line for the user.
    """
    credentials = Credentials(lambda: _find(kubeconfig, context, master))
    await credentials.renew()
    return credentials


def _find(kubeconfig: str, context: str, master: str) -> Login:
    paths = _kubeconfigs(kubeconfig)
    if paths:
        login = read_kubeconfigs(paths, context)
        if not login.server and not master:
            named = ":".join(map(str, paths))
            raise ConnectError(f"kubeconfig {named} has no contexts; name another, or --master")
    elif os.environ.get(HOST_VARIABLE):
        login = service_account()
    elif master:
        login = Login()
    else:
        raise ConnectError(
            "no configuration has been provided: there is no --kubeconfig, KUBECONFIG is not set, "
            f"{DEFAULT_KUBECONFIG} does not exist, and this is not a pod; name a kubeconfig file"
        )
    return replace(login, server=master) if master else login


def _kubeconfigs(explicit: str) -> list[Path]:
    """The files to read, in order of precedence; none if there is none."""
    if explicit:
        path = _at_home(explicit)
        is_folder = os.path.isdir(path)  # noqa: PTH112 - False, too, without permission
        if is_folder or not os.path.exists(path):  # noqa: PTH110 - as above; may be a pipe
            what = "is a folder" if is_folder else "no such file"
            raise ConnectError(f"kubeconfig {explicit}: {what}; check --kubeconfig")
        return [path]
    named = os.environ.get("KUBECONFIG", "")
    if named:
        parts = [_at_home(part) for part in named.split(os.pathsep) if part]
        found = [path for path in parts if os.path.exists(path)]  # noqa: PTH110
        if not found:
            raise ConnectError(
                f"KUBECONFIG names {named}, which does not exist; correct or unset it"
            )
        return found
    default = _at_home(DEFAULT_KUBECONFIG)
    return [default] if os.path.isfile(default) else []  # noqa: PTH113


def _at_home(path: str) -> Path:
    """Expand a tilde, if the user has a home directory."""
    return Path(os.path.expanduser(path))  # noqa: PTH111 - keeps the tilde without a home


def _authorization(login: Login, printed: Printed) -> str | None:
    """The header's value: a token file, else a token, else the plugin's credentials.

    Raises ConnectError. Token files often end in a newline, which must not be sent.
    """
    token = login.token
    if login.token_file:
        try:
            token = file_text(login.token_file).strip()
        except (OSError, ValueError) as error:
            if not token:
                why = f"token file {login.token_file} cannot be read: {error}"
                raise ConnectError(why) from error
        if not token:
            raise ConnectError(f"token file {login.token_file} is empty")
    if login.username or login.password:
        both = f"{login.username}:{login.password}".encode(errors="surrogatepass")
        return "Basic " + b64encode(both).decode()
    token = token.strip() or printed.token
    if not token.isprintable():
        raise ConnectError("the token contains unprintable characters; check its source")
    return f"Bearer {token}" if token else None


def _rotating(login: Login, printed: Printed) -> Rotating:
    files = [login.authorities_file, login.certificate_file, login.key_file]
    try:
        return rotating(
            authorities=login.authorities,
            authorities_file=login.authorities_file,
            verify=login.verify,
            certificate=printed.certificate or login.certificate,
            certificate_file=login.certificate_file,
            key=printed.key or login.key,
            key_file=login.key_file,
        )
    except (OSError, ValueError) as error:
        named = ", ".join(filter(None, files)) or "in the kubeconfig"
        raise ConnectError(f"certificates ({named}) cannot be used: {error}") from error


def _cluster_of(login: Login) -> dict[str, Any]:
    """The `cluster` field of an ExecCredential's spec."""
    authorities = login.authorities or named_content(login.authorities_file)
    cluster: dict[str, Any] = {
        "server": login.server,
        "tls-server-name": login.tls_server_name,
        "insecure-skip-tls-verify": not login.verify,
        "certificate-authority-data": b64encode(authorities).decode(),
        "proxy-url": login.proxy,
        "config": login.plugin_config,
    }
    return {key: value for key, value in cluster.items() if value}
