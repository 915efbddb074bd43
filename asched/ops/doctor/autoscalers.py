"""`asched doctor`: find cluster-autoscaler and Karpenter, and the flags that are wrong for asched.

Rules   an autoscaler is found by the image or program of a Deployment's container. One that a cloud
        provider runs outside the cluster is not found.
Source  kubernetes-sigs/cluster-autoscaler pkg/config/flags, kubernetes-sigs/karpenter
        pkg/operator/options
"""

from collections.abc import Iterable, Iterator
from typing import Any, Final

from asched.core.config.default_plugins import KnownPlugins
from asched.core.config.defaults import default_configuration
from asched.core.config.merge import needed_plugins
from asched.core.config.v1 import SchedulerConfiguration
from asched.kube.errors import ClientError
from asched.names import GROUP_SCALE_UP
from asched.ops.autoscalers import CLUSTER_AUTOSCALER, KARPENTER, exported
from asched.ops.doctor.notes import Finding, JsonObject, State, unreadable
from asched.ops.doctor.reader import ClusterReader

CHECK: Final = "autoscaler"
ALLOWED: Final = "allowed-scheduler-names"
BYPASSED: Final = "bypassed-scheduler-names"
SERVES_REQUESTS: Final = "enable-provisioning-requests"
#: Where each takes what `asched config export` prints.
CONFIG_FLAGS: Final = {CLUSTER_AUTOSCALER: "scheduler-config-file", KARPENTER: "scheduler-config"}
KARPENTER_VARIABLE: Final = "SCHEDULER_CONFIG"


async def check_autoscalers(
    reader: ClusterReader, configuration: SchedulerConfiguration, known: KnownPlugins
) -> list[Finding]:
    """A finding for each wrong flag; none without an autoscaler."""
    try:
        deployments = await reader.items("/apis/apps/v1/deployments")
    except ClientError as error:
        return [unreadable(CHECK, "deployments", error)]
    found = []
    for deployment in deployments:
        metadata, spec = deployment["metadata"], deployment["spec"]
        for container in ((spec.get("template") or {}).get("spec") or {}).get("containers") or ():
            autoscaler = _autoscaler(container)
            if autoscaler and spec.get("replicas", 1) != 0:
                where = f"{autoscaler} {metadata['namespace']}/{metadata['name']}"
                wrong = list(_wrong(where, autoscaler, container, configuration, known))
                found += wrong or [Finding(CHECK, State.OK, f"{where}: no flag is wrong")]
    return found


def _autoscaler(container: JsonObject) -> str:
    """Which autoscaler a container runs; empty if none."""
    image = container.get("image", "").partition("@")[0]
    programs = [image.rpartition("/")[2], *(w.rpartition("/")[2] for w in _words(container)[:1])]
    if any(program.startswith(CLUSTER_AUTOSCALER) for program in programs):
        return CLUSTER_AUTOSCALER
    return KARPENTER if f"/{KARPENTER}" in f"/{image}" else ""


def _words(container: JsonObject) -> list[str]:
    return [*(container.get("command") or ()), *(container.get("args") or ())]


def _lists(words: Iterable[str]) -> dict[str, list[str]]:
    """The values of `--name=a,b`, repeated or not, by name."""
    given: dict[str, list[str]] = {}
    for word in words:
        name, equals, value = word.lstrip("-").partition("=")
        if word.startswith("-"):
            given.setdefault(name, []).extend(value.split(",") if equals else ["true"])
    return given


def _wrong(
    where: str,
    autoscaler: str,
    container: JsonObject,
    configuration: SchedulerConfiguration,
    known: KnownPlugins,
) -> Iterator[Finding]:
    given = _lists(_words(container))
    if autoscaler == KARPENTER:
        variables = {variable.get("name") for variable in container.get("env") or ()}
        given |= {CONFIG_FLAGS[KARPENTER]: [""]} if KARPENTER_VARIABLE in variables else {}
    served = [profile.scheduler_name for profile in configuration.profiles]
    missing = [name for name in served if name not in given[ALLOWED]] if ALLOWED in given else []
    if missing and autoscaler == CLUSTER_AUTOSCALER:
        names = ", ".join(missing)
        text = f"{where}: --{ALLOWED} lacks {names}, so it adds no node for these pods"
        cure = f"add --{ALLOWED}={','.join(missing)}"
        yield Finding(CHECK, State.WARNING, text, cure)
    bypassed = [name for name in served if name in given.get(BYPASSED, ())]
    if bypassed and autoscaler == CLUSTER_AUTOSCALER:
        text = f"{where}: --{BYPASSED} has {', '.join(bypassed)}: it adds nodes for pods that have"
        cure = "take the name out; asched writes the condition that it waits for"
        yield Finding(CHECK, State.WARNING, f"{text} not been tried yet", cure)
    asks = any(GROUP_SCALE_UP in needed_plugins(profile) for profile in configuration.profiles)
    if asks and "true" not in given.get(SERVES_REQUESTS, ()):
        without = f"without --{SERVES_REQUESTS} " if autoscaler == CLUSTER_AUTOSCALER else ""
        text = f"{where}: {without}it serves no request of GroupScaleUp"
        cure = f"set --{SERVES_REQUESTS} of cluster-autoscaler, or remove GroupScaleUp"
        yield Finding(CHECK, State.WARNING, f"{text}; gangs wait until its time limit", cure)
    flag = CONFIG_FLAGS[autoscaler]
    if flag not in given and _decides(autoscaler, configuration, known) != _decides(
        autoscaler, default_configuration(), known
    ):
        text = f"{where}: without --{flag} it decides by other rules than profile {served[0]}"
        cure = f"give it the output of asched config export --for {autoscaler} FILE"
        yield Finding(CHECK, State.WARNING, text, cure)


def _decides(autoscaler: str, configuration: SchedulerConfiguration, known: KnownPlugins) -> Any:
    """What the autoscaler would get of the first profile, its name aside."""
    document, _ = exported(autoscaler, configuration, known, None)
    profiles = (document or {}).get("profiles")
    if profiles is None:
        return document
    plugins = profiles[0]["plugins"]
    filters = {name: plugins.get(name) for name in ("multiPoint", "preFilter", "filter")}
    return filters, profiles[0]["pluginConfig"]
