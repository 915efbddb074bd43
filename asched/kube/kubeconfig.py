"""Read and merge kubeconfigs as kubectl does, and the service account of a pod.

Of several files the first entry of a name counts, also for current-context; empty and missing files
are skipped; relative paths start at the directory of their file. Data takes precedence over files.
Unsupported settings are refused by name.

Bounds  FILE_BYTES_MAX per file; VALUES_MAX values once aliases are expanded, NESTED_MAX levels.
Source  k8s.io/client-go v0.36 tools/clientcmd (loader.go, client_config.go), rest/config.go
"""

import logging
import os
from base64 import b64decode
from binascii import Error as Base64Error
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import msgspec
import yaml
from msgspec.structs import replace

from asched import names
from asched.core.model.decode import MalformedError, parse
from asched.kube.errors import ConnectError
from asched.kube.exec_plugins import ExecPlugin, check
from asched.kube.files import file_content
from asched.kube.proxies import checked

log = logging.getLogger(__name__)

FILE_BYTES_MAX: Final = 16 << 20
#: A guess: a thousand clusters with their users are a tenth of it.
VALUES_MAX: Final = 100_000
NESTED_MAX: Final = 100
#: The directory of a pod's service account.
SERVICE_ACCOUNT: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")
HOST_VARIABLE: Final = "KUBERNETES_SERVICE_HOST"
PORT_VARIABLE: Final = "KUBERNETES_SERVICE_PORT"
#: Characters besides letters, digits and "_.-~" that a header name may have; "%" begins an escape.
_SAFE: Final = "!#$&'*+^`|"
#: The extension of a cluster that is passed to exec plugins.
_EXEC_EXTENSION: Final = "client.authentication.k8s.io/exec"
#: Replacements of the auth-providers that client-go has, or had.
_EXEC_PLUGINS: Final = {
    "oidc": "kubelogin (`kubectl oidc-login get-token`) as exec plugin",
    "gcp": "gke-gcloud-auth-plugin as exec plugin",
    "azure": "kubelogin as exec plugin",
    "openstack": "client-keystone-auth as exec plugin",
}


class _Extension(msgspec.Struct):
    name: str
    extension: Any = None


class _Cluster(msgspec.Struct, rename="kebab"):
    server: str = ""
    tls_server_name: str = ""
    insecure_skip_tls_verify: bool = False
    certificate_authority: str = ""
    certificate_authority_data: str = ""
    proxy_url: str = ""
    extensions: list[_Extension] | None = None


class _AuthProvider(msgspec.Struct):
    name: str = ""


class _User(msgspec.Struct, rename="kebab"):
    client_certificate: str = ""
    client_certificate_data: str = ""
    client_key: str = ""
    client_key_data: str = ""
    token: str = ""
    token_file: str = msgspec.field(name="tokenFile", default="")
    as_user: str = msgspec.field(name="as", default="")
    as_uid: str = ""
    as_groups: list[str] | None = None
    as_user_extra: dict[str, list[str]] | None = None
    username: str = ""
    password: str = ""
    auth_provider: _AuthProvider | None = None
    exec: ExecPlugin | None = None


class _Context(msgspec.Struct):
    cluster: str = ""
    user: str = ""
    namespace: str = ""


class _NamedCluster(msgspec.Struct):
    name: str
    cluster: _Cluster


class _NamedUser(msgspec.Struct):
    name: str
    user: _User | None = None


class _NamedContext(msgspec.Struct):
    name: str
    context: _Context


class _File(msgspec.Struct, rename="kebab"):
    """One kubeconfig as written."""

    current_context: str | None = None
    clusters: list[_NamedCluster] | None = None
    users: list[_NamedUser] | None = None
    contexts: list[_NamedContext] | None = None


class Login(msgspec.Struct, frozen=True):
    """Address and credentials of a server, as configured. PEM in bytes; empty: not given."""

    server: str = ""
    authorities: bytes = b""
    authorities_file: str = ""
    verify: bool = True
    tls_server_name: str = ""
    proxy: str = ""
    certificate: bytes = b""
    certificate_file: str = ""
    key: bytes = b""
    key_file: str = ""
    token: str = ""
    token_file: str = ""
    username: str = ""
    password: str = ""
    #: headers for impersonation
    impersonation: tuple[tuple[str, str], ...] = ()
    plugin: ExecPlugin | None = None
    #: passed to the plugin if it wants it
    plugin_config: Any = None
    #: default namespace; empty: `default`
    namespace: str = ""
    #: address of a scheduler's pages, if the file has one
    pages: str = ""


