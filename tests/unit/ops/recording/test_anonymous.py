"""A recording under pseudonyms shows what the original shows, and names nobody."""

import gzip
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from asched.core.cluster.facts import Bound, Fact, Refused, Seen, Unknown
from asched.core.framework.effects import Bind, Effect
from asched.core.model.kinds import NODE
from asched.host.user_plugins.catalogue import Catalogue, of_class
from asched_lab.replay.anonymous import anonymize
from asched_lab.replay.lines import Recording
from asched_lab.replay.replay import replay
from asched_lab.sim.scenario import play
from asched_lab.sim.scenarios import SCENARIOS
from tests.builders import a_node, a_pod
from tests.unit.ops.recording.recorded import NAME, NOBODY, a_configuration, ours, record

#: Named after what no recording under pseudonyms may contain.
WORDS = ("acme", "payroll", "tenant", "registry")


def turns() -> Iterator[list[Fact]]:
    yield [
        Seen(
            NODE,
            a_node(f"acme-{n}")
            .labels({"acme.com/team": f"payroll-{n % 2}", "topology.kubernetes.io/zone": "acme-z"})
            .taints("acme.com/tenant=payroll:PreferNoSchedule")
            .allocatable(cpu="2", memory="8Gi", pods="10")
            .image("registry.acme.com/app:v1", mib=500)
            .build(),
        )
        for n in range(6)
    ]
    yield [
        ours(
            a_pod(f"payroll-{n}", "tenant-a")
            .labels(app="payroll")
            .requests(cpu=f"{100 + n}m", memory="64Mi")
            .image("registry.acme.com/app:v1")
        )
        for n in range(20)
    ]
    yield [
        ours(a_pod("acme-picky", "tenant-b").selects(**{"acme.com/team": "payroll-1"})),
        ours(a_pod("acme-huge", "tenant-b").requests(cpu="64")),
    ]
    yield from ([] for _ in range(30))


def answering(effect: Effect) -> Iterator[Fact]:
    if isinstance(effect, Bind):
        fates: tuple[Fact, ...] = (
            Bound(effect.id),
            Bound(effect.id),
            Refused(effect.id, 409, f'already assigned to node "{effect.node}"', "Conflict"),
            Unknown(effect.id, "the tenant's connection broke"),
        )
        yield fates[effect.id % 4]


@pytest.fixture
def recording(tmp_path: Path) -> Recording:
    added = {"key": "acme.com/team", "operator": "Exists"}
    terms = {"nodeSelectorTerms": [{"matchExpressions": [added]}]}
    affinity = {"requiredDuringSchedulingIgnoredDuringExecution": terms}
    entry = {"name": "NodeAffinity", "args": {"addedAffinity": affinity}}
    config = a_configuration(
        profiles=[{"schedulerName": NAME, "pluginConfig": [entry]}],
        extenders=[
            {
                "urlPrefix": "http://judge.acme.com",
                "weight": 1,
                "managedResources": [{"name": "example.com/foo"}],
                "filterVerb": "filter",
            }
        ],
        leaderElection={"leaderElect": False, "resourceNamespace": "acme-system"},
    )
    return Recording(record(tmp_path / "r", turns(), config=config, answering=answering))


def test_it_decides_the_same_and_repeats_itself(recording: Recording, tmp_path: Path) -> None:
    done = anonymize(recording, tmp_path / "out", NOBODY)

    assert done.differs is None
    assert done.names > 50
    told = Recording(tmp_path / "out")
    again = replay(told, NOBODY)
    assert again.is_equal
    assert again.bindings == replay(recording, NOBODY).bindings > 20
    assert told.head.anonymous
    assert not told.cut_off


def test_it_names_nobody(recording: Recording, tmp_path: Path) -> None:
    anonymize(recording, tmp_path / "out", NOBODY)

    before, after = (
        gzip.decompress(path.read_bytes()).decode() for path in (recording.path, tmp_path / "out")
    )
    assert all(word in before for word in WORDS)
    assert [word for word in WORDS if word in after] == []
    head = json.loads(after.partition("\n")[0])
    assert "machine" not in head or not head["machine"]


@pytest.mark.parametrize("name", ["EveryPhase", "Advisers"])
def test_simulated_lives_decide_the_same(name: str, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    assert play(SCENARIOS[name], 1, record=tmp_path / "in").ledger.bound_count
    catalogue = Catalogue([of_class(cls, "the scenario") for cls in SCENARIOS[name].plugins])
    (path,) = (tmp_path / "in").iterdir()

    done = anonymize(Recording(path), tmp_path / "out", catalogue)

    assert done.differs is None
    assert replay(Recording(tmp_path / "out"), catalogue).is_equal
