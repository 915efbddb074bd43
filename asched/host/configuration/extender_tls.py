"""Check the certificates of an extender: kube-scheduler's errors for its TLS settings.

Rules   data takes precedence over files; nothing is checked unless TLS is configured; a CA together
        with `insecure` is refused; `enableHTTPS` without a CA means `insecure`, as upstream.
Source  kubernetes/kubernetes v1.36 pkg/scheduler/extender.go, k8s.io/client-go/transport
"""

from typing import Final

from asched.core.config.v1 import Extender, ExtenderTLSConfig
from asched.kube.files import file_content

_PEM_START: Final = b"-----BEGIN "
_CA_FAULT: Final = "unable to load root certificates: "


class _FaultError(Exception):
    """One line with the error."""


def fault_of(extender: Extender) -> str | None:
    """kube-scheduler's error for this extender's TLS settings, or None."""
    tls = extender.tls_config or ExtenderTLSConfig()
    has_ca = bool(tls.ca_data or tls.ca_file)
    has_pair = bool((tls.cert_data or tls.cert_file) and (tls.key_data or tls.key_file))
    insecure = tls.insecure or (extender.enable_https and not has_ca)
    if not (has_ca or has_pair or insecure or tls.server_name):
        return None
    if has_ca and insecure:
        return "specifying a root certificates file with the insecure flag is not allowed"
    try:
        ca, cert, key = (
            data or _file(name)
            for data, name in (
                (tls.ca_data, tls.ca_file),
                (tls.cert_data, tls.cert_file),
                (tls.key_data, tls.key_file),
            )
        )
        if has_ca:
            _check_ca(ca)
        if has_pair:
            _check_pair(cert, key)
    except _FaultError as error:
        return str(error)
    return None


def _file(name: str) -> bytes:
    if not name:
        return b""
    try:
        return file_content(name)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise _FaultError(f"open {name}: {reason}") from error


def _check_ca(data: bytes) -> None:
    from cryptography import x509  # 40 ms, rarely needed

    if _PEM_START not in data:
        raise _FaultError(f"{_CA_FAULT}unable to parse bytes as PEM block")
    try:
        x509.load_pem_x509_certificates(data)
    except ValueError as error:
        raise _FaultError(f"{_CA_FAULT}failed to parse certificate: {error}") from error


def _check_pair(cert: bytes, key: bytes) -> None:
    from cryptography import x509
    from cryptography.hazmat.primitives import serialization

    for data, what in ((cert, "certificate"), (key, "key")):
        if _PEM_START not in data:
            raise _FaultError(f"tls: failed to find any PEM data in {what} input")
    try:
        public = x509.load_pem_x509_certificates(cert)[0].public_key()
        private = serialization.load_pem_private_key(key, None)
    except (ValueError, TypeError) as error:
        raise _FaultError(f"tls: failed to parse certificate or key: {error}") from error
    form = serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
    if private.public_key().public_bytes(*form) != public.public_bytes(*form):
        raise _FaultError("tls: private key does not match public key")