def read_kubeconfigs(paths: Iterable[Path], context: str = "") -> Login:
    """The login of a context, "" for the current one. Raises ConnectError with one line."""
    merged = _Merged()
    for path in paths:
        merged.add(path)
    return merged.login(context)


def service_account() -> Login:
    """The login of this pod. Raises ConnectError."""
    host, port = os.environ.get(HOST_VARIABLE, ""), os.environ.get(PORT_VARIABLE, "")
    if not port:
        raise ConnectError(f"{HOST_VARIABLE} is set but {PORT_VARIABLE} is not; is this a pod?")
    try:
        namespace = (SERVICE_ACCOUNT / "namespace").read_text(encoding="utf-8").strip()
    except OSError:
        namespace = ""
    return Login(
        server=f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}",
        authorities_file=str(SERVICE_ACCOUNT / "ca.crt"),
        token_file=str(SERVICE_ACCOUNT / "token"),
        namespace=namespace,
    )


class _Merged:
    """Merged files: name -> entry, of which the first counts."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.current = ""
        self.clusters: dict[str, _Cluster] = {}
        self.users: dict[str, _User] = {}
        self.contexts: dict[str, _Context] = {}

    def add(self, path: Path) -> None:
        self.names.append(str(path))
        try:
            document = _document(path)
            file = parse(partial(msgspec.convert, type=_File), {} if document is None else document)
        except OSError as error:
            raise ConnectError(f"kubeconfig {path} cannot be read: {error.strerror}") from error
        except MalformedError as error:
            raise ConnectError(f"kubeconfig {path} cannot be read: {error}") from error
        self.current = self.current or file.current_context or ""
        clusters = {entry.name: entry.cluster for entry in file.clusters or ()}
        users = {entry.name: entry.user or _User() for entry in file.users or ()}
        contexts = {entry.name: entry.context for entry in file.contexts or ()}
        for what, listed, found in (
            ("clusters", file.clusters, clusters),
            ("users", file.users, users),
            ("contexts", file.contexts, contexts),
        ):
            if len(listed or ()) > len(found):
                raise ConnectError(f"kubeconfig {path}: two {what} have one name; rename one")
        _start_at(path.parent.absolute(), clusters.values(), users.values())
        self.clusters = {**clusters, **self.clusters}
        self.users = {**users, **self.users}
        self.contexts = {**contexts, **self.contexts}

    def login(self, context: str) -> Login:
        name = context or self.current
        if not name and not self.contexts:
            return Login()  # --master alone may suffice
        where = f"kubeconfig {':'.join(self.names)}"
        if not name:
            raise ConnectError(
                f"{where} has no current-context; kubectl config use-context sets one"
            )
        if name not in self.contexts:
            raise ConnectError(f"{where} has no context {name!r}; correct current-context")
        chosen = self.contexts[name]
        if chosen.cluster not in self.clusters:
            raise ConnectError(f"{where}: context {name!r} names cluster {chosen.cluster!r}: none")
        if chosen.user and chosen.user not in self.users:  # kubectl does not warn
            log.warning("%s has no user %r: requests are unauthenticated", where, chosen.user)
        cluster = self.clusters[chosen.cluster]
        if not cluster.server:
            raise ConnectError(f"{where}: cluster {chosen.cluster!r} names no `server`")
        user = self.users.get(chosen.user) or _User()
        where, who = f"{where}: cluster {chosen.cluster!r}", f"user {chosen.user!r}"
        login = _login(cluster, user, where, who)
        return replace(login, namespace=chosen.namespace, pages=_pages(cluster))


def _pages(cluster: _Cluster) -> str:
    """The cluster's extension {"server": URL}, or empty."""
    for extension in cluster.extensions or ():
        if extension.name == names.PAGES_EXTENSION and isinstance(extension.extension, dict):
            return str(extension.extension.get("server") or "")
    return ""


