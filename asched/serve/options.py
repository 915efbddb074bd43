"""Options of the serving port, by kube-scheduler's flags.

Names are those of the flags; times are in seconds, empty means "not given".
"""

from collections.abc import Callable, Mapping
from typing import Final

import msgspec

from asched.core.config.versions import BASE

#: kube-scheduler's default port, HTTPS only.
SECURE_PORT: Final = 10259
ALWAYS_ALLOWED: Final = ("/healthz", "/readyz", "/livez")
CACHE_TTL_S: Final = 10.0


class CannotServeError(Exception):
    """A certificate, key, address or port that cannot be used: one line."""


class ServingOptions(msgspec.Struct, frozen=True):
    """The HTTPS port; 0 serves nothing. `tls_sni_cert_key` are (certificate file, key file,
    names).
    """

    bind_address: str = "0.0.0.0"  # noqa: S104 - kube-scheduler's default; probes come from outside
    cert_dir: str = ""
    permit_port_sharing: bool = False
    secure_port: int = SECURE_PORT
    tls_cert_file: str = ""
    tls_cipher_suites: tuple[str, ...] = ()
    tls_min_version: str = ""
    tls_private_key_file: str = ""
    tls_sni_cert_key: tuple[tuple[str, str, tuple[str, ...]], ...] = ()


class AuthenticationOptions(msgspec.Struct, frozen=True):
    authentication_kubeconfig: str = ""
    authentication_skip_lookup: bool = False
    authentication_token_webhook_cache_ttl: float = CACHE_TTL_S
    authentication_tolerate_lookup_failure: bool = True
    client_ca_file: str = ""
    requestheader_allowed_names: tuple[str, ...] = ()
    requestheader_client_ca_file: str = ""
    requestheader_extra_headers_prefix: tuple[str, ...] = ("x-remote-extra-",)
    requestheader_group_headers: tuple[str, ...] = ("x-remote-group",)
    requestheader_uid_headers: tuple[str, ...] = ()
    requestheader_username_headers: tuple[str, ...] = ("x-remote-user",)


class AuthorizationOptions(msgspec.Struct, frozen=True):
    authorization_always_allow_paths: tuple[str, ...] = ALWAYS_ALLOWED
    authorization_kubeconfig: str = ""
    authorization_webhook_cache_authorized_ttl: float = CACHE_TTL_S
    authorization_webhook_cache_unauthorized_ttl: float = CACHE_TTL_S


class AccessOptions(msgspec.Struct, frozen=True):
    authentication: AuthenticationOptions = msgspec.field(default_factory=AuthenticationOptions)
    authorization: AuthorizationOptions = msgspec.field(default_factory=AuthorizationOptions)


class ServingPlan(msgspec.Struct, frozen=True):
    """What to serve; /flagz shows `flags`, the live view the version, and paths in `hidden` are not
    found.
    """

    options: ServingOptions = msgspec.field(default_factory=lambda: ServingOptions(secure_port=0))
    access: AccessOptions = msgspec.field(default_factory=AccessOptions)
    flags: Mapping[str, str] = msgspec.field(default_factory=dict)
    hidden: frozenset[str] = frozenset()
    version: Callable[[], str] = str

    @property
    def is_on(self) -> bool:
        return self.options.secure_port != 0

    @property
    def rules(self) -> str:
        """The minor version whose rules decide, as /flagz has it."""
        return self.flags.get("emulated-version", "").strip("[]") or BASE
