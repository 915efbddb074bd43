"""Random documents of a kind, by its record: the record's fields are what a scheduler reads.

Strings are drawn from what is in the cluster, so that references meet, from the words the API
knows, and from what is at or beyond the limits of the API server. Types are as the API server lets
them through, for it checks those first; sometimes one is wrong all the same.
"""

from random import Random
from typing import Any, Final

import msgspec
from msgspec import inspect

from asched.core.model.kinds import Kind

NAMES: Final = tuple(f"x{n}" for n in range(6))
NAMESPACES: Final = ("default", "red", "blue")
KEYS: Final = (
    "app",
    "zone",
    "kubernetes.io/hostname",
    "topology.kubernetes.io/zone",
    "topology.kubernetes.io/region",
    "pod-template-hash",
    "node.kubernetes.io/unschedulable",
    "scheduling.x-k8s.io/pod-group",
)
WORDS: Final = (
    *("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "Equal"),
    *("NoSchedule", "NoExecute", "PreferNoSchedule", "DoNotSchedule", "ScheduleAnyway"),
    *("Honor", "Ignore", "Always", "Never", "PreemptLowerPriority", "Pending", "Running", "Failed"),
    *("Bound", "Available", "WaitForFirstConsumer", "Immediate", "ReadWriteOncePod", "Block"),
    *("All", "ExactCount", "Allowed", "DRAPrioritizedList", "gpu.example.com", "cpu", "memory"),
    *("TCP", "UDP", "127.0.0.1", "0.0.0.0", "::", "Binpack", "IfHealthyBudget"),
)
AMOUNTS: Final = (
    *("0", "1", "100m", "1Gi", "0.1", "1e3", "9223372036854775807", "9223372036854775808"),
    *("-1", "1E", "1000000E", "0.0000000001", "1e-9", "5Ki", "", "abc", "1.1.1", "+5", "\u0661"),
)
TIMES: Final = (
    *("2026-01-01T00:00:00Z", "0001-01-01T00:00:00Z"),
    *("9999-12-31T23:59:59.999999Z", "soon"),
)
CEL: Final = (
    "true",
    'device.driver == "gpu.example.com"',
    'device.attributes["gpu.example.com"].model == "a"',
    "device.capacity['gpu.example.com'].memory.compareTo(quantity('1Gi')) >= 0",
    "[1,2,3].all(x, [1,2,3].all(y, [1,2,3].all(z, x + y + z > 0)))",
    'device.driver.matches("(a+)+$")',
    "1/0 == 1",
    "((((((((((true))))))))))",
    "nonsense(",
)
ODD: Final = ("", " ", "\x00", "é", "a" * 253, "a" * 5000, "-", "/", "a/b/c", "*", "节点", "${x}")
INTEGERS: Final = (0, 1, 2, 3, 5, -1, 80, 65536, 2**31 - 1, 2**31, -(2**31), 2**63 - 1, -(2**63))
#: What a field is mostly, so that what lies behind it is reached.
USUAL: Final[dict[str, tuple[Any, ...]]] = {
    "operator": ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"),
    "key": KEYS,
    "topologyKey": KEYS,
    "whenUnsatisfiable": ("DoNotSchedule", "ScheduleAnyway"),
    "effect": ("NoSchedule", "NoExecute", "PreferNoSchedule"),
    "maxSkew": (1, 2, 5, 2**31 - 1),
    "weight": (1, 50, 100),
    "minDomains": (1, 3, 1000),
    "nodeAffinityPolicy": ("Honor", "Ignore"),
    "nodeTaintsPolicy": ("Honor", "Ignore"),
    "volumeBindingMode": ("WaitForFirstConsumer", "Immediate"),
    "allocationMode": ("ExactCount", "All"),
    "driver": ("gpu.example.com", "x1"),
    "phase": ("Pending", "Bound", "Available", "Running"),
    "sizeBytes": (0, 1, 10**9, 2**63 - 1),
    "hostPort": (0, 80, 443),
    "minCount": (1, 2, 100),
    "minMember": (1, 2, 100),
    "count": (0, 1, 2, 100),
}
RESOURCE_FIELDS: Final = frozenset(("requests", "limits", "allocatable", "capacity", "overhead"))
SCALARS: Final = (inspect.StrType, inspect.IntType)
#: Beyond this depth everything optional is absent.
DEPTH_MAX: Final = 9


class Maker:
    """`random` draws, so a seed repeats. `crowd` is how many entries a long list has."""

    def __init__(self, random: Random, crowd: int = 40) -> None:
        self._random = random
        self._crowd = crowd

    def document(self, kind: Kind) -> dict[str, Any]:
        """One that the API server might have let through."""
        made = self._of(inspect.type_info(kind.record), "", 0)
        assert isinstance(made, dict)
        random = self._random
        metadata = made.get("metadata")
        if not isinstance(metadata, dict):
            metadata = made["metadata"] = {}
        metadata["name"] = random.choice(NAMES)
        metadata["namespace"] = random.choice(NAMESPACES) if kind.namespaced else ""
        metadata["uid"] = f"{kind.plural}-{metadata['namespace']}-{metadata['name']}"
        metadata["resourceVersion"] = str(random.randrange(1, 10**6))
        return made

    def _of(self, shape: Any, field: str, depth: int) -> Any:
        random = self._random
        if depth and random.random() < 0.002:
            return random.choice([None, 7, "text", [], {}, True])
        if field in USUAL and random.random() < 0.85 and isinstance(shape, SCALARS):
            return random.choice(USUAL[field])
        match shape:
            case inspect.StructType():
                return {
                    one.encode_name: self._of(one.type, one.encode_name, depth + 1)
                    for one in shape.fields
                    if random.random() < (0.5 if depth < DEPTH_MAX else 0.1)
                }
            case inspect.UnionType():
                shapes = [one for one in shape.types if not isinstance(one, inspect.NoneType)]
                return self._of(random.choice(shapes), field, depth)
            case inspect.VarTupleType() | inspect.ListType():
                return [self._of(shape.item_type, field, depth) for _ in range(self._count(depth))]
            case inspect.DictType():
                return {
                    self._key(field): self._of(shape.value_type, field, depth + 1)
                    for _ in range(self._count(depth))
                }
            case inspect.BoolType():
                return random.random() < 0.5
            case inspect.IntType():
                return random.choice(INTEGERS)
            case inspect.FloatType():
                return random.choice([0.0, -1.5, 1e308, 0.25])
            case inspect.StrType():
                return self._text(field)
            case _:
                return self._anything()

    def _count(self, depth: int) -> int:
        random = self._random
        if depth < 5 and random.random() < 0.03:
            return self._crowd
        return random.choice((0, 1, 1, 2, 3))

    def _key(self, field: str) -> str:
        random = self._random
        if field in RESOURCE_FIELDS:
            return random.choice(("cpu", "memory", "pods", "ephemeral-storage", "example.com/gpu"))
        return random.choice(KEYS) if random.random() < 0.8 else self._text(field)

    def _text(self, field: str) -> str:
        random = self._random
        if field in (
            "requests",
            "limits",
            "allocatable",
            "capacity",
            "overhead",
            "storage",
            "value",
        ):
            return random.choice(AMOUNTS if random.random() < 0.3 else AMOUNTS[:6])
        if field == "expression":
            return random.choice(CEL)
        if field.endswith(("Timestamp", "Time")):
            return random.choice(TIMES)
        if field == "namespace":
            return random.choice(NAMESPACES)
        pool = random.choice((NAMES, NAMES, KEYS, WORDS, WORDS, ODD, AMOUNTS, NAMESPACES))
        return random.choice(pool)

    def _anything(self) -> Any:
        return self._random.choice([None, {}, [], "x", 1, {"a": [1, {"b": None}]}])


def read(kind: Kind, document: Any) -> Any:
    """What the codec makes of it: a record, or None if it is left out as malformed."""
    try:
        return msgspec.json.decode(msgspec.json.encode(document), type=kind.record)
    except (msgspec.DecodeError, msgspec.ValidationError):
        return None
