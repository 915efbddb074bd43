"""Python interface of what-if runs: the engine of `asched simulate`.

    from asched_lab.whatif.api import live, read, simulate

    cluster = read("cluster.json.gz")          # of asched snapshot, or kubectl get -o json
    cluster = live(context="staging")          # or as it is now, with your own rights
    result = simulate(cluster, [deployment], replicas=40, like={"node-1": 2}, drain=["node-7"])
    for place in result.pending:
        print(place.pod, place.why)            # in kube-scheduler's words

Nothing is written to the cluster, and one snapshot serves any number of simulations.
"""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from asched.host.user_plugins.catalogue import Catalogue, of_class
from asched.kube.session import ConnectionOptions
from asched_lab.whatif.changes import Scenario, ScenarioError
from asched_lab.whatif.engine import scheduler_of, suppose
from asched_lab.whatif.manifests import check_manifest
from asched_lab.whatif.objects import ObjectError, SnapshotError, title
from asched_lab.whatif.picture import picture
from asched_lab.whatif.result import Difference, Place, Result, differences
from asched_lab.whatif.snapshot import Snapshot, snapshot_of
from asched_lab.whatif.snapshot import read as read_stream

__all__ = (
    "Difference",
    "Place",
    "Result",
    "ScenarioError",
    "Snapshot",
    "SnapshotError",
    "differences",
    "live",
    "picture",
    "read",
    "simulate",
)


def read(file: Path | str) -> Snapshot:
    """Read a cluster from a file. Raises OSError, SnapshotError."""
    with Path(file).open("rb") as stream:
        return read_stream(stream, str(file))


def live(*, kubeconfig: str = "", context: str = "") -> Snapshot:
    """Take a snapshot of the live cluster. Not to be called on a running event loop. Raises
    `asched.kube.errors.ClientError`, SnapshotError.
    """
    options = ConnectionOptions(kubeconfig=kubeconfig, context=context)
    return asyncio.run(snapshot_of(options))


def simulate(
    cluster: Snapshot,
    manifests: Iterable[Mapping[str, Any]] = (),
    *,
    replicas: int | None = None,
    namespace: str = "",
    like: Mapping[str, int] | None = None,
    drain: Sequence[str] = (),
    lose: Sequence[str] = (),
    config: Path | str = "",
    plugins: Sequence[type[Any]] = (),
    without_extenders: bool = False,
    seed: int = 0,
) -> Result:
    """Simulate. Arguments are those of `asched simulate`; `plugins` are classes.

    Raises ScenarioError, also for unknown fields of manifests, SnapshotError for an object of the
    cluster, and the errors of an unusable configuration.
    """
    workloads = tuple(map(_checked, manifests))
    scenario = Scenario(dict(like or {}), tuple(drain), tuple(lose), workloads, replicas, namespace)
    scheduler = scheduler_of(
        cluster,
        workloads,
        str(config),
        plugins=Catalogue([of_class(cls, cls.__module__) for cls in plugins]),
        without_extenders=without_extenders,
        seed=seed,
    )
    return suppose(cluster, scenario, scheduler)


def _checked(manifest: Mapping[str, Any]) -> dict[str, Any]:
    try:
        checked, unknown = check_manifest(manifest)
    except ObjectError as error:
        raise ScenarioError(str(error)) from None
    if unknown:
        raise ScenarioError(f"{title(manifest)}: unknown fields: {', '.join(unknown)}")
    return checked
