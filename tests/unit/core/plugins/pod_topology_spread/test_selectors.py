"""The selector of default constraints, from services and owners."""

from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any

import pytest

from asched.core.model.kinds import REPLICA_SET, REPLICATION_CONTROLLER, SERVICE, STATEFUL_SET, Kind
from asched.core.plugins.pod_topology_spread.default_selectors import DefaultSelectors
from tests.topology_builders import World, a_pod


@dataclass(frozen=True)
class Case:
    name: str
    expected: str | None  # requirements as `key=value`, sorted; None: no defaults
    services: list[Any] = field(default_factory=list)
    owner: tuple[Kind, Any] | None = None
    owned_by: tuple[str, str] | None = None  # (group version, kind) if not that of the owner
    labels: str = "app=web tier=x"
    namespace: str = "default"


def match(**labels: str) -> dict[str, Any]:
    return {"matchLabels": labels}


CASES = [
    Case("nothing selects the pod", None),
    Case("one service", "app=web", [{"app": "web"}]),
    Case(
        "all services that match", "app=web tier=x", [{"app": "web"}, {"tier": "x"}, {"app": "d"}]
    ),
    Case("services without selector select nothing", None, [None, {}]),
    Case("services of other namespaces", None, [{"app": "web"}], namespace="other"),
    Case("a replica set", "app=web", owner=(REPLICA_SET, match(app="web"))),
    Case("a stateful set", "app=web", owner=(STATEFUL_SET, match(app="web"))),
    Case("a replication controller", "app=web", owner=(REPLICATION_CONTROLLER, {"app": "web"})),
    Case("a controller that selects nothing", None, owner=(REPLICATION_CONTROLLER, None)),
    Case(
        "a controller that is gone",
        "tier=x",
        [{"tier": "x"}],
        owned_by=("v1", "ReplicationController"),
    ),
    Case("both", "app=web tier=x", [{"tier": "x"}], owner=(REPLICA_SET, match(app="web"))),
    Case("an owner that is gone", "tier=x", [{"tier": "x"}], owned_by=("apps/v1", "ReplicaSet")),
    Case(
        "an owner of another group",
        None,
        owner=(REPLICA_SET, match(app="web")),
        owned_by=("example.com/v1", "ReplicaSet"),
    ),
    Case("another kind of owner", None, owned_by=("batch/v1", "Job")),
    Case("an owner that selects nothing", None, owner=(REPLICA_SET, None)),
    Case("an owner that selects everything", None, owner=(REPLICA_SET, {})),
    Case(
        "an owner whose selector makes no sense",
        "tier=x",
        [{"tier": "x"}],
        owner=(REPLICA_SET, {"matchExpressions": [{"key": "a", "operator": "Like"}]}),
    ),
]


@pytest.mark.parametrize("case", CASES, ids=attrgetter("name"))
def test_selector_of(case: Case) -> None:
    world = World()
    for number, wanted in enumerate(case.services):
        metadata = {"name": f"s{number}", "namespace": "default"}
        world.see_other(SERVICE, metadata=metadata, spec={"selector": wanted})
    owner = case.owned_by
    if case.owner is not None:
        kind, selector = case.owner
        owner = owner or (kind.group_version, kind.name)
        metadata = {"name": "o", "namespace": "default"}
        world.see_other(kind, metadata=metadata, spec={"selector": selector})
    references = (
        [{"apiVersion": owner[0], "kind": owner[1], "name": "o", "controller": True}]
        if owner
        else []
    )
    pod = a_pod(
        "p", case.labels, namespace=case.namespace, metadata={"ownerReferences": references}
    )

    selector = DefaultSelectors(world.cluster).selector_of(pod)

    told = selector and " ".join(f"{r.key}={min(r.values)}" for r in selector.requirements)
    assert told == case.expected
