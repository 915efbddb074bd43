"""What a kubelet knows of pods: requests, ports, the nodes that they accept, and how long their
commands run, guessed from the text.
"""

import random
import re
from datetime import UTC, datetime
from fractions import Fraction

SUFFIX = {
    "": 1,
    "n": Fraction(1, 10**9),
    "u": Fraction(1, 10**6),
    "m": Fraction(1, 1000),
    "k": 10**3,
    "M": 10**6,
    "G": 10**9,
    "T": 10**12,
    "P": 10**15,
    "E": 10**18,
    "Ki": 2**10,
    "Mi": 2**20,
    "Gi": 2**30,
    "Ti": 2**40,
    "Pi": 2**50,
    "Ei": 2**60,
}


def quantity(s) -> Fraction:
    m = re.fullmatch(r"([+-]?[\d.]+(?:[eE][+-]?\d+)?)([A-Za-z]*)", str(s))
    return Fraction(m[1]) * SUFFIX[m[2]]


def now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def micro() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def seconds(t: str) -> float:
    return datetime.strptime(t, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC).timestamp()


def add(a: dict, b: dict) -> dict:
    return {k: a.get(k, 0) + b.get(k, 0) for k in a.keys() | b.keys()}


def most(a: dict, b: dict) -> dict:
    return {k: max(a.get(k, 0), b.get(k, 0)) for k in a.keys() | b.keys()}


def requests(spec: dict) -> dict:
    """Required resources: containers and sidecars, or the greatest init step, plus overhead."""

    def req(c):
        return {k: quantity(v) for k, v in (c.get("resources", {}).get("requests") or {}).items()}

    total, sidecars, step = {}, {}, {}
    for c in spec["containers"]:
        total = add(total, req(c))
    for c in spec.get("initContainers") or []:
        if c.get("restartPolicy") == "Always":
            sidecars = add(sidecars, req(c))
            step = most(step, sidecars)
        else:
            step = most(step, add(sidecars, req(c)))
    total = most(add(total, sidecars), step)
    for k, v in req(spec).items():  # pod-level resources take the place of the sum
        total[k] = v
    total = add(total, {k: quantity(v) for k, v in (spec.get("overhead") or {}).items()})
    total["pods"] = Fraction(1)
    return total


def ports(spec: dict) -> set:
    return {
        (p.get("hostIP") or "0.0.0.0", p.get("protocol", "TCP"), p["hostPort"])
        for c in spec["containers"]
        for p in c.get("ports") or []
        if p.get("hostPort")
    }


def clash(a: set, b: set) -> bool:
    return any(p[1:] == q[1:] and (p[0] == q[0] or "0.0.0.0" in (p[0], q[0])) for p in a for q in b)


def matches(term: dict, node: dict) -> bool:
    labels = node["metadata"].get("labels") or {}
    exprs = [(e, labels) for e in term.get("matchExpressions") or []] + [
        (e, {"metadata.name": node["metadata"]["name"]}) for e in term.get("matchFields") or []
    ]
    for e, at in exprs:
        v, op, vs = at.get(e["key"]), e["operator"], e.get("values") or []
        ok = {
            "In": v in vs,
            "NotIn": v not in vs,
            "Exists": v is not None,
            "DoesNotExist": v is None,
        }.get(op)
        if ok is None:
            try:
                ok = int(v) > int(vs[0]) if op == "Gt" else int(v) < int(vs[0])
            except (TypeError, ValueError):
                ok = False
        if not ok:
            return False
    return bool(exprs)


def wants(spec: dict, node: dict) -> bool:
    labels = node["metadata"].get("labels") or {}
    if any(labels.get(k) != v for k, v in (spec.get("nodeSelector") or {}).items()):
        return False
    req = ((spec.get("affinity") or {}).get("nodeAffinity") or {}).get(
        "requiredDuringSchedulingIgnoredDuringExecution"
    )
    return not req or any(matches(t, node) for t in req.get("nodeSelectorTerms") or [])


FILES: set = set()  # what scripts of Jobs have touched


def behaviour(c: dict, pod: dict) -> tuple[float, int] | None:
    """How long a container runs and how it exits; None: it runs until it is told to stop."""
    cmd = [*(c.get("command") or []), *(c.get("args") or [])]
    text = " ".join(cmd)
    index = (pod["metadata"].get("annotations") or {}).get(
        "batch.kubernetes.io/job-completion-index", "0"
    )
    if re.search(r"while (true|:)", text):
        return None
    fork = re.search(r"if (.+?)\s+then(.+?)else(.+?)\s+fi\b", text.replace(";", "\n"), re.DOTALL)
    if fork:
        test = re.sub(r"\$\{?JOB_COMPLETION_INDEX\}?", index, fork[1])
        at = next(
            (
                v["hostPath"]["path"] + pod["spec"]["nodeName"]
                for v in pod["spec"].get("volumes") or []
                if "hostPath" in v
            ),
            pod["metadata"]["uid"],
        )
        if m := re.search(r"-r (\S+)", test):
            yes = (at, m[1]) in FILES
            FILES.add((at, m[1]))
        elif m := re.search(r"expr (\d+) % (\d+)\) -(ne|eq) (\d+)", test):
            yes = (int(m[1]) % int(m[2]) == int(m[4])) == (m[3] == "eq")
        else:
            yes = True
        text = fork[2] if yes else fork[3]
    if not cmd:
        return (0.5, 0) if "busybox" in c["image"] else None
    if re.search(r"infinity|tail -f|trap|wait\b|pause|netexec|serve|porter|inf\b", text):
        return None
    known = cmd[0].rsplit("/", 1)[-1] in (
        "sh",
        "bash",
        "sleep",
        "true",
        "false",
        "echo",
        "env",
        "cat",
        "ls",
        "test",
        "exit",
        "printf",
    )
    if not known:
        return None
    code = re.search(r"exit (\d+)", text)
    rc = (
        1
        if re.search(r"(^|/|\s)false\b", text)
        else int(code[1])
        if code
        else random.randint(0, 1)
        if "RANDOM" in text
        else 0
    )
    naps = [
        float(n) * {"d": 86400, "h": 3600, "m": 60}.get(u, 1)
        for n, u in re.findall(r"sleep (\d+(?:\.\d+)?)([dhm]?)", text)
    ]
    return None if sum(naps) > 3000 else (sum(naps) + 0.5, rc)


def stop_time(pod: dict) -> float:
    """Seconds that the containers take to end after they are told to."""
    t = 0.3
    for c in pod["spec"]["containers"]:
        if m := re.search(
            r"\(\) *\{(.*?)\}.*\btrap\b",
            " ".join([*(c.get("command") or []), *(c.get("args") or [])]),
            re.DOTALL,
        ):
            t = max(
                t, sum(float(n) for n in re.findall(r"sleep (\d+)", m[1])) + 0.3
            )  # a handler that takes its time
        hook = ((c.get("lifecycle") or {}).get("preStop")) or {}
        if "sleep" in hook:
            t = max(t, hook["sleep"]["seconds"] + 0.3)
        elif "exec" in hook:
            t = max(
                t,
                sum(float(n) for n in re.findall(r"sleep (\d+)", " ".join(hook["exec"]["command"])))
                + 0.3,
            )
    return t
