"""Configuration documents, what they decode to and what is wrong with them."""

from typing import Any

from asched.core.config.defaults import configuration
from asched.core.config.gates import DEFAULT_GATES
from asched.core.config.v1 import API_VERSION, KIND
from asched.core.config.validate import validate


def doc(**fields: Any) -> dict[str, Any]:
    return {"apiVersion": API_VERSION, "kind": KIND, **fields}


def config_of(name: str, args: Any) -> dict[str, Any]:
    return doc(profiles=[{"pluginConfig": [{"name": name, "args": args}]}])


GROUP = "kubescheduler.config.k8s.io"


def old(version: str, **fields: Any) -> dict[str, Any]:
    return {"apiVersion": f"{GROUP}/{version}", "kind": "KubeSchedulerConfiguration", **fields}


PATH = "profiles[0].pluginConfig[0].args."


def texts(name: str, args: Any, **gates: bool) -> list[str]:
    state = {**DEFAULT_GATES, **gates}
    document = {"profiles": [{"pluginConfig": [{"name": name, "args": args}]}]}
    found = [problem.text for problem in validate(configuration(document, state), state)]
    assert all(text.startswith(PATH) for text in found)
    return [text.removeprefix(PATH) for text in found]
