"""Sockets of outgoing connections, and messages for failed connections."""

import socket
import ssl
from typing import Final

#: client-go pings a silent HTTP/2 connection after 30 s; here TCP keep-alive detects dead peers.
KEEPALIVE_IDLE_S: Final = 30
KEEPALIVE_INTERVAL_S: Final = 10
KEEPALIVE_PROBES: Final = 3


def set_keepalive(made: socket.socket) -> None:
    """Enable TCP keep-alive; options that a platform lacks are left out."""
    made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in (
        ("TCP_KEEPIDLE", KEEPALIVE_IDLE_S),
        ("TCP_KEEPINTVL", KEEPALIVE_INTERVAL_S),
        ("TCP_KEEPCNT", KEEPALIVE_PROBES),
    ):
        if hasattr(socket, option):
            made.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)


def connect_problem(error: BaseException, cure: str = "check the kubeconfig's CA") -> str:
    """Why a connection failed, for a user; `cure` is the advice for untrusted certificates."""
    cause = getattr(error, "certificate_error", None) or getattr(error, "os_error", None) or error
    if isinstance(cause, ssl.SSLCertVerificationError):
        return f"its certificate is not trusted ({cause.verify_message}); {cure}"
    if isinstance(cause, ssl.SSLError):
        return f"TLS failed ({cause.reason or cause})"
    if isinstance(cause, ConnectionRefusedError):
        return "connection refused"
    if isinstance(cause, socket.gaierror):
        return f"unknown host ({cause.strerror})"
    return str(getattr(cause, "strerror", None) or cause) or type(cause).__name__
