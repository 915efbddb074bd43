"""`asched replay`: what it prints, and how it ends."""

import json
from pathlib import Path

import pytest

from asched.cli.main import main
from asched.core.cluster.facts import Fact, Seen
from asched.core.cycle.orders import PoolsHeld
from asched.core.model.decode import decode
from asched.core.model.kinds import NAMESPACE, NODE
from asched.core.model.workload import Namespace
from tests.builders import a_node, a_pod
from tests.unit.ops.recording.recorded import NAME, a_configuration, ours, record
from tests.unit.ops.recording.streams import nodes, pods

PACKS = f"""
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: {NAME}
  pluginConfig:
  - name: NodeResourcesFit
    args: {{scoringStrategy: {{type: MostAllocated, resources: [{{name: cpu, weight: 1}}]}}}}
"""

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    return record(tmp_path / "recording", [nodes(), pods(30)])


@pytest.fixture
def packs(tmp_path: Path) -> Path:
    path = tmp_path / "packs.yaml"
    path.write_text(PACKS)
    return path


def test_equal_decisions_end_with_0(recording: Path, capsys: Capture) -> None:
    assert main(["replay", str(recording)]) == 0

    told = capsys.readouterr()
    assert "64 facts and 30 bindings of" in told.out
    assert told.out.endswith("all decisions are equal\n")
    assert told.err == ""


def test_differences_end_with_1_and_are_explained(
    recording: Path, packs: Path, capsys: Capture
) -> None:
    assert main(["replay", str(recording), "--config", str(packs)]) == 1

    out = capsys.readouterr().out
    assert "first difference in turn " in out
    assert "  then  bind default/p" in out
    assert "  now   bind default/p" in out
    assert "  why   n" in out
    assert "more; --all prints them" in out


def test_a_truncated_one_is_told(recording: Path, capsys: Capture) -> None:
    recording.write_bytes(recording.read_bytes()[:-30])

    assert main(["replay", str(recording)]) == 0

    assert "it ends in the middle" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["/no/such/file"], "no such file"),
        (["/dev/null"], "is no recording of asched"),
        (["{recording}", "--config", "/no/such.yaml"], "open /no/such.yaml"),
        (["{recording}", "--plugin", "nonsense"], "--plugin nonsense"),
    ],
)
def test_what_cannot_be_is_one_line_and_2(
    recording: Path, arguments: list[str], text: str, capsys: Capture
) -> None:
    assert main(["replay", *(one.format(recording=recording) for one in arguments)]) == 2

    told = capsys.readouterr()
    assert text in told.err
    assert told.err.count("\n") == 1
    assert told.out == ""


def test_under_pseudonyms_it_is_written_and_compared(
    recording: Path, tmp_path: Path, capsys: Capture
) -> None:
    out = tmp_path / "out"

    assert main(["replay", str(recording), "--anonymize", str(out)]) == 0

    told = capsys.readouterr().out
    assert "names replaced" in told
    assert told.endswith("it decides the same, name by name\n")
    assert main(["replay", str(out)]) == 0


def test_nothing_is_written_over(recording: Path, capsys: Capture) -> None:
    assert main(["replay", str(recording), "--anonymize", str(recording)]) == 2

    assert "exists already" in capsys.readouterr().err


def a_recording_with_pools(path: Path) -> Path:
    """Of a replica that takes the pool a, then b, and gives up a. It places a pod in each."""

    def held(*pools: str, new: tuple[str, ...] = (), versions: tuple[int, int] = (1, 1)) -> Fact:
        return PoolsHeld(dict.fromkeys(pools, versions), new)

    def objects(pool: str) -> list[Fact]:
        node = a_node(f"node-{pool}").labels({"asched.dev/pool": pool})
        node = node.allocatable(cpu="9", pods="9")
        node.json["metadata"]["resourceVersion"] = "1"
        namespace = {"metadata": {"name": f"team-{pool}", "uid": pool, "resourceVersion": "1"}}
        return [Seen(NODE, node.build()), Seen(NAMESPACE, decode(Namespace, namespace))]

    turns: list[list[Fact]] = [
        [held(), *objects("a"), *objects("b")],
        [held("a", new=("a",))],
        [ours(a_pod("p", "team-a"))],
        [held("a", "b", new=("b",))],
        [held("a", "b", versions=(2, 2))],  # nothing is taken or given up
        [held("b")],
        [ours(a_pod("q", "team-a")), ours(a_pod("r", "team-b"))],
    ]
    return record(path, turns, config=a_configuration(pools=POOLS))


POOLS = [{"name": name, "namespaces": [f"team-{name}"]} for name in ("a", "b")]


def test_when_pools_were_taken_and_given_up(tmp_path: Path, capsys: Capture) -> None:
    recording = str(a_recording_with_pools(tmp_path / "recording"))

    assert main(["replay", recording]) == 0
    out = capsys.readouterr().out
    assert out.splitlines()[1:] == [
        "pools that were held",
        "  turn 1, 0.100 s: takes a",
        "  turn 3, 0.300 s: takes b",
        "  turn 5, 0.500 s: gives up a",
        "all decisions are equal",
    ]
    assert main(["replay", recording, "-o", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["pools"] == [
        {"turn": 1, "at": 0.1, "taken": ["a"], "givenUp": []},
        {"turn": 3, "at": 0.3, "taken": ["b"], "givenUp": []},
        {"turn": 5, "at": 0.5, "taken": [], "givenUp": ["a"]},
    ]


def test_without_leases_of_pools_nothing_is_said_of_them(recording: Path, capsys: Capture) -> None:
    assert main(["replay", str(recording), "-o", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["pools"] is None


@pytest.mark.parametrize("of_the_same_name", [True, False])
def test_with_another_configuration_of_pools(
    tmp_path: Path, capsys: Capture, of_the_same_name: bool
) -> None:
    """With pools of other names it is not known which of them the replica would have held."""
    recording = a_recording_with_pools(tmp_path / "recording")
    other = tmp_path / "other.yaml"
    pools = POOLS if of_the_same_name else [{"name": "c", "namespaces": ["team-c"]}]
    other.write_text(f"{PACKS}\npools: {json.dumps(pools)}\n")

    status = main(["replay", str(recording), "--config", str(other)])

    out = capsys.readouterr().out
    assert status == (0 if of_the_same_name else 1)
    assert ("is replayed as that of the only replica" in out) is not of_the_same_name
    assert ("team-a/q, turn 6, 0.600 s: placed now, not then" in out) is not of_the_same_name
