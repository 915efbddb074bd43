"""Certificates and kubeconfigs in the manner of kubeadm, valid for 30 days."""

import base64
import datetime as dt
import ipaddress
import json
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from realcluster.settings import API_ADDRESS, KUBERNETES_SERVICE, NODES, node_address

VALID = dt.timedelta(days=30)
API_NAMES = (
    "localhost",
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
    "127.0.0.1",
    API_ADDRESS,
    KUBERNETES_SERVICE,
)
#: Files of clients: common name and, where it has one, organization.
CLIENTS = {
    "admin": ("kubernetes-admin", "system:masters"),
    "controllers": ("system:kube-controller-manager", ""),
    "scheduler": ("system:kube-scheduler", ""),
    "proxy": ("system:kube-proxy", ""),
    **{f"node{n}": (f"system:node:node{n}", "system:nodes") for n in NODES},
}


class Authority:
    """A certificate authority, whose files and whose clients' files are written to a folder."""

    def __init__(self, folder: Path, name: str) -> None:
        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        builder = self._builder(self._name, self._key.public_key())
        constraint = x509.BasicConstraints(ca=True, path_length=None)
        self._write(name, self._key, builder.add_extension(constraint, critical=True))

    def client(self, file: str, common: str, organization: str = "") -> None:
        usage = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH])
        self._issue(file, common, organization, usage)

    def server(self, file: str, common: str, names: tuple[str, ...]) -> None:
        alternatives = x509.SubjectAlternativeName([_general_name(name) for name in names])
        self._issue(file, common, "", alternatives)

    def _issue(
        self, file: str, common: str, organization: str, extension: x509.ExtensionType
    ) -> None:
        attributes = [x509.NameAttribute(NameOID.COMMON_NAME, common)]
        if organization:
            attributes.insert(0, x509.NameAttribute(NameOID.ORGANIZATION_NAME, organization))
        key = ec.generate_private_key(ec.SECP256R1())
        builder = self._builder(x509.Name(attributes), key.public_key())
        self._write(file, key, builder.add_extension(extension, critical=False))

    def _builder(
        self, subject: x509.Name, key: ec.EllipticCurvePublicKey
    ) -> x509.CertificateBuilder:
        now = dt.datetime.now(dt.UTC)
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - dt.timedelta(minutes=5))
            .not_valid_after(now + VALID)
        )

    def _write(
        self, file: str, key: ec.EllipticCurvePrivateKey, builder: x509.CertificateBuilder
    ) -> None:
        certificate = builder.sign(self._key, hashes.SHA256())
        pem = certificate.public_bytes(serialization.Encoding.PEM)
        (self._folder / f"{file}.crt").write_bytes(pem)
        _write_key(self._folder / f"{file}.key", key)


def write_certificates(folder: Path) -> None:
    """Write everything that the programs of the cluster read."""
    folder.mkdir(parents=True, exist_ok=True)
    authority = Authority(folder, "ca")
    authority.server("api", "kube-apiserver", API_NAMES)
    authority.client("kubelet-client", "kube-apiserver-kubelet-client", "system:masters")
    for file, (common, organization) in CLIENTS.items():
        authority.client(file, common, organization)
        _write_kubeconfig(folder, file)
    for number in NODES:
        names = (f"node{number}", node_address(number))
        authority.server(f"node{number}-serving", f"system:node:node{number}", names)
    Authority(folder, "front-proxy-ca").client("front-proxy-client", "front-proxy-client")
    _write_key(folder / "accounts.key", rsa.generate_private_key(65537, 2048))


def _write_key(path: Path, key: ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey) -> None:
    pem = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.TraditionalOpenSSL,
        serialization.NoEncryption(),
    )
    path.touch(mode=0o600)
    path.write_bytes(pem)


def _write_kubeconfig(folder: Path, file: str) -> None:
    def data(name: str) -> str:
        return base64.b64encode((folder / name).read_bytes()).decode()

    cluster = {
        "server": f"https://{API_ADDRESS}:6443",
        "certificate-authority-data": data("ca.crt"),
    }
    user = {
        "client-certificate-data": data(f"{file}.crt"),
        "client-key-data": data(f"{file}.key"),
    }
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "it",
        "clusters": [{"name": "it", "cluster": cluster}],
        "users": [{"name": "it", "user": user}],
        "contexts": [{"name": "it", "context": {"cluster": "it", "user": "it"}}],
    }
    (folder / f"{file}.kubeconfig").write_text(json.dumps(document), encoding="utf-8")


def _general_name(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)
