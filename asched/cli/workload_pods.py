"""Choose a pod of a workload, for commands about one pod: a waiting one, else the newest."""

import argparse
from collections.abc import Iterator, Mapping
from typing import Any, Final

from asched.cli.pages import PageError, quoted
from asched.kube.errors import ClientError, NotFound
from asched.kube.session import ConnectionOptions, Session, connect

PODS_MAX: Final = 500
#: Words that may precede a name, with group version and plural.
WORKLOADS: Final = {
    word: path
    for words, path in (
        ("deploy deployment deployments", "/apis/apps/v1/namespaces/{}/deployments/{}"),
        ("rs replicaset replicasets", "/apis/apps/v1/namespaces/{}/replicasets/{}"),
        ("sts statefulset statefulsets", "/apis/apps/v1/namespaces/{}/statefulsets/{}"),
        ("ds daemonset daemonsets", "/apis/apps/v1/namespaces/{}/daemonsets/{}"),
        ("job jobs", "/apis/batch/v1/namespaces/{}/jobs/{}"),
    )
    for word in words.split()
}


async def pod_of_workload(
    args: argparse.Namespace, word: str, namespace: str, name: str
) -> tuple[str, str]:
    """Namespace and name of a pod. `word` is a key of WORKLOADS. Raises PageError."""
    try:
        options = ConnectionOptions(kubeconfig=args.kubeconfig, context=args.context)
        session = await connect(options, handshake=False)
    except ClientError as error:
        raise PageError(str(error)) from error
    namespace = namespace or session.credentials.namespace
    try:
        return namespace, await _chosen(session, word, namespace, name)
    except NotFound:
        raise PageError(
            f"{word} {namespace}/{name} does not exist; check name and namespace"
        ) from None
    except ClientError as error:
        raise PageError(f"cannot read {word} {namespace}/{name} and its pods: {error}") from error
    finally:
        await session.close()


async def _chosen(session: Session, word: str, namespace: str, name: str) -> str:
    path = WORKLOADS[word].format(quoted(namespace), quoted(name))
    owner = await session.get_as(path, dict[str, Any])
    selector = ",".join(_terms((owner.get("spec") or {}).get("selector") or {}))
    listed = await pods_of(session, namespace, selector)
    if not selector or not listed:
        raise PageError(f"{word} {namespace}/{name} has no pods")
    waiting = [pod for pod in listed if not (pod.get("spec") or {}).get("nodeName")]
    if waiting:
        return _named(min(waiting, key=_created))
    return _named(max(listed, key=_created))


async def pods_of(session: Session, namespace: str, selector: str = "") -> list[dict[str, Any]]:
    """The first PODS_MAX pods of a namespace. Raises ClientError."""
    query = f"limit={PODS_MAX}&labelSelector={quoted(selector)}"
    path = f"/api/v1/namespaces/{quoted(namespace)}/pods?{query}"
    return (await session.get_as(path, dict[str, Any])).get("items") or []


def _created(pod: Mapping[str, Any]) -> tuple[str, str]:
    return pod["metadata"].get("creationTimestamp") or "", _named(pod)


def _named(pod: Mapping[str, Any]) -> str:
    return str(pod["metadata"]["name"])


def _terms(selector: Mapping[str, Any]) -> Iterator[str]:
    """A LabelSelector in the form of a query."""
    for key, value in (selector.get("matchLabels") or {}).items():
        yield f"{key}={value}"
    for rule in selector.get("matchExpressions") or ():
        values = ",".join(rule.get("values") or ())
        yield {
            "In": f"{rule['key']} in ({values})",
            "NotIn": f"{rule['key']} notin ({values})",
            "Exists": rule["key"],
            "DoesNotExist": f"!{rule['key']}",
        }[rule["operator"]]
