"""Twin of TaintToleration."""

from typing import Any

from asched.core.model.pod import Pod
from asched.core.model.taint import Taint, Toleration
from tests.conformance.twins.picture import Picture, Place, Rejection


def reject(pod: Pod, place: Place, picture: Picture, args: Any) -> Rejection | None:
    for taint in place.node.spec.taints or ():
        if taint.effect in ("NoSchedule", "NoExecute") and not is_tolerated(taint, pod):
            return ["node(s) had untolerated taint(s)"], False
    return None


def raw_score(pod: Pod, place: Place, picture: Picture, args: Any) -> int | None:
    soft = [t for t in pod.spec.tolerations or () if t.effect in ("", "PreferNoSchedule")]
    count = 0
    for taint in place.node.spec.taints or ():
        if taint.effect == "PreferNoSchedule" and not any(_tolerates(t, taint) for t in soft):
            count += 1
    return count


def normalized(raw: list[int]) -> list[int]:
    most = max(raw)
    return [100 - (score * 100 // most if most else 0) for score in raw]


def is_tolerated(taint: Taint, pod: Pod) -> bool:
    return any(_tolerates(toleration, taint) for toleration in pod.spec.tolerations or ())


def _tolerates(toleration: Toleration, taint: Taint) -> bool:
    if toleration.effect not in ("", taint.effect):
        return False
    if toleration.key not in ("", taint.key):
        return False
    if toleration.operator == "Exists":
        return True
    return toleration.operator in ("", "Equal") and toleration.value == taint.value
