"""Identify the user of a request: proxy headers, client certificate, bearer token, or anonymous.

Certificates are verified here and not only by TLS, because one of two CAs may have signed the
certificate of a connection: the cluster's client CA, and the front proxy's.

Source  kubernetes/kubernetes v1.36 staging/src/k8s.io/apiserver pkg/authentication/request
"""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote

import msgspec

if TYPE_CHECKING:  # 40 ms, needed for client certificates only
    from cryptography import x509

ANONYMOUS_NAME: Final = "system:anonymous"
AUTHENTICATED: Final = "system:authenticated"
UNAUTHENTICATED: Final = "system:unauthenticated"


class User(msgspec.Struct, frozen=True):
    """An authenticated user, or `ANONYMOUS`."""

    name: str
    groups: tuple[str, ...] = ()
    uid: str = ""
    extra: Mapping[str, tuple[str, ...]] = {}

    def __hash__(self) -> int:
        return hash((self.name, self.groups, self.uid))


ANONYMOUS: Final = User(ANONYMOUS_NAME, (UNAUTHENTICATED,))


def known(
    name: str,
    groups: Sequence[str],
    uid: str = "",
    extra: Mapping[str, tuple[str, ...]] | None = None,
) -> User:
    """An authenticated user."""
    every = tuple(dict.fromkeys((*groups, AUTHENTICATED)))
    return User(name, every, uid, dict(extra or {}))


class RequestHeaders(msgspec.Struct, frozen=True):
    """The headers of a trusted proxy; names in lower case. `allowed_names` empty: any."""

    authorities: str = ""
    allowed_names: tuple[str, ...] = ()
    username: tuple[str, ...] = ()
    group: tuple[str, ...] = ()
    uid: tuple[str, ...] = ()
    extra_prefix: tuple[str, ...] = ()


def by_proxy(
    certificate: "x509.Certificate | None",
    headers: Sequence[tuple[str, str]],
    rules: RequestHeaders,
) -> User | None:
    """The user that a front proxy names, if its certificate permits it."""
    name = next((v for wanted in rules.username for k, v in headers if k == wanted and v), "")
    if not name or certificate is None or not is_signed_by(certificate, rules.authorities):
        return None
    if rules.allowed_names and common_name(certificate) not in rules.allowed_names:
        return None
    extra: dict[str, tuple[str, ...]] = {}
    for key, value in headers:
        for prefix in rules.extra_prefix:
            if key.startswith(prefix.lower()):
                label = unquote(key[len(prefix) :])
                extra[label] = (*extra.get(label, ()), value)
    uid = next((v for wanted in rules.uid for k, v in headers if k == wanted and v), "")
    return known(name, [v for k, v in headers if k in rules.group], uid, extra)


def by_certificate(certificate: "x509.Certificate | None", authorities: str) -> User | None:
    """The subject of a client certificate: common name and organizations."""
    if certificate is None or not is_signed_by(certificate, authorities):
        return None
    from cryptography.x509.oid import NameOID

    groups = [
        str(attribute.value)
        for attribute in certificate.subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)
    ]
    return known(common_name(certificate), groups)


def common_name(certificate: "x509.Certificate") -> str:
    from cryptography.x509.oid import NameOID

    names = certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    return str(names[0].value) if names else ""


def is_signed_by(certificate: "x509.Certificate", authorities: str) -> bool:
    """Whether one of these CAs (PEM) issued it for clients, and it is valid now."""
    from cryptography import x509
    from cryptography.exceptions import InvalidSignature
    from cryptography.x509.oid import ExtendedKeyUsageOID

    now = datetime.now(UTC)
    if not certificate.not_valid_before_utc <= now <= certificate.not_valid_after_utc:
        return False
    try:
        usage = certificate.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    except x509.ExtensionNotFound:
        return False
    if not {ExtendedKeyUsageOID.CLIENT_AUTH, ExtendedKeyUsageOID.ANY_EXTENDED_KEY_USAGE} & set(
        usage
    ):
        return False
    if "-----BEGIN" not in authorities:
        return False
    for authority in x509.load_pem_x509_certificates(authorities.encode()):
        try:
            certificate.verify_directly_issued_by(authority)
        except (ValueError, TypeError, InvalidSignature):
            continue
        return True
    return False
