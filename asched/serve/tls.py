"""The serving certificate: from files, from a directory, or self-signed; reloaded when changed.

Without files a certificate for localhost is made in memory; with a directory (`--cert-dir`) it is
stored there as asched.crt and asched.key. Further certificates are selected by the name that the
client sends (SNI). A changed file takes effect for the next connection; if it cannot be read, the
previous one stays in use and an error is logged.

Client certificates are requested if a CA is known. Unlike Go, OpenSSL ends the handshake for a
client whose certificate no known CA has signed.

Source  kubernetes/kubernetes v1.36 staging/src/k8s.io/apiserver pkg/server/options/serving.go
"""

import logging
import ssl
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from asched.kube.certificates import (
    LOOPBACK,
    certificate_names,
    load_pem,
    self_signed,
    trust_as_go,
)
from asched.kube.files import file_content, file_versions, write_private
from asched.serve.options import CannotServeError, ServingOptions

log = logging.getLogger("asched.serve")

FILE_NAME: Final = "asched"
UNSPECIFIED: Final = ("", "0.0.0.0", "::")  # noqa: S104 - compared, not bound

_VERSIONS: Final = {
    "VersionTLS10": ssl.TLSVersion.TLSv1,
    "VersionTLS11": ssl.TLSVersion.TLSv1_1,
    "VersionTLS12": ssl.TLSVersion.TLSv1_2,
    "VersionTLS13": ssl.TLSVersion.TLSv1_3,
}
#: OpenSSL's spelling of parts of Go's names of cipher suites.
_CIPHERS: Final = {
    "AES_128_GCM": "AES128-GCM",
    "AES_256_GCM": "AES256-GCM",
    "AES_128_CBC": "AES128",
    "AES_256_CBC": "AES256",
    "CHACHA20_POLY1305": "CHACHA20-POLY1305",
    "3DES_EDE_CBC": "DES-CBC3",
    "RC4_128": "RC4",
}


class Certificates:
    """The TLS side of the port. `context` is for the server; call `refresh` periodically."""

    def __init__(self, options: ServingOptions) -> None:
        self._options = options
        self._authorities = ""
        self._made: tuple[bytes, bytes] | None = None
        self._files = self._chosen_files()
        named = (*(self._files or ()), *(f for *pair, _ in options.tls_sni_cert_key for f in pair))
        self._seen = file_versions(named)
        self.context = _bare_context(options)
        self._load(self.context)

    def refresh(self) -> bool:
        """Reload changed files; returns whether any has changed."""
        versions = file_versions(self._seen)
        if versions == self._seen:
            return False
        self._seen = versions
        try:
            self._load(self.context)
        except CannotServeError as error:
            log.error("The serving certificate was not reloaded: %s", error)  # noqa: TRY400
            return False
        log.info("Reloaded the serving certificate")
        return True

    def trust(self, authorities: str) -> None:
        """Request client certificates of these CAs (PEM). Raises CannotServeError."""
        if authorities == self._authorities or not authorities:
            return
        self._authorities = authorities
        try:
            # A bundle may contain comments with any bytes.
            bundle = authorities.encode("ascii", "ignore").decode()
            self.context.load_verify_locations(cadata=bundle)
        except (ssl.SSLError, ValueError) as error:
            raise CannotServeError(f"the client CA bundle cannot be read: {error}") from error
        self.context.verify_mode = ssl.CERT_OPTIONAL

    def _chosen_files(self) -> tuple[str, str] | None:
        options = self._options
        if options.tls_cert_file:
            return options.tls_cert_file, options.tls_private_key_file
        if not options.cert_dir:
            return None
        folder = Path(options.cert_dir)
        files = str(folder / f"{FILE_NAME}.crt"), str(folder / f"{FILE_NAME}.key")
        if not all(Path(file).exists() for file in files):
            certificate, key = self_signed(_names(options.bind_address))
            try:
                folder.mkdir(parents=True, exist_ok=True)
                Path(files[0]).write_bytes(certificate)
                write_private(files[1], key)
            except OSError as error:
                raise CannotServeError(
                    f"cannot keep the serving certificate in {folder}: {error.strerror};"
                    " choose another --cert-dir or give --tls-cert-file"
                ) from error
        return files

    def _load(self, context: ssl.SSLContext) -> None:
        if self._files is None:
            if self._made is None:
                self._made = self_signed(_names(self._options.bind_address))
            load_pem(context, *self._made)
        else:
            _load_files(context, *self._files)
        named: dict[str, ssl.SSLContext] = {}
        for cert_file, key_file, names in self._options.tls_sni_cert_key:
            other = _bare_context(self._options)
            _load_files(other, cert_file, key_file)
            for name in names or certificate_names(file_content(cert_file)):
                named.setdefault(name.lower(), other)
        if named:
            context.sni_callback = _chooser(named)  # type: ignore[assignment]


def _chooser(named: dict[str, ssl.SSLContext]) -> object:
    """Select by the name in SNI; `*.example.com` covers one label."""

    def choose(connection: ssl.SSLObject, name: str | None, _: ssl.SSLContext) -> None:
        asked = (name or "").lower()
        other = named.get(asked) or named.get("*." + asked.partition(".")[2])
        if other is not None:
            connection.context = other

    return choose


def _bare_context(options: ServingOptions) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    trust_as_go(context)
    context.minimum_version = _VERSIONS.get(options.tls_min_version, ssl.TLSVersion.TLSv1_2)
    suites = openssl_suites(options.tls_cipher_suites)
    if suites:
        try:
            context.set_ciphers(":".join(suites))
        except ssl.SSLError as error:
            raise CannotServeError(
                f"none of --tls-cipher-suites can be served by this OpenSSL ({error})"
            ) from error
    return context


def openssl_suites(names: Sequence[str]) -> list[str]:
    """OpenSSL's names of Go's cipher suites; those of TLS 1.3 are always on and left out."""
    suites = []
    for name in names:
        exchange, with_, rest = name.removeprefix("TLS_").partition("_WITH_")
        if not with_:
            continue
        cipher, _, digest = rest.rpartition("_")
        if cipher not in _CIPHERS:  # CHACHA20_POLY1305 may lack its digest
            cipher, digest = rest, ""
        parts = [exchange.replace("_", "-")] if exchange != "RSA" else []
        parts.append(_CIPHERS[cipher])
        if digest and not cipher.startswith("CHACHA20"):
            parts.append(digest)
        suites.append("-".join(parts))
    return suites


def _load_files(context: ssl.SSLContext, cert_file: str, key_file: str) -> None:
    try:
        load_pem(context, file_content(cert_file), file_content(key_file))
    except (OSError, ssl.SSLError) as error:
        why = getattr(error, "reason", None) or error.strerror or str(error)
        raise CannotServeError(
            f"cannot serve with certificate {cert_file} and key {key_file}: {why}"
        ) from error


def _names(bind_address: str) -> list[str]:
    own = () if bind_address in UNSPECIFIED else (bind_address,)
    return [*dict.fromkeys((*LOOPBACK, *own))]
