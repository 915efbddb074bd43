"""PodDisruptionBudgets."""

from asched.core.model.decode import decode
from asched.core.model.workload import PodDisruptionBudget


def budget(name: str, selector: dict | None, allowed: int, namespace: str = "default", *gone: str):
    written = {
        "metadata": {"name": name, "namespace": namespace},
        "spec": {} if selector is None else {"selector": selector},
        "status": {
            "disruptionsAllowed": allowed,
            "disruptedPods": dict.fromkeys(gone, "2026-01-01T00:00:00Z"),
        },
    }
    return decode(PodDisruptionBudget, written)
