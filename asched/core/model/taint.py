"""Taints, tolerations, and when one tolerates the other.

Source  kubernetes/kubernetes v1.36 staging/src/k8s.io/api/core/v1/toleration.go
"""

from typing import Final

from asched.core.model.meta import Record

NO_SCHEDULE: Final = "NoSchedule"
NO_EXECUTE: Final = "NoExecute"
PREFER_NO_SCHEDULE: Final = "PreferNoSchedule"


class Taint(Record, frozen=True, gc=False):
    key: str = ""
    value: str = ""
    effect: str = ""

    @property
    def is_hard(self) -> bool:
        """Whether it keeps pods away (NoSchedule, NoExecute), rather than making them reluctant."""
        return self.effect in (NO_SCHEDULE, NO_EXECUTE)


class Toleration(Record, frozen=True, gc=False):
    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""

    def tolerates(self, taint: Taint) -> bool:
        """An empty effect or key stands for all of them; `Lt` and `Gt` need a gate that is off."""
        if self.effect and self.effect != taint.effect:
            return False
        if self.key and self.key != taint.key:
            return False
        if self.operator in ("", "Equal"):
            return self.value == taint.value
        return self.operator == "Exists"


def tolerated(taint: Taint, tolerations: tuple[Toleration, ...]) -> bool:
    """Whether any of the tolerations tolerates the taint."""
    return any(toleration.tolerates(taint) for toleration in tolerations)