def _start_at(folder: Path, clusters: Iterable[_Cluster], users: Iterable[_User]) -> None:
    """Make relative paths absolute."""
    for cluster in clusters:
        cluster.certificate_authority = _joined(folder, cluster.certificate_authority)
    for user in users:
        user.client_certificate = _joined(folder, user.client_certificate)
        user.client_key = _joined(folder, user.client_key)
        user.token_file = _joined(folder, user.token_file)
        if user.exec is not None and os.sep in user.exec.command:  # else found on PATH
            user.exec.command = _joined(folder, user.exec.command)


def _joined(folder: Path, path: str) -> str:
    return str(folder / path) if path else ""


def _login(cluster: _Cluster, user: _User, where: str, who: str) -> Login:
    has_authority = cluster.certificate_authority or cluster.certificate_authority_data
    if cluster.insecure_skip_tls_verify and has_authority:
        raise ConnectError(
            f"{where}: certificate-authority and insecure-skip-tls-verify exclude each other;"
            " remove one"
        )
    if user.auth_provider is not None:
        name = user.auth_provider.name
        plugin = _EXEC_PLUGINS.get(name, "an exec plugin, a token file or a client certificate")
        raise ConnectError(f"{who}: auth-provider {name!r} is not supported; use {plugin}")
    if (user.token or user.token_file) and (user.username or user.password):
        raise ConnectError(f"{who} has a token and a password; only one is allowed")
    config = None
    if user.exec is not None:
        check(user.exec)
        extensions = {extension.name: extension.extension for extension in cluster.extensions or ()}
        config = extensions.get(_EXEC_EXTENSION)
    return Login(
        server=cluster.server,
        authorities=_data(cluster.certificate_authority_data, where, "certificate-authority-data"),
        authorities_file=cluster.certificate_authority,
        verify=not cluster.insecure_skip_tls_verify,
        tls_server_name=cluster.tls_server_name,
        proxy=checked(cluster.proxy_url, f"{where}: proxy-url") if cluster.proxy_url else "",
        certificate=_data(user.client_certificate_data, who, "client-certificate-data"),
        certificate_file=user.client_certificate,
        key=_data(user.client_key_data, who, "client-key-data"),
        key_file=user.client_key,
        token=user.token,
        token_file=user.token_file,
        username=user.username,
        password=user.password,
        impersonation=tuple(_impersonation(user, who)),
        plugin=user.exec,
        plugin_config=config,
    )


#: Content of pipes that were named, as by `--kubeconfig <(...)`: they can be read only once.
_pipes: Final[dict[Path, bytes]] = {}


def _document(path: Path) -> Any:
    """Raises OSError, MalformedError."""
    data = _pipes.get(path)
    if data is None:
        data = file_content(path, FILE_BYTES_MAX)
        if path.is_fifo():
            _pipes[path] = data
    document = parse(yaml.safe_load, data)
    if not _is_small(document):
        raise MalformedError(f"more than {VALUES_MAX} values or {NESTED_MAX} levels")
    return document


def _is_small(document: Any) -> bool:
    """Whether the expanded document is within the bounds: aliases multiply and may be cyclic."""
    unvisited, count = [(document, 0)], 0
    while unvisited:
        value, depth = unvisited.pop()
        count += 1
        if count > VALUES_MAX or depth > NESTED_MAX:
            return False
        inner = (
            value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
        )
        unvisited += [(each, depth + 1) for each in inner]
    return True


def _data(text: str, where: str, name: str) -> bytes:
    try:
        return b64decode("".join(text.split()), validate=True)
    except (Base64Error, ValueError) as error:
        raise ConnectError(f"{where}: {name} is not base64: {error}") from error


def _impersonation(user: _User, who: str) -> Iterable[tuple[str, str]]:
    """The headers of `as`, `as-uid`, `as-groups` and `as-user-extra`."""
    headers = [("Impersonate-User", user.as_user)] if user.as_user else []
    if user.as_uid:
        headers.append(("Impersonate-Uid", user.as_uid))
    headers += [("Impersonate-Group", group) for group in user.as_groups or ()]
    for key, values in (user.as_user_extra or {}).items():
        name = f"Impersonate-Extra-{quote(key, safe=_SAFE)}"
        headers += [(name, value) for value in values]
    if headers and not user.as_user:
        raise ConnectError(f"{who} impersonates groups, a uid or more without a user; add `as`")
    if any(not value.isprintable() for _, value in headers):
        raise ConnectError(f"{who} impersonates a name with unprintable characters")
    return headers
