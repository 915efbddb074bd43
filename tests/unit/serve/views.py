"""What the pages show: a cluster with hostile names."""

from typing import Any

from asched.serve.view.pulse import COLUMNS

HOSTILE = '<img src=x onerror="window.struck=1"><svg onload=window.struck=1>"\'&amp;'
RESOURCES = ["pods", "cpu", "memory", "ephemeral-storage", "nvidia.com/gpu"]


def a_series(beats: int) -> dict[str, Any]:
    made = {name: [float(at % 40) for at in range(beats)] for name in COLUMNS}
    made["seq"] = list(range(1, beats + 1))
    made["at"] = [1.7e9 + 2 * at for at in range(beats)]
    made["waitP50"] = [None if at % 7 == 0 else at / 100 for at in range(beats)]
    return made


def a_view(nodes: int, **more: Any) -> dict[str, Any]:
    reason = {"plugin": "NodeResourcesFit", "reason": "Insufficient cpu", "nodes": 4000}
    hostile = {"plugin": HOSTILE, "reason": HOSTILE, "nodes": 1}
    group = {"oldestSeconds": 61.0, "otherReasons": 0}
    told = {
        "at": 1.7e9,
        "startedAt": 1.0,
        "version": "1.2.3",
        "rules": "1.37",
        "leads": True,
        "synced": True,
        "profiles": ["asched"],
        "pods": 100_000,
        "placed": 96_600,
        "queues": {
            "active": 12,
            "backoff": 3,
            "unschedulable": 3400,
            "gated": 7,
            "inFlight": 1,
            "binding": 2,
        },
        "series": a_series(900),
        "waiting": {
            "pods": 3420,
            "groups": [
                {**group, "pods": 3300, "reasons": [reason], "examples": ["ml/train-0", "ml/x"]},
                {**group, "pods": 100, "reasons": [hostile], "examples": [f"ml/{HOSTILE}"]},
            ],
            "otherGroups": 2,
            "otherPods": 20,
        },
        "pools": [],
        "gangs": {
            "count": 1,
            "gangs": [
                {"group": "ml/crew", "unplaced": 3, "placed": 1, "held": 1, "minCount": 4},
            ],
        },
        "nodes": {
            "generation": 5,
            "count": nodes,
            "names": [f"ip-10-0-{at // 250}-{at % 250}.internal" for at in range(nodes)],
            "resources": RESOURCES,
            "share": [at * 7 % 104 for at in range(nodes)],
            "scarce": [(at // 3) % 5 for at in range(nodes)],
            "flags": [int(at % 40 == 0) + 2 * int(at % 41 == 0) for at in range(nodes)],
        },
        "recent": [
            {"pod": "shop/web-1", "at": 1.7e9, "what": "bound", "node": "ip-10-0-0-1.internal"},
            {"pod": f"ml/{HOSTILE}", "at": 1.7e9, "what": "no node"},
        ],
    }
    return {**told, **more}
