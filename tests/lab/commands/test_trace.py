"""`asched simulate`: its lines and its exit status."""

import gzip
import json
from pathlib import Path

import pytest

from asched.cli.main import main
from tests.lab.trace import tiny


def test_one_line_of_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["openb:tiny", "--policy", "fgd", "--seed", "42", "--json"]
    assert main(["trace", *words, "--traces", str(tiny.write(tmp_path))]) == 0
    found = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert list(found) == ["trace", "policy", "seed", "pods", "gpu_allocation", "curve", "seconds"]
    assert (found["trace"], found["policy"], found["seed"]) == ("openb:tiny", "fgd", 42)
    assert list(found["gpu_allocation"]) == ["60", "90", "100", "130"]
    assert len(found["curve"]) == 131
    assert found["curve"][60] == found["gpu_allocation"]["60"]


NODES_OF_TWO = """sn,cpu_milli,memory_mib,gpu,model
node-0,32000,65536,2,T4
node-1,32000,65536,2,T4
"""
#: Halves go to both nodes by `dotprod`; the pod with two GPUs then needs a move.
PODS_OF_TWO = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase\n" + "".join(
    f"pod-{number},{cpu},1024,{gpus},{milli},,LS,Running\n"
    for number, (cpu, gpus, milli) in enumerate(
        ((20000, 1, 500), (20000, 1, 500), (1000, 2, 1000), (1000, 2, 1000))
    )
)


def test_moves_place_pods_that_were_dropped(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tiny.write(tmp_path, NODES_OF_TWO, PODS_OF_TWO)
    words = ["trace", "openb:tiny", "--policy", "bestfit", "--engine", "--traces", str(folder)]
    assert main([*words, "--moves", "2", "--json"]) == 0
    found = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert found["placed"] <= found["dropped"]
    assert (found["after"] > found["before"]) == (found["placed"] > 0)
    assert found["moves"] <= 2 * found["placed"]


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        (["openb:none"], 1, "no trace 'openb:none'"),
        (["tiny"], 1, "no trace 'tiny' (did you mean \"openb:tiny\"?); there are"),
        ([""], 1, "no trace ''; there are openb:tiny"),
        (
            ["openb:tiny", "--policy", "best"],
            2,
            "no policy 'best' (did you mean \"bestfit\"?); there are random",
        ),
        (["openb:tiny", "--policy", "fdg"], 2, 'fdg\' (did you mean "fgd"?); there'),
        (["openb:tiny", "--plot", "none/a.svg"], 1, "there is no folder none"),
        (
            ["openb:tiny", "--plot", "a.svg", "--published", "none.csv"],
            1,
            "cannot read none.csv: No such file or directory",
        ),
        (["--policy", "fgd"], 2, "which trace? --list shows them"),
        (["openb:tiny", "--policy", "random", "--engine"], 1, "random is no strategy"),
        (["openb:tiny", "--published", "x.csv"], 2, "is drawn by --plot FILE"),
        (["openb:tiny", "--moves", "1"], 2, "--moves needs --engine and a policy of"),
    ],
)
def test_wrong_words_are_one_line(
    words: list[str],
    status: int,
    said: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["trace", *words, "--traces", str(tiny.write(tmp_path))]) == status
    errors = capsys.readouterr().err
    assert said in errors
    assert errors.count("\n") == 1


NODE = "sn,cpu_milli,memory_mib,gpu,model\nnode-0,32000,65536,{gpus},T4\n"
POD = "name,cpu_milli,memory_mib,{column},gpu_milli,gpu_spec\npod-0,4000,1024,{gpus},{gpus},\n"


@pytest.mark.parametrize(
    ("node", "pod", "said"),
    [
        (NODE.format(gpus=0), POD.format(column="num_gpu", gpus=1), "no node has a GPU"),
        (
            NODE.format(gpus=2),
            POD.format(column="num_gpu", gpus=0),
            "no pod asks for a GPU, so",
        ),
        (NODE.format(gpus=2), POD.format(column="gpus", gpus=1), "no column 'num_gpu'"),
        (NODE.format(gpus=2), POD.format(column="num_gpu", gpus="x"), "invalid literal for int()"),
        (NODE.format(gpus=2), None, "Not a gzipped file"),
    ],
)
def test_a_trace_that_makes_no_sense_is_one_line(
    node: str, pod: str | None, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    base = tmp_path / "openb"
    base.mkdir()
    (base / "openb_node_list_gpu_node.csv.gz").write_bytes(gzip.compress(node.encode()))
    packed = gzip.compress(pod.encode()) if pod is not None else b"garbage"
    (base / "openb_pod_list_odd.csv.gz").write_bytes(packed)
    assert main(["trace", "openb:odd", "--traces", str(tmp_path)]) == 1
    errors = capsys.readouterr().err
    assert said in errors
    assert errors.count("\n") == 1
