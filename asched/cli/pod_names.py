"""Names of pods for completion. A cluster that cannot be read, or does not answer soon, has none.

Bounds  `workload_pods.PODS_MAX` pods are read, in WAIT_S.
"""

import argparse
import asyncio
from collections.abc import Sequence
from typing import Final

from asched.cli.workload_pods import pods_of
from asched.kube.errors import ClientError
from asched.kube.session import ConnectionOptions, connect

WAIT_S: Final = 3.0


def pod_names(before: Sequence[str], begun: str) -> list[str]:
    """Pods whose NAME or NAMESPACE/NAME begins so, by the flags among the words before."""
    parser = argparse.ArgumentParser(add_help=False, exit_on_error=False)
    parser.add_argument("-n", "--namespace", default="")
    parser.add_argument("--kubeconfig", default="")
    parser.add_argument("--context", default="")
    try:
        flags, _ = parser.parse_known_args(before)
        return asyncio.run(asyncio.wait_for(_names(flags, begun), WAIT_S))
    except (argparse.ArgumentError, ClientError, TimeoutError):
        return []


async def _names(flags: argparse.Namespace, begun: str) -> list[str]:
    namespace, slash, _ = begun.rpartition("/")
    options = ConnectionOptions(kubeconfig=flags.kubeconfig, context=flags.context)
    session = await connect(options, handshake=False)
    try:
        where = namespace or flags.namespace or session.credentials.namespace
        pods = await pods_of(session, where)
    finally:
        await session.close()
    names = (f"{namespace}{slash}{pod['metadata']['name']}" for pod in pods)
    return sorted(name for name in names if name.startswith(begun))
